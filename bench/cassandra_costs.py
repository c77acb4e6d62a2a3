"""What an original costs in Cassandra: its bytes on the disk, table by table, and the CPU of its ingest.

By way of a real server and worker, on a fresh node. In the end the node is stopped, so that everything is in its files.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from bench.ingest import ingested
from bench.lab import Lab, Missing
from bench.measure import cpu_of
from bench.servers import command, free_port, magazin
from bench.table import number
from cli.settings import Cassandra, Settings, Storage
from cli.wiring import Magazin
from tests.cassandra_server import Cluster, NoServer

SMALL = 30_000  # bytes
KINDS = (
    ("text.bin", f"{SMALL:,} bytes", 1000, 500),
    ("small.jpg", "a photo of 2 MP", 100, 10),
    ("large.jpg", "a photo of 12 MP", 30, 2),
)
"""File, title, originals that are measured, and those before them that aren't: the node's JVM warms up."""


def sections(lab: Lab) -> Iterator[str]:
    (lab.files / "text.bin").write_bytes(os.urandom(SMALL))
    port = free_port()
    source = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", str(lab.files)]
    lab.start(command(source, port))
    try:
        cluster = lab.stack.enter_context(Cluster(lab.folder / "costs", jvm=()))
    except NoServer as reason:
        raise Missing(str(reason)) from reason
    [node] = cluster.nodes
    lines: list[str] = []
    keyspaces: dict[str, tuple[str, int]] = {}
    for name, title, count, warm in KINDS:
        keyspaces[title] = (f"costs_{len(keyspaces)}", count + warm)
        _make(lab.folder, cluster, keyspaces[title][0])
        settings = {"STORAGE_PLUGIN": "cassandra", "CASSANDRA_CONTACT_POINTS": cluster.contact_points[0]}
        settings |= {"CASSANDRA_KEYSPACE": keyspaces[title][0], "WORKER_PER_HOST": "4"}
        with magazin(lab.folder / f"costs-{name}", **settings) as served:
            urls = [f"http://127.0.0.1:{port}/{name}?{n}" for n in range(count + warm)]
            ingested(urls[:warm], served)
            before = cpu_of([node.pid])
            sample = ingested(urls[warm:], served)
            spent = cpu_of([node.pid]) - before
        cells = number(sample.rate), number(sample.cost * 1000), number(spent / count * 1000)
        lines.append(f"| {title} | {' | '.join(cells)} |")
    node.stop()
    data = node.folder / "data" / "data"
    yield "\n".join(
        [
            "## What an ingest costs",
            "",
            f"PUT, fetch, store: {', '.join(f'{count:,} of {title}' for _, title, count, _ in KINDS)}; one server and "
            "worker, one node. Its CPU includes flushes and compactions.",
            "",
            "| original | per second | CPU ms, Magazin | CPU ms, node |",
            "| --- | ---: | ---: | ---: |",
            *lines,
            "",
            "Bytes on disk of each, one copy, after the node has drained:",
            "",
            f"| table | {' | '.join(keyspaces)} |",
            f"| --- |{' ---: |' * len(keyspaces)}",
            *_sizes(data, list(keyspaces.values())),
            "",
        ]
    )


def _make(data: Path, cluster: Cluster, keyspace: str) -> None:
    cassandra = Cassandra(contact_points=tuple(cluster.contact_points), keyspace=keyspace)
    with closing(Magazin(Settings(data, storage=Storage(plugin="cassandra"), cassandra=cassandra))) as made:
        made.create()


def _sizes(data: Path, keyspaces: list[tuple[str, int]]) -> Iterator[str]:
    """A row for each table. Paxos keeps the last change of each compared row, here of all kinds together."""
    held: dict[str, list[float]] = {}
    for place, (keyspace, count) in enumerate(keyspaces):
        for table in (data / keyspace).iterdir():
            sizes = held.setdefault(table.name.rpartition("-")[0], [0.0] * len(keyspaces))
            sizes[place] += _bytes_in(table) / count
    for name, sizes in sorted(held.items()):
        if any(round(size) for size in sizes):
            yield f"| {name} | {' | '.join(map(number, sizes))} |"
    rows = [
        sum(sizes[place] for name, sizes in held.items() if not _is_content(name)) for place in range(len(keyspaces))
    ]
    yield f"| all but originals_data and scaled images | {' | '.join(map(number, rows))} |"
    paxos = sum(_bytes_in(table) for table in (data / "system").glob("paxos-*"))
    each = number(paxos / sum(count for _, count in keyspaces))
    yield f"| system.paxos, of any |{f' {each} |' * len(keyspaces)}"


def _is_content(table: str) -> bool:
    return table.startswith(("scaled", "originals_data"))


def _bytes_in(folder: Path) -> int:
    return sum(Path(place, name).stat().st_size for place, _, names in os.walk(folder) for name in names)
