"""What parts come to on a real node: how large their partitions are, and how many are asked for ahead."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from cassandra.cluster import ResponseFuture

from storage.bucket_chunks import Chunks
from storage.bucket_tables import tables_of
from storage.cassandra import CassandraStore
from storage.cassandra_options import Options, replication
from storage.chunks import ChunkBlobs
from storage.contract_blobs import fresh, whole
from storage.schema import ORIGINALS_DATA
from storage.table import VALUE_LIMIT, Table

LARGEST = 1_000_000  # [storage] part_size
FS_CHUNKS = tables_of("fs").chunks


@pytest.fixture(scope="module")
def store(cassandra: str) -> Iterator[CassandraStore]:
    store = CassandraStore(Options(((cassandra, 9042),), f"sizes_{uuid.uuid4().hex[:12]}", replication("1")))
    store.create([ORIGINALS_DATA, FS_CHUNKS])
    yield store
    store.close()


MOST = 64  # MiB


def on_disk(store: CassandraStore, table: Table, least: int) -> int:
    """MiB, once the node has written what it holds in memory, at least ``least``, and has dropped the files that it
    compacted: until then it counts them twice."""
    keyspace, run = store._options.keyspace, store._sessions.execute
    run(f"ALTER TABLE {keyspace}.{table.name} WITH memtable_flush_period_in_ms = 200")
    query = "SELECT mebibytes FROM system_views.disk_usage WHERE keyspace_name = %s AND table_name = %s"
    found, end = 0, time.monotonic() + 120
    while not least <= found < MOST and time.monotonic() < end:
        time.sleep(0.2)  # between two looks
        found = int(run(query, keyspace, table.name).one()[0])
    return found


@pytest.mark.parametrize(
    ("blobs", "table", "size"),
    [
        (lambda store: ChunkBlobs(store, part_size=LARGEST), ORIGINALS_DATA, 64 * LARGEST),
        (lambda store: Chunks(store, FS_CHUNKS, 4).sized(VALUE_LIMIT), FS_CHUNKS, 32 * VALUE_LIMIT),
    ],
    ids=["originals", "files"],
)
def test_no_partition_is_above_64_mib(store: CassandraStore, blobs: Any, table: Table, size: int) -> None:
    """One partition of the largest parts that there can be; the next part begins another."""
    key = fresh()
    with blobs(store).create(*key) as writer:
        writer.write(os.urandom(size))
        writer.commit()
    assert store.scan(table, columns=table.partition) == ([dict(zip(table.partition, (*key, 0), strict=True))], None)
    assert size >> 20 <= on_disk(store, table, size >> 20) < MOST
    with blobs(store).create(*fresh()) as writer:
        writer.write(bytes(size + 1))
        writer.commit()
    rows, _ = store.scan(table, columns=table.partition)
    assert sorted(row["bucket"] for row in rows) == [0, 0, 1]


def test_the_first_part_comes_before_others_are_asked_for(store: CassandraStore) -> None:
    """Then as many are under way as the window allows, however long the original is: memory stays bounded."""
    sent: list[ResponseFuture] = []
    alone: list[bool] = []

    def note(future: ResponseFuture) -> None:
        if sent:
            alone.append(sent[0]._event.is_set())
        sent.append(future)

    blobs = ChunkBlobs(store, part_size=1000, window=4)
    with blobs.create(*fresh()) as writer:
        writer.write(os.urandom(100_000))
        blob = writer.commit()
    session = store._sessions.live().session
    session.add_request_init_listener(note)
    try:
        pieces = blobs.parts(blob, 0, blob.size)
        assert sent == []
        for read in range(90):
            assert len(next(pieces)) == 1000
            assert len(sent) == read + 4
        assert all(alone)
    finally:
        session.remove_request_init_listener(note)
    assert len(whole(blobs, blob)) == 100_000
