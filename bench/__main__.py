"""``python -m bench [WORKLOAD …]``: measure, and write a table to bench/results/."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from bench import cassandra, cassandra_costs, files, growth, ingest, originals, table, thumbnails, tiles, warm
from bench.lab import Lab, Missing
from imaging.libvips import configure

WORKLOADS: dict[str, Callable[[Lab], Iterator[str]]] = {
    "ingest": ingest.sections,
    "thumbnails": thumbnails.sections,
    "tiles": tiles.sections,
    "warm": warm.sections,
    "originals": originals.sections,
    "growth": growth.sections,
    "files": files.sections,
    "huge": files.huge,
    "cassandra": cassandra.sections,
    "cassandra-growth": cassandra.growth,
    "cassandra-costs": cassandra_costs.sections,
}
ON_DEMAND = ("huge", "cassandra", "cassandra-growth", "cassandra-costs")
"""Only when they are named."""
RESULTS = Path(__file__).parent / "results"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "workload", nargs="*", help=f"some of {', '.join(WORKLOADS)}; by default all but {', '.join(ON_DEMAND)}"
    )
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each case (5)")
    parser.add_argument("--seconds", type=float, default=2, help="seconds of one round of one case (2)")
    parser.add_argument("--references", type=int, default=100_000, help="in the grown store (100,000)")
    chosen = parser.parse_args()
    names = chosen.workload or [name for name in WORKLOADS if name not in ON_DEMAND]
    unknown = set(names) - WORKLOADS.keys()
    if unknown:
        parser.error(f"no workload {', '.join(sorted(unknown))}; there are {', '.join(WORKLOADS)}")

    configure(1)
    begun = time.monotonic()
    pieces = [f"# Benchmarks of {datetime.now().astimezone():%Y-%m-%d %H:%M}\n\n{table.machine()}\n"]
    print(pieces[0], flush=True)
    with tempfile.TemporaryDirectory(prefix="magazin-bench-") as folder:
        lab = Lab(Path(folder), chosen.seconds, chosen.rounds, chosen.references)
        for name in names:
            with lab.stack:
                try:
                    for section in WORKLOADS[name](lab):
                        pieces.append(section)
                        print(section, flush=True)
                except Missing as missing:
                    pieces.append(f"{name}: not measured: {missing}.\n")
                    print(pieces[-1], flush=True)
    absent = f"Not installed here, so not measured: {', '.join(lab.missing)}. " if lab.missing else ""
    pieces.append(
        f"{absent}Medians of {chosen.rounds} interleaved rounds; the CPU of clients isn't counted. "
        f"{time.monotonic() - begun:.0f} s in all.\n"
    )
    print(pieces[-1])
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / f"{datetime.now():%Y-%m-%d-%H%M%S}.md"
    file.write_text("\n".join(pieces), encoding="utf-8")
    print(f"written to {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
