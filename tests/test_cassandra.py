"""The plugin on a real node: the contracts of rows and of blobs."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest

from storage.blobs import Blob, checksum
from storage.cassandra import CassandraStore
from storage.cassandra_options import Options, replication
from storage.chunks import ChunkBlobs
from storage.contract import BlobContract, StoreContract
from storage.contract_blobs import PART, Harm, Make
from storage.interface import Store
from storage.schema import ORIGINALS_DATA
from storage.table import Key

BUCKET = 4


@pytest.fixture(scope="module")
def options(cassandra: str) -> Options:
    """Of a keyspace for this module alone."""
    return Options(((cassandra, 9042),), f"test_{uuid.uuid4().hex[:12]}", replication("1"))


class TestRows(StoreContract):
    examples = 12

    @pytest.fixture(scope="class")
    @classmethod
    def handles(cls, options: Options) -> Callable[[], Store]:
        return lambda: CassandraStore(options)


class TestBlobs(BlobContract):
    @pytest.fixture(scope="class")
    @classmethod
    def store(cls, options: Options) -> Iterator[CassandraStore]:
        store = CassandraStore(options)
        store.create([ORIGINALS_DATA])
        yield store
        store.close()

    @pytest.fixture
    def make(self, store: CassandraStore, options: Options) -> Make:
        store._sessions.execute(f"TRUNCATE {options.keyspace}.originals_data")
        return lambda part_size: ChunkBlobs(store, part_size=part_size, bucket_parts=BUCKET, window=3)

    @pytest.fixture
    def child(self, options: Options) -> str:
        return (
            "from storage.cassandra import CassandraStore\nfrom storage.cassandra_options import Options\n"
            "from storage.chunks import ChunkBlobs\n"
            f"store = CassandraStore(Options({options.contact_points!r}, {options.keyspace!r}))\n"
            f"blobs = ChunkBlobs(store, part_size={PART}, bucket_parts={BUCKET}, window=3)"
        )

    @pytest.fixture
    def harm(self, store: CassandraStore, options: Options) -> Harm:
        where = "WHERE original_id = %s AND attempt = %s AND bucket = %s AND part = %s"
        table = f"{options.keyspace}.originals_data"
        run = store._sessions.execute

        def place(blob: Blob, part: int) -> Key:
            return blob.owner, blob.attempt, part // BUCKET, part

        def read(blob: Blob, part: int) -> tuple[bytes, str]:
            return tuple(run(f"SELECT data, crc FROM {table} {where}", *place(blob, part)).one())

        def write(blob: Blob, part: int, data: bytes, crc: str) -> None:
            run(f"UPDATE {table} SET data = %s, crc = %s {where}", data, crc, *place(blob, part))

        def harm(blob: Blob, part: int, how: str) -> None:
            if how == "append":
                write(blob, part, b"x", checksum(blob.owner, blob.attempt, part, b"x"))
            elif how == "drop":
                run(f"DELETE FROM {table} {where}", *place(blob, part))
            elif how == "swap":
                one, two = read(blob, part), read(blob, part + 1)
                write(blob, part, *two)
                write(blob, part + 1, *one)
            else:
                data, crc = read(blob, part)
                write(blob, part, {"flip": bytes([data[0] ^ 1]) + data[1:], "shorten": data[:-1]}[how], crc)

        return harm
