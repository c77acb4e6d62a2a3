"""The plugin on a real node of this machine, beside a bare loop over the driver, and as its store grows.

The node is started from Maven Central's jars, as for the tests. Its own CPU isn't counted: both sides ask the same.
"""

from __future__ import annotations

import os
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from time import perf_counter, sleep
from typing import Any

from bench.growth import CALLS, KINDS, OPEN, Call, Grown
from bench.lab import Lab, Missing
from bench.measure import Case, Workload, here, measure
from bench.pictures import photo
from bench.table import compared, number
from cli.settings import Cassandra, Delivery, Settings, Storage
from cli.wiring import Magazin
from storage.blobs import Blob
from storage.chunks import ChunkBlobs
from storage.ids import Ids
from storage.schema import ORIGINALS
from storage.table import ABSENT, Put
from tests.cassandra_server import Cluster, NoServer

PART = 512 * 1024
PARTS = 48  # in one round
WINDOW = 4
SMALL = 30_000  # bytes
ORIGINALS_A_ROUND, THREADS = 400, 8
FEW, TIMES = 1000, 10
PATIENCE = 120  # seconds until the driver has found the node again


def sections(lab: Lab) -> Iterator[str]:
    magazin = _magazin(lab, _cluster(lab))
    bare = Bare(magazin)
    yield compared(Workload("Chunks written", _about(PARTS), _writing(magazin, bare), lab.rounds))
    yield compared(Workload("Chunks read", _about(PARTS), _reading(magazin, bare), lab.rounds))
    small = f"{SMALL:,} bytes each, {THREADS} threads: look whether the key is taken, part, row by compare-and-set."
    yield compared(Workload("Small originals stored", small, _small(magazin, bare), lab.rounds))
    yield _first_byte(magazin)


def growth(lab: Lab) -> Iterator[str]:
    yield _growth(lab, _cluster(lab))


def _cluster(lab: Lab) -> Cluster:
    try:
        return lab.stack.enter_context(Cluster(lab.folder / f"node-{uuid.uuid4().hex[:6]}", jvm=()))
    except NoServer as reason:
        raise Missing(str(reason)) from reason


