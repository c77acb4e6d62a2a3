"""Blobs in the chunk tables of any plugin: a row for each part, a partition for each bucket of parts.

The table's partition key is (owner, attempt, bucket) and its clustering key (part), whatever their names are; ``data``
and ``crc`` hold the bytes and their :func:`~storage.blobs.checksum`; an ``id``, where a table has one, is unique. Parts
are written in order, so an empty bucket is the last one; buckets are erased from the last to the first, so that this
stays true of one that is half erased.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from storage.blobs import Blob, BlobReader, Found, check_range, checksum, verified
from storage.errors import Damaged, ExtraPart, KeyTaken, WrongChecksum
from storage.interface import Store
from storage.parts import PartWriter
from storage.schema import ORIGINALS_DATA
from storage.table import Key, Kind, Row, Slice, Table


class ChunkBlobs:
    """``part_size`` is of the blobs written here, those read have their own. ``bucket_parts`` is fixed for a table.
    ``window``: parts in flight, and so in memory, of one writer or reader."""

    def __init__(
        self,
        store: Store,
        table: Table = ORIGINALS_DATA,
        *,
        part_size: int = 512 * 1024,
        bucket_parts: int = 64,
        window: int = 4,
    ) -> None:
        shape = (table.kind, len(table.partition), len(table.clustering))
        if shape != (Kind.PLAIN, 3, 1) or not {"data", "crc"} <= table.columns.keys():
            raise ValueError(f"table {table.name} can't hold parts")
        if not 1 <= window <= bucket_parts:  # else a bucket could stay empty before one that isn't
            raise ValueError(f"a window of {window} parts, and buckets of {bucket_parts}")
        self._store, self._table = store, table
        self._part_size, self._bucket_parts, self._window = part_size, bucket_parts, window

    def create(self, owner: str, attempt: str) -> PartWriter:
        if self._store.read(self._table, (owner, attempt, 0), limit=1, columns=self._table.clustering):
            raise KeyTaken(f"blob {owner}/{attempt} exists")
        return _ChunkWriter(self, owner, attempt, self._part_size, self._window)

    def open(self, blob: Blob) -> BlobReader:
        return BlobReader(blob, self.parts)

    def parts(self, blob: Blob, start: int, stop: int) -> Iterator[bytes]:
        check_range(blob, start, stop)
        return self._pieces(blob, start, stop)

    def verify(self, blob: Blob) -> Iterator[Damaged]:
        whole, sound = hashlib.sha256(), True
        for part, row in self._rows(blob, range(blob.parts)):
            try:
                whole.update(_verified(blob, part, row))
            except Damaged as damage:
                sound = False
                yield damage
        for extra in self.extra(blob):
            sound = False
            yield extra
        if sound and whole.hexdigest() != blob.sha256:
            yield WrongChecksum(blob.owner, blob.attempt, -1, "the whole doesn't match its sha256")

    def extra(self, blob: Blob) -> Iterator[ExtraPart]:
        """Parts behind the last one; empty ones do no harm."""
        (number,) = self._table.clustering
        last = blob.parts - 1
        bucket = self.bucket_of(max(0, last))
        for rows in self._store.fetch(
            [
                Slice(self._table, (blob.owner, blob.attempt, bucket), after=(last,), limit=2),
                Slice(self._table, (blob.owner, blob.attempt, bucket + 1), limit=2),
            ]
        ):
            for row in rows:
                if row["data"]:
                    yield ExtraPart(blob.owner, blob.attempt, row[number], "lies behind the last one")

    def drop_extra(self, blob: Blob, part: int) -> None:
        """Delete one of these."""
        if part < blob.parts:
            raise ValueError(f"part {part} of blob {blob.owner}/{blob.attempt} is one of its own")
        self._store.delete(self._table, (blob.owner, blob.attempt, self.bucket_of(part), part))

    def has(self, owner: str, attempt: str) -> bool:
        return self._has_bucket(owner, attempt, 0)

    def erase(self, owner: str, attempt: str) -> None:
        bucket = 0
        while self._has_bucket(owner, attempt, bucket):
            bucket += 1
        self.erase_buckets(owner, attempt, bucket)

    def erase_buckets(self, owner: str, attempt: str, last: int) -> None:
        """Erase the buckets up to and with ``last``."""
        for bucket in range(last, -1, -1):
            self._store.erase(self._table, (owner, attempt, bucket))

    def _has_bucket(self, owner: str, attempt: str, bucket: int) -> bool:
        return bool(self._store.read(self._table, (owner, attempt, bucket), limit=1, columns=self._table.clustering))

    def scan(self) -> Iterator[Found]:
        before: Key | None = None
        cursor: bytes | None = None
        while True:
            rows, cursor = self._store.scan(self._table, cursor, columns=self._table.partition)
            for row in rows:
                owner, attempt, _ = self._table.partition_of(row)
                if (owner, attempt) != before:
                    before = (owner, attempt)
                    yield Found(str(owner), str(attempt), None)
            if cursor is None:
                return

    def path(self, blob: Blob) -> Path | None:
        return None

    def bucket_of(self, part: int) -> int:
        return part // self._bucket_parts

    def write(self, owner: str, attempt: str, parts: Iterable[tuple[int, bytes]]) -> None:
        """Write parts by number. Durable on return."""
        rows = ((self._table, self._row(owner, attempt, part, data)) for part, data in parts)
        self._store.put_many(rows, window=self._window)

    def _row(self, owner: str, attempt: str, part: int, data: bytes) -> Row:
        key = owner, attempt, self.bucket_of(part), part
        row: Row = dict(zip(self._table.key, key, strict=True))
        if "id" in self._table.columns:
            row["id"] = f"{attempt}-{part}"
        return row | {"data": data, "crc": checksum(owner, attempt, part, data)}

    def _pieces(self, blob: Blob, start: int, stop: int) -> Iterator[bytes]:
        first, end = start // blob.part_size, -(-stop // blob.part_size)
        for part, row in self._rows(blob, range(first, end if start < stop else first)):
            data, begin = _verified(blob, part, row), part * blob.part_size
            yield data[max(0, start - begin) : stop - begin]

    def _rows(self, blob: Blob, parts: range) -> Iterator[tuple[int, Row | None]]:
        keys = ((self._table, (blob.owner, blob.attempt, self.bucket_of(part), part)) for part in parts)
        for part, rows in zip(parts, self._store.fetch(keys, self._window), strict=True):
            yield part, rows[0] if rows else None


class _ChunkWriter(PartWriter):
    def __init__(self, blobs: ChunkBlobs, owner: str, attempt: str, part_size: int, window: int) -> None:
        super().__init__(owner, attempt, part_size)
        self._blobs, self._window = blobs, window
        self._waiting: list[tuple[int, bytes]] = []
        self._last = -1  # the last part that may have reached the store

    def _keep(self, part: int, data: bytes) -> None:
        self._waiting.append((part, data))
        if len(self._waiting) == self._window:
            self._flush()

    def _publish(self) -> None:
        self._flush()

    def _discard(self) -> None:
        self._waiting.clear()
        if self._last >= 0:
            self._blobs.erase_buckets(self.owner, self.attempt, self._blobs.bucket_of(self._last))

    def _flush(self) -> None:
        if self._waiting:
            self._last = self._waiting[-1][0]
            self._blobs.write(self.owner, self.attempt, self._waiting)
            self._waiting = []


def _verified(blob: Blob, part: int, row: Row | None) -> bytes:
    return verified(blob, part, None, "") if row is None else verified(blob, part, row["data"], row["crc"])
