"""What the suites of buckets share: a store for each class, a clock that a test moves, ways to damage, to read and to
watch."""

import io
import itertools
import random
from contextlib import contextmanager, nullcontext

import pytest

from storage.blobs import checksum
from storage.bucket import Bucket
from storage.bucket_tables import chunks_together, tables_of
from storage.ids import Ids

START = 1_700_000_000_000_000  # µs
SECOND, HOUR = 1_000_000, 3600 * 1_000_000
CHUNK = 100  # bytes, where a test doesn't say
SIZES = [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 7 * CHUNK + 13]
_numbers = itertools.count()


def noise(size, seed=0):
    return random.Random(seed).randbytes(size)


class Ticking:
    """A clock that goes on by a microsecond at each look."""

    def __init__(self, now=START):
        self.now = now

    def __call__(self):
        self.now += 1
        return self.now


class BucketSetting:
    @pytest.fixture(scope="class")
    @classmethod
    def store(cls):
        """Overridden: an empty store."""
        raise NotImplementedError

    def tampering(self, store):
        """Overridden where the store itself would refuse what a test does to it: a context in which it doesn't."""
        return nullcontext()

    @pytest.fixture
    def clock(self):
        return Ticking()

    @pytest.fixture
    def open_bucket(self, store, clock):
        """A function that opens a bucket, with another store, if wanted, that leads to the same."""

        def open_bucket(name="shared", store=store, **more):
            more = {"chunk_size_bytes": CHUNK, "concurrency": 3, "clock": clock, "ids": Ids(clock)} | more
            bucket = Bucket(store, name, **more)
            bucket.init(shards=4)
            return bucket

        return open_bucket

    @pytest.fixture
    def bucket(self, open_bucket):
        """The bucket of all tests of a class."""
        return open_bucket()

    @pytest.fixture
    def own(self, open_bucket):
        """A bucket of this test alone."""
        return open_bucket(f"own{next(_numbers)}")

    @pytest.fixture
    def numbers(self):
        """Numbers that no other test has."""
        return _numbers

    @pytest.fixture
    def name(self):
        """A filename of this test alone."""
        return f"file {next(_numbers)}.bin"

    @pytest.fixture
    def harm(self, store):
        """A function that does something to a chunk. forge: other bytes, with the checksum that fits them."""

        def harm(record, num, how, bucket="shared"):
            table = tables_of(bucket).chunks
            key = (record.id, record.attempt, num // chunks_together(record.chunk_size_bytes), num)
            row = store.get(table, key)
            if row is None:
                row = dict(zip(table.key, key, strict=True)) | {"id": f"{record.attempt}-{num}", "data": b""}
            data = row["data"]
            changed = {
                "flip": bytes([data[0] ^ 1]) + data[1:] if data else b"",
                "forge": bytes(len(data)),
                "shorten": data[:-1],
                "lengthen": data + b"x",
                "empty": b"",
                "append": b"x",
            }
            with self.tampering(store):
                if how == "drop":
                    store.delete(table, key)
                    return
                crc = row.get("crc") if how == "flip" else checksum(*key[:2], num, changed[how])
                store.put(table, row | {"data": changed[how], "crc": crc})

        return harm


def put(bucket, name, data=b"some bytes", **more):
    return bucket.upload_from_stream(name, io.BytesIO(data), **more)


def whole(bucket, record):
    with bucket.open_download_stream(record.id) as stream:
        return stream.read()


def ways_to_read(bucket, record):
    """Every way to read a whole file, as functions."""

    def bit_by_bit(size):
        with bucket.open_download_stream(record.id) as stream:
            return b"".join(iter(lambda: stream.read(size), b""))

    def copied():
        out = io.BytesIO()
        bucket.download_to_stream(record.id, out)
        return out.getvalue()

    return {
        "at once": lambda: whole(bucket, record),
        "byte by byte": lambda: bit_by_bit(1),
        "in odd pieces": lambda: bit_by_bit(77),
        "in chunks": lambda: bit_by_bit(CHUNK),
        "to a stream": copied,
        "piece by piece": lambda: b"".join(bucket.pieces(record)),
        "buffered": lambda: io.BufferedReader(bucket.open_download_stream(record.id), 64).read(),
    }


def chunk_rows(store, record, bucket="shared"):
    """All rows of a file's chunks, in order."""
    table, rows, part = tables_of(bucket).chunks, [], 0
    while found := store.read(table, (record.id, record.attempt, part), limit=1000):
        rows += found
        part += 1
    return rows


def all_rows(store, table):
    rows, cursor = store.scan(table)
    while cursor is not None:
        more, cursor = store.scan(table, cursor)
        rows += more
    return rows


def nothing_left(store, bucket):
    """Whether a bucket's tables are empty, but for the list of hours."""
    tables = tables_of(bucket)
    recent = [row for row in all_rows(store, tables.recent) if row["span"] >= 0]
    return not any([recent, *(all_rows(store, table) for table in (tables.files, tables.chunks, tables.file_ix))])


class Crash(BaseException):
    """The process is gone: nothing catches it and goes on."""


class Watched:
    """A store that notes every call (verb, table, what), and crashes before the one whose number is given."""

    def __init__(self, store, crash_at=None):
        self._store, self._crash_at = store, crash_at
        self.calls = []

    def __getattr__(self, name):
        found = getattr(self._store, name)
        if name not in ("get", "fetch", "read", "scan", "put", "put_many", "delete", "erase", "commit"):
            return found

        def call(*args, **kwargs):
            if name == "put_many":
                rows = list(args[0])
                args = (rows, *args[1:])
                self._note(name, rows[0][0].name if rows else "", (rows, kwargs))
            elif name == "fetch":
                requests = list(args[0])
                args = (requests, *args[1:])
                self._note(name, "", requests)
            else:
                self._note(name, args[0].name, args[1:])
            return found(*args, **kwargs)

        return call

    @contextmanager
    def unit(self):
        """A crash within a transaction undoes it."""
        with self._store.unit():
            yield

    def _note(self, verb, table, what):
        if len(self.calls) == self._crash_at:
            raise Crash
        self.calls.append((verb, table, what))

    def written(self):
        """What was written, in order: (verb, table)."""
        return [(verb, table) for verb, table, _ in self.calls if verb not in ("get", "fetch", "read", "scan")]
