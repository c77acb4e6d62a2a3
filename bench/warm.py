"""P4 and P8: an image out of the cache, and info.json, beside nginx with the same bytes as a file."""

from __future__ import annotations

from collections.abc import Iterator

from bench import load, peers, servers
from bench.lab import Lab, Missing
from bench.measure import Case, Workload
from bench.servers import Server
from bench.table import compared

SIZE = "750,563"
"""Of the 12 MP photo: about 89 KB, and none of the prepared boxes."""


def sections(lab: Lab) -> Iterator[str]:
    path = f"/binary/{lab.stock['large.jpg']}"
    yield compared(_workload(lab, "P4: warm hit", f"{path}/full/{SIZE}/0/default.jpg", "hit.jpg", with_peers=True))
    yield compared(_workload(lab, "P8: info.json, warm", f"{path}/info.json", "info.json", with_peers=False))


def _workload(lab: Lab, title: str, path: str, name: str, with_peers: bool) -> Workload:
    bare = lab.start(servers.magazin(lab.data, "--no-worker"))
    body = load.get(f"http://{bare.address}{path}")
    (lab.files / name).write_bytes(body)
    if not lab.has("nginx"):
        raise Missing("nginx, which is the limit here, isn't installed")
    front = lab.start(servers.nginx(lab.files, bare.address))
    cases = [_case(lab, "nginx, plain file", front, f"/{name}"), _case(lab, "magazin on gunicorn", bare, path)]
    if lab.has("granian"):
        cases.append(_case(lab, "magazin on granian", lab.start(servers.granian(lab.data)), path))
    cases.append(_case(lab, "magazin behind nginx, cached", front.before(bare), path))
    for peer in peers.installed(lab) if with_peers else []:
        served = peer.start(lab, lab.files)
        cases.append(_case(lab, peer.program, served, peer.path("large.jpg", *map(int, SIZE.split(",")))))
    return Workload(f"{title} ({len(body):,} bytes)", f"{load.CONNECTIONS} kept-alive connections.", cases, lab.rounds)


def _case(lab: Lab, name: str, server: Server, path: str) -> Case:
    url = f"http://{server.address}{path}"
    load.get(url)  # warm, and right
    return Case(name, lambda: load.repeat(url, server.pids, lab.seconds))