class Bare:
    """The same statements without anything of ours around them."""

    def __init__(self, magazin: Magazin) -> None:
        store: Any = magazin.store
        self._session = store._sessions.live().session
        keyspace = magazin.settings.cassandra.keyspace
        table = f"{keyspace}.originals_data"
        self._insert = self._session.prepare(
            f"INSERT INTO {table} (original_id, attempt, bucket, part, data, crc) VALUES (?, ?, ?, ?, ?, ?)"
        )
        where = "WHERE original_id = ? AND attempt = ? AND bucket = ?"
        self._select = self._session.prepare(f"SELECT data, crc FROM {table} {where} AND part = ?")
        self._taken = self._session.prepare(f"SELECT part FROM {table} {where} LIMIT 1")
        self._row = self._session.prepare(
            f"UPDATE {keyspace}.originals SET status = ?, attempt = ?, size = ?, rev = ? "
            "WHERE original_id = ? IF rev = ?"
        )

    def write(self, owner: str, data: bytes, parts: int) -> None:
        self._flow((self._insert, (owner, "a", part // 64, part, data, "0" * 16)) for part in range(parts))

    def read(self, blob: Blob) -> None:
        keys = ((blob.owner, blob.attempt, part // 64, part) for part in range(blob.parts))
        self._flow((self._select, key) for key in keys)

    def store(self, owner: str, data: bytes) -> None:
        self._session.execute(self._taken, (owner, "a", 0))
        self._session.execute(self._insert, (owner, "a", 0, 0, data, "0" * 16))
        self._session.execute(self._row, ("OK", "a", len(data), uuid.uuid4().hex, owner, None))

    def _flow(self, statements: Iterator[tuple[Any, tuple[object, ...]]]) -> None:
        under_way: deque[Any] = deque()
        for statement, values in statements:
            under_way.append(self._session.execute_async(statement, values))
            if len(under_way) >= WINDOW:
                under_way.popleft().result()
        while under_way:
            under_way.popleft().result()


def _magazin(lab: Lab, cluster: Cluster) -> Magazin:
    """With a keyspace of its own."""
    keyspace = f"bench_{uuid.uuid4().hex[:12]}"
    cassandra = Cassandra(contact_points=tuple(cluster.contact_points), keyspace=keyspace)
    folder = lab.folder / keyspace
    delivery = Delivery(reference_ttl=0.0)  # of a thousand references nearly all would be remembered
    settings = Settings(
        folder, storage=Storage(plugin="cassandra"), cassandra=cassandra, access=OPEN, delivery=delivery
    )
    magazin = Magazin(settings)
    magazin.create()
    lab.stack.callback(magazin.close)
    return magazin


def _about(parts: int) -> str:
    return f"{parts} parts of {PART // 1024} KiB a round, {WINDOW} in flight; ours with checksums of parts and whole."


def _writing(magazin: Magazin, bare: Bare) -> list[Case]:
    data, ids = os.urandom(PART), Ids()

    def ours() -> int:
        with magazin.blobs.create(ids.random(), ids.ordered()) as writer:
            for _ in range(PARTS):
                writer.write(data)
            writer.commit()
        return PARTS

    def loop() -> int:
        bare.write(ids.random(), data, PARTS)
        return PARTS

    return [Case("driver", lambda: here(loop)), Case("magazin", lambda: here(ours))]


def _reading(magazin: Magazin, bare: Bare) -> list[Case]:
    blob = _blob(magazin, PARTS)

    def ours() -> int:
        return sum(1 for _ in magazin.blobs.parts(blob, 0, blob.size))

    def loop() -> int:
        bare.read(blob)
        return blob.parts

    return [Case("driver", lambda: here(loop)), Case("magazin", lambda: here(ours))]


def _blob(magazin: Magazin, parts: int) -> Blob:
    ids = Ids()
    with magazin.blobs.create(ids.random(), ids.ordered()) as writer:
        for _ in range(parts):
            writer.write(os.urandom(PART))
        return writer.commit()


def _small(magazin: Magazin, bare: Bare) -> list[Case]:
    data, ids = os.urandom(SMALL), Ids()
    blobs = ChunkBlobs(magazin.store)

    def ours(_: int) -> None:
        owner, attempt = ids.random(), ids.ordered()
        with blobs.create(owner, attempt) as writer:
            writer.write(data)
            writer.commit()
        row = {"original_id": owner, "status": "OK", "attempt": attempt, "size": SMALL}
        assert magazin.store.commit(ORIGINALS, (owner,), [Put(row, ABSENT)])

    def together(act: Callable[[int], None]) -> int:
        with ThreadPoolExecutor(THREADS) as pool:
            return sum(1 for _ in pool.map(act, range(ORIGINALS_A_ROUND)))

    return [
        Case("driver", lambda: here(lambda: together(lambda _: bare.store(ids.random(), data)))),
        Case("magazin", lambda: here(lambda: together(ours))),
    ]


def _first_byte(magazin: Magazin) -> str:
    lines = ["## First byte", "", "| original | ms to the first part, median of 20 |", "| --- | ---: |"]
    for parts in (1, PARTS):
        blob, taken = _blob(magazin, parts), []
        for _ in range(20):
            begun = perf_counter()
            pieces = magazin.blobs.parts(blob, 0, blob.size)
            next(pieces)
            taken.append(perf_counter() - begun)
            deque(pieces, maxlen=0)  # what is under way would stand in the way of the next one's first part
        lines.append(f"| {blob.size:,} bytes | {number(median(taken) * 1000)} |")
    return "\n".join(lines) + "\n"


def _growth(lab: Lab, cluster: Cluster) -> str:
    picture = photo(lab.folder, (800, 600))
    few, many = (Grown(_magazin(lab, cluster), count, picture) for count in (FEW, FEW * TIMES))
    # Else the smaller store would be read from memtables, and the larger one from disk.
    [node] = cluster.nodes
    node.stop()
    node.start()
    for store in (few, many):
        _warm(store)
    lines = [
        f"## Each request with {FEW:,} and with {FEW * TIMES:,} references",
        "",
        f"On the application, without a server; {CALLS} requests a round, one after the other. Both stores were",
        "flushed, and each reference asked for once.",
        "",
        f"| request | ms with {FEW:,} | with {FEW * TIMES:,} | ratio |",
        "| --- | ---: | ---: | ---: |",
    ]
    for kind, call in KINDS.items():
        cases = [_asking("few", few, call), _asking("many", many, call)]
        before, after = measure(Workload(kind, "", cases, lab.rounds))
        cells = (number(1000 / before.rate), number(1000 / after.rate), number(1 / after.rate_ratio))
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _warm(store: Grown) -> None:
    """Ask for everything, once the driver has found the node again."""
    end = perf_counter() + PATIENCE
    while True:
        try:
            store.ask_all()
            return
        except RuntimeError:
            if perf_counter() > end:
                raise
            sleep(1)


def _asking(name: str, store: Grown, call: Call) -> Case:
    return Case(name, lambda: here(lambda: store.ask(call)))
