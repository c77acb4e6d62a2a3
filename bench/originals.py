"""P5: whole originals of 20 MB and ranges of 64 KiB, beside nginx with the same file."""

from __future__ import annotations

from collections.abc import Iterator

from bench import load, servers
from bench.lab import FILE, Lab, Missing
from bench.measure import Case, Workload
from bench.servers import Server
from bench.table import compared

NAME = "file.bin"


def sections(lab: Lab) -> Iterator[str]:
    if not lab.has("nginx"):
        raise Missing("nginx, which is the limit here, isn't installed")
    path = f"/binary/{lab.stock[NAME]}"
    expected = (lab.files / NAME).read_bytes()
    verified = lab.start(servers.magazin(lab.data, "--no-worker"))
    kernel = lab.start(servers.magazin(lab.data, "--no-worker", DELIVERY_SENDFILE="true"))
    named = lab.start(servers.magazin(lab.data, "--no-worker", DELIVERY_ACCEL_REDIRECT="/_originals/"))
    proxy = lab.start(servers.nginx(lab.files, verified.address))
    accel = lab.start(servers.nginx(lab.files, named.address, lab.data / "blobs"))
    served: list[tuple[str, Server, str]] = [
        ("nginx, plain file", proxy, f"/{NAME}"),
        ("magazin, verified", verified, path),
        ("magazin, sendfile", kernel, path),
        ("magazin, verified, behind nginx", proxy.before(verified), path),
        ("magazin, X-Accel-Redirect", accel.before(named), path),
    ]
    if lab.has("granian"):
        served.append(("magazin on granian, verified", lab.start(servers.granian(lab.data)), path))
    for name, server, where in served:
        if load.get(f"http://{server.address}{where}") != expected:
            raise RuntimeError(f"{name}: other bytes")

    def cases(largest: int) -> list[Case]:
        return [_case(lab, name, f"http://{server.address}{where}", server, largest) for name, server, where in served]

    about = f"{load.CONNECTIONS} kept-alive connections; behind nginx the CPU of both counts."
    yield compared(Workload(f"P5: whole originals ({FILE:,} bytes)", about, cases(0), lab.rounds))
    yield compared(Workload(f"P5: ranges of {load.RANGE:,} bytes, at random", about, cases(FILE), lab.rounds))


def _case(lab: Lab, name: str, url: str, server: Server, largest: int) -> Case:
    return Case(name, lambda: load.repeat(url, server.pids, lab.seconds, largest=largest))
