"""A bucket's index rows: files by name, and by the time at which they were finished.

A row is a hint (storage protocols, «Index maintenance»): it ends in the ``naming`` of a record, and shows that record
for as long as the two agree. So a file never lacks its rows, and a slow deleter can't hit those of a later state.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import groupby, islice
from operator import itemgetter
from typing import Final
from zlib import crc32

from storage.bucket_record import LISTED, FileRecord, Status
from storage.bucket_tables import BucketTables
from storage.interface import Store
from storage.table import Key, Row, Slice, Table

HOUR: Final = 3600 * 1_000_000
HOURS: Final = -1  # the span that lists the hours
PAGE: Final = 64
LAST: Final = chr(0x10FFFF)

Place = tuple[int, str]
"""finishedAt and id: the order of revisions."""


class Index:
    """``shards``: partitions that a bucket's names are spread over, fixed when it is made."""

    def __init__(self, store: Store, tables: BucketTables, shards: int) -> None:
        self._store, self._tables, self._shards = store, tables, shards

    def rows(self, record: FileRecord) -> list[tuple[Table, Row]]:
        """What has to be there before the record is committed."""
        if not record.is_listed:
            return []
        entries = self._entries(record, record.status)
        return [*entries, (self._tables.recent, self._hour(record))]

    def drop(self, record: FileRecord) -> None:
        """Delete the rows that a record had, or would have had, under its ``naming``, in whichever state."""
        if record.finished_at is None:
            return
        for status in LISTED if record.erasing else (record.status,):
            for table, row in self._entries(record, status):
                self._store.delete(table, table.key_of(row))

    def newest(self, filename: str) -> int:
        """When the newest revision of a name was finished, or is about to be; 0 if there is none."""
        rows = self._revision_page(Status.COMPLETE, filename, None, True, 1)
        return int(rows[0]["finishedAt"]) if rows else 0

    def revisions(
        self, filename: str, status: Status, *, newest_first: bool, after: Place | None = None
    ) -> Iterator[FileRecord]:
        """The files of one name by (finishedAt, id), from one of them on."""
        return self._verified(self._revisions(filename, status, newest_first, after))

    def by_name(
        self, status: Status, prefix: str, *, newest_first: bool, after: tuple[str, int, str] | None = None
    ) -> Iterator[FileRecord]:
        """The files whose names begin so, by name; in each name by (finishedAt, id).
        ``after``: filename, finishedAt and id of the last one seen."""
        return self._verified(self._by_name(status, prefix, newest_first, after))

    def by_time(self, status: Status, *, newest_first: bool) -> Iterator[FileRecord]:
        """All files by (finishedAt, id)."""
        return self._verified(self._by_time(status, newest_first))

    def stale(self, row: Row, record: FileRecord | None) -> bool:
        """Whether an index row shows no state of its file, whose record this is."""
        return record is None or not record.is_listed or row["naming"] != record.naming

    def _entries(self, record: FileRecord, status: Status) -> list[tuple[Table, Row]]:
        assert record.finished_at is not None
        entry: Row = {
            "status": status.value,
            "finishedAt": record.finished_at,
            "file_id": record.id,
            "naming": record.naming,
        }
        shard = self._shard(record.filename)
        return [
            (self._tables.file_ix, entry | {"shard": shard, "filename": record.filename}),
            (self._tables.recent, entry | {"span": record.finished_at // HOUR}),
        ]

    def _hour(self, record: FileRecord) -> Row:
        hour = (record.finished_at or 0) // HOUR
        return {"status": record.status.value, "span": HOURS, "finishedAt": hour, "file_id": "", "naming": ""}

    def _shard(self, filename: str) -> int:
        return crc32(filename.encode()) % self._shards

    def _verified(self, entries: Iterator[Row]) -> Iterator[FileRecord]:
        """The records that index rows show."""
        size = 1  # a look at the newest shouldn't fetch a page
        while page := list(islice(entries, size)):
            size = min(4 * size, PAGE)
            found = self._store.fetch((self._tables.files, (entry["file_id"],)) for entry in page)
            for entry, rows in zip(page, found, strict=True):
                record = FileRecord.of(rows[0]) if rows else None
                if record is not None and not self.stale(entry, record):
                    yield record

    def _revisions(self, filename: str, status: Status, newest_first: bool, after: Place | None) -> Iterator[Row]:
        bound: Key | None = after
        limit = 4
        while page := self._revision_page(status, filename, bound, newest_first, limit):
            yield from page
            if len(page) < limit:
                return
            limit = PAGE
            bound = tuple(page[-1][name] for name in ("finishedAt", "file_id", "naming"))

    def _revision_page(
        self, status: Status, filename: str, bound: Key | None, newest_first: bool, limit: int
    ) -> list[Row]:
        after, before = (None, bound) if newest_first else (bound, None)
        return self._store.read(
            self._tables.file_ix,
            (self._shard(filename),),
            prefix=(status.value, filename),
            after=after,
            before=before,
            limit=limit,
            reverse=newest_first,
        )

    def _by_name(
        self, status: Status, prefix: str, newest_first: bool, after: tuple[str, int, str] | None
    ) -> Iterator[Row]:
        low: Key | None = (below(prefix),) if prefix else None
        if after is not None:
            name, created, file_id = after
            yield from self._revisions(name, status, newest_first, (created, file_id))
            low = (name,)
        high = above(prefix)
        slices = [self._name_slice(shard, status, low, high) for shard in range(self._shards)]
        first = self._store.fetch(slices)
        shards = [self._names(one, page) for one, page in zip(slices, first, strict=True)]
        for name, rows in heapq.merge(*shards, key=itemgetter(0)):
            if not name.startswith(prefix):
                continue
            if rows is None:
                yield from self._revisions(name, status, newest_first, None)
            else:
                yield from reversed(rows) if newest_first else rows

    def _name_slice(self, shard: int, status: Status, low: Key | None, high: str | None) -> Slice:
        before = None if high is None else (high,)
        return Slice(self._tables.file_ix, (shard,), (status.value,), low, before, PAGE)

    def _names(self, asked: Slice, page: list[Row]) -> Iterator[tuple[str, list[Row] | None]]:
        """The names of a shard, each with its rows, or with None for one that a page didn't show whole."""
        while page:
            whole = len(page) < PAGE
            for name, group in groupby(page, key=itemgetter("filename")):
                rows = list(group)
                yield name, rows if whole or rows[-1] is not page[-1] else None
            if whole:
                return
            page = self._store.read(
                asked.table,
                asked.partition,
                prefix=asked.prefix,
                after=(page[-1]["filename"],),
                before=asked.before,
                limit=PAGE,
            )

    def _by_time(self, status: Status, newest_first: bool) -> Iterator[Row]:
        for hour in self._pages((status.value, HOURS), newest_first):
            yield from self._pages((status.value, hour["finishedAt"]), newest_first)

    def _pages(self, partition: Key, newest_first: bool) -> Iterator[Row]:
        bound: Key | None = None
        while page := self._store.read(
            self._tables.recent,
            partition,
            after=None if newest_first else bound,
            before=bound if newest_first else None,
            limit=PAGE,
            reverse=newest_first,
        ):
            yield from page
            if len(page) < PAGE:
                return
            bound = tuple(page[-1][name] for name in ("finishedAt", "file_id", "naming"))


def below(prefix: str) -> str:
    """A text before every text that begins so, and not long before."""
    before = ord(prefix[-1]) - 1
    if 0xD800 <= before <= 0xDFFF:  # surrogates are in no text
        before = 0xD7FF
    return prefix[:-1] + chr(before) + LAST if before >= 0 else prefix[:-1]


def above(prefix: str) -> str | None:
    """The first text after every text that begins so; None if there is none."""
    prefix = prefix.rstrip(LAST)
    if not prefix:
        return None
    after = ord(prefix[-1]) + 1
    return prefix[:-1] + chr(0xE000 if 0xD800 <= after <= 0xDFFF else after)
