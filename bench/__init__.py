"""Benchmarks beside peers and beside what the machine can do at best: ``python -m bench``.

Every figure stands next to a limit that is measured in the same run: libvips called directly, or nginx sending a plain
file. Cases take turns in short rounds, so that whatever else the machine does hits all of them; what counts is the
ratio within a round, and its median over the rounds. Speed is told twice: as requests per second, and as CPU time of
the server's whole process tree, which says more on a machine that is shared.
"""
