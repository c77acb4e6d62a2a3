"""P1 and P2: thumbnails that nobody has asked for yet, and those that were prepared at ingest."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyvips

from bench import load, peers, servers
from bench.lab import Lab
from bench.measure import Case, Sample, Workload, here
from bench.servers import WORKERS, Server
from bench.table import compared


def sections(lab: Lab) -> Iterator[str]:
    yield compared(_workload(lab, "P1: cold thumbnail, 12 MP → !800,600", "large.jpg", (800, 600), 16))
    yield compared(_workload(lab, "P2: cold thumbnail, 2 MP → !140,105", "small.jpg", (140, 105), 60))


def _workload(lab: Lab, title: str, name: str, box: tuple[int, int], count: int) -> Workload:
    """``count`` thumbnails make a round."""
    width, height = box
    file, reference = lab.files / name, lab.stock[name]
    plain = lab.start(servers.magazin(lab.unprepared, "--no-worker"))
    prepared = lab.start(servers.magazin(lab.data, "--no-worker"))
    # nearly the box, each asked for once; the same share of the work of decoding
    sizes = (f"{width - 1 - n % 30},{height - 1 - n // 30}" for n in itertools.count())

    def cold(served: Server) -> Sample:
        wanted = [f"http://{served.address}/binary/{reference}/full/{next(sizes)}/0/default.jpg" for _ in range(count)]
        return load.once_each(wanted, served.pids, WORKERS)

    ready = f"http://{prepared.address}/binary/{reference}/full/!{width},{height}/0/default.jpg"
    cases = [
        Case("libvips in process", lambda: here(lambda: _libvips(file, box, count))),
        Case("magazin, nothing prepared", lambda: cold(plain)),
        Case("magazin, prepared at ingest, another size", lambda: cold(prepared)),
        Case("magazin, prepared at ingest, this box", lambda: load.repeat(ready, prepared.pids, lab.seconds)),
    ]
    cases += [_of_peer(lab, peer, name, box, count) for peer in peers.installed(lab)]
    about = f"{count} requests a round from {WORKERS} clients; peers read the plain file and keep nothing."
    return Workload(title, about, cases, lab.rounds)


def _libvips(file: Path, box: tuple[int, int], count: int) -> int:
    """As many threads as the servers have processes, each decoding on its own core."""

    def make(_: int) -> bytes:
        image = pyvips.Image.thumbnail(str(file), box[0], height=box[1], size="down", fail_on="error")
        data: bytes = image.jpegsave_buffer(Q=75, optimize_coding=False, keep="none")
        return data

    with ThreadPoolExecutor(WORKERS) as pool:
        return len(list(pool.map(make, range(count))))


def _of_peer(lab: Lab, peer: peers.Peer, name: str, box: tuple[int, int], count: int) -> Case:
    served = peer.start(lab, lab.files)
    sizes = ((box[0] - 1 - n % 30, box[1] - 1 - n // 30) for n in itertools.count())

    def cold() -> Sample:
        wanted = [f"http://{served.address}{peer.path(name, *next(sizes))}" for _ in range(count)]
        return load.once_each(wanted, served.pids, WORKERS)

    return Case(peer.program, cold)
