"""Which buckets there are, by name; and the sweep's way to them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from storage.bucket import SHARDS, Bucket
from storage.bucket_errors import NoBucket
from storage.bucket_tables import BUCKETS, NAME
from storage.ids import Clock, Ids
from storage.interface import Store

DEFAULT = "fs"
"""The bucket that exists from the start."""


class Buckets:
    """``concurrency``: of each stream, as for a bucket."""

    def __init__(self, store: Store, *, ids: Ids, clock: Clock, concurrency: int = 10) -> None:
        self._store, self._ids, self._clock, self._concurrency = store, ids, clock, concurrency
        self._open: dict[str, Bucket] = {}

    def open(self, name: str) -> Bucket:
        """A bucket that was made. Raises NoBucket."""
        if name not in self._open:  # a bucket is never removed
            if not NAME.fullmatch(name) or self._store.get(BUCKETS, (name,)) is None:
                raise NoBucket(f"bucket {name[:80]}: there is no such bucket")
            self._open[name] = self._bucket(name)
        return self._open[name]

    def make(self, name: str, *, shards: int = SHARDS) -> Bucket:
        """Make a bucket, unless it is there. Raises ValueError for a name that can't be."""
        bucket = self._bucket(name)
        bucket.init(shards=shards)
        return bucket

    def names(self) -> Iterator[str]:
        """All of them, in no order. Walks a small table: for the command line."""
        cursor: bytes | None = None
        while True:
            rows, cursor = self._store.scan(BUCKETS, cursor)
            yield from (row["name"] for row in rows)
            if cursor is None:
                return

    def sweep(self, name: str, grace: int) -> None:
        """Work off a candidate of kind ``file``: its id is bucket/file_id, ``grace`` is microseconds."""
        bucket, _, file_id = name.partition("/")
        with suppress(NoBucket):  # an announcement comes before anything else
            self.open(bucket).sweep(file_id, grace)

    def _bucket(self, name: str) -> Bucket:
        return Bucket(self._store, name, concurrency=self._concurrency, ids=self._ids, clock=self._clock)
