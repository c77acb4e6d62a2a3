"""P3 and P6: tiles of a pyramid beside nginx with the same bytes as a file, and making one beside dzsave alone."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pyvips

from bench import load, servers
from bench.lab import Lab, Missing
from bench.measure import Case, Workload, here
from bench.pictures import LARGE
from bench.servers import Server
from bench.table import compared
from imaging.encoding import STANDARD
from imaging.limits import Limits
from imaging.pyramid import TILE, build

WIDTH, HEIGHT = LARGE
BY = 2
"""The scale whose tiles are asked for: one of them inside, one at the lower right edge."""
SIDE = TILE * BY


def sections(lab: Lab) -> Iterator[str]:
    if not lab.has("nginx"):
        raise Missing("nginx, which is the limit here, isn't installed")
    base = f"/iiif/3/{lab.stock['large.jpg']}"
    bare = lab.start(servers.magazin(lab.data, "--no-worker"))
    front = lab.start(servers.nginx(lab.files, bare.address))
    fast = lab.start(servers.granian(lab.data)) if lab.has("granian") else None
    peer = lab.start(servers.iipimage(_tiled(lab.files))) if lab.has("iipsrv.fcgi") else None
    for where, x, y in (("inside", SIDE, SIDE), ("at the edge", WIDTH // SIDE * SIDE, HEIGHT // SIDE * SIDE)):
        wide, high = min(SIDE, WIDTH - x), min(SIDE, HEIGHT - y)
        path = f"{base}/{x},{y},{wide},{high}/{wide // BY},{high // BY}/0/default.jpg"
        yield compared(_workload(lab, f"P3: a tile {where}", path, f"tile-{x}.jpg", bare, front, fast, peer))
    yield compared(_workload(lab, "P8: info.json of 3.0", f"{base}/info.json", "info-3.json", bare, front, fast, peer))
    yield compared(_making(lab))


def _tiled(files: Path) -> Path:
    """The folder with the picture as IIPImage wants it."""
    folder = files.parent / "tiled"
    folder.mkdir()
    image = pyvips.Image.new_from_file(str(files / "large.jpg"), access="sequential")
    tiled = {"tile": True, "tile_width": TILE, "tile_height": TILE, "pyramid": True}
    image.tiffsave(str(folder / "large.tif"), compression="jpeg", Q=STANDARD.quality, **tiled)
    return folder


def _workload(
    lab: Lab, title: str, path: str, name: str, bare: Server, front: Server, fast: Server | None, peer: Server | None
) -> Workload:
    body = load.get(f"http://{bare.address}{path}")
    (lab.files / name).write_bytes(body)
    cases = [_case(lab, "nginx, plain file", front, f"/{name}"), _case(lab, "magazin on gunicorn", bare, path)]
    if fast is not None:
        cases.append(_case(lab, "magazin on granian", fast, path))
    if peer is not None:
        cases.append(_case(lab, "IIPImage behind nginx", peer, f"/?IIIF=large.tif/{path.split('/', 4)[4]}"))
    return Workload(f"{title} ({len(body):,} bytes)", f"{load.CONNECTIONS} kept-alive connections.", cases, lab.rounds)


def _case(lab: Lab, name: str, server: Server, path: str) -> Case:
    url = f"http://{server.address}{path}"
    load.get(url)
    return Case(name, lambda: load.repeat(url, server.pids, lab.seconds))


def _making(lab: Lab) -> Workload:
    source = lab.files / "large.jpg"

    def ours() -> int:
        with source.open("rb") as reader:
            assert build(reader, Limits(), STANDARD, io.BytesIO().write)
        return 1

    cases = [Case("dzsave", lambda: here(lambda: _dzsave(source))), Case("magazin", lambda: here(ours))]
    return Workload("P6: the pyramid of 12 MP", "In this process, into memory.", cases, lab.rounds)


def _dzsave(source: Path) -> int:
    image = pyvips.Image.new_from_file(str(source), access="sequential")
    assert image.dzsave_buffer(container="zip", tile_size=TILE, overlap=0, suffix=f".jpg[Q={STANDARD.quality}]")
    return 1
