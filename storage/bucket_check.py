"""A look at everything in a bucket: records, chunks, index rows. Repairs only when told.

Runs beside everything else: whatever looks wrong is looked at a second time before it counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from storage.bucket_chunks import Chunks
from storage.bucket_errors import ChunkMissing, ChunkWrongSize, CorruptFile, ExtraChunk
from storage.bucket_index import HOUR, HOURS, Index
from storage.bucket_record import CHUNK_SIZE, FileRecord, Status
from storage.bucket_states import States
from storage.bucket_tables import BucketTables
from storage.ids import Clock, moment_of
from storage.interface import Store
from storage.table import Row, Table

KEPT: Final = 1000
PAGE: Final = 500


class Wrong(StrEnum):
    """Kinds of what must not be, and what a repair does about it."""

    ABANDONED = "abandoned"  # an upload that nobody goes on with; removed
    HALF_DELETED = "half deleted"  # a removal that nobody goes on with; finished
    MISSING = "missing"  # a chunk is missing; nothing can be done
    WRONG_SIZE = "wrong size"  # a chunk has a wrong length; nothing
    DAMAGED = "damaged"  # a chunk, or the whole, doesn't match its checksum; nothing
    EXTRA = "extra"  # a chunk behind the last one; deleted
    UNOWNED = "unowned"  # chunks that no record names; erased
    UNLISTED = "unlisted"  # a file lacks index rows; put back
    STALE = "stale"  # index rows that show nothing; deleted


@dataclass(frozen=True)
class Finding:
    kind: Wrong
    file_id: str
    chunk: int | None
    text: str
    repaired: bool


@dataclass
class Report:
    """Counts of one check. ``findings`` holds the first thousand; ``found`` and ``repaired`` count all, by kind.
    ``bytes``: of the files that were looked at."""

    files: dict[str, int] = field(default_factory=lambda: dict.fromkeys(Status, 0))
    bytes: int = 0
    found: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong, or no longer."""
        return self.found == self.repaired

    def add(self, kind: Wrong, file_id: str, text: str, repaired: bool, chunk: int | None = None) -> None:
        self.found[kind.value] += 1
        if repaired:
            self.repaired[kind.value] += 1
        if len(self.findings) < KEPT:
            self.findings.append(Finding(kind, file_id, chunk, text, repaired))


class BucketCheck:
    def __init__(
        self, store: Store, tables: BucketTables, states: States, index: Index, chunks: Chunks, clock: Clock
    ) -> None:
        self._store, self._tables, self._states, self._index = store, tables, states, index
        self._chunks, self._clock = chunks, clock

    def run(self, older_than: int, repair: bool, progress: Callable[[int], object]) -> Report:
        report, before = Report(), self._clock() - older_than
        for done, row in enumerate(self._every_row(self._tables.files), 1):
            self._file(FileRecord.of(row), before, repair, report)
            progress(done)
        self._unowned(repair, report)
        for table in (self._tables.file_ix, self._tables.recent):
            self._stale(table, min(before, self._clock() - HOUR), repair, report)
        return report

    def _file(self, record: FileRecord, before: int, repair: bool, report: Report) -> None:
        report.files[record.status] += 1
        if record.erasing is not None:
            if record.erasing < before and self._stands(record):
                report.add(Wrong.HALF_DELETED, record.id, f"file {record.id}: its removal was broken off", repair)
                if repair:
                    self._states.clean(record.id, before)
        elif record.status is Status.INCOMPLETE:
            if record.alive < before and self._stands(record):
                text = f"file {record.id}: the upload of {record.filename!r} was broken off"
                report.add(Wrong.ABANDONED, record.id, text, repair)
                if repair:
                    self._states.clean(record.id, before)
        else:
            self._sound(record, repair, report)
            self._listed(record, repair, report)

    def _sound(self, record: FileRecord, repair: bool, report: Report) -> None:
        report.bytes += record.length or 0
        blobs = self._chunks.of(record)
        for damage in blobs.verify(record.blob):
            if not self._stands(record):
                return
            error = CorruptFile.of(damage)
            mended = repair and isinstance(error, ExtraChunk)
            report.add(_kind(error), record.id, str(error), mended, error.chunk)
            if mended and error.chunk is not None:
                blobs.drop_extra(record.blob, error.chunk)

    def _listed(self, record: FileRecord, repair: bool, report: Report) -> None:
        rows = self._index.rows(record)
        missing = [(table, row) for table, row in rows if self._store.get(table, table.key_of(row)) is None]
        if missing and self._stands(record):
            names = ", ".join(table.name for table, _ in missing)
            report.add(Wrong.UNLISTED, record.id, f"file {record.id}: is missing from {names}", repair)
            if repair:
                self._store.put_many(missing)

    def _unowned(self, repair: bool, report: Report) -> None:
        """Chunks are written after the record of their upload and erased before it."""
        blobs = self._chunks.sized(CHUNK_SIZE)  # of any chunk size: keys are the same
        seen: set[tuple[str, str]] = set()
        for found in blobs.scan():
            key = (found.owner, found.attempt)
            record = self._states.look(found.owner)
            if key in seen or (record is not None and record.attempt == found.attempt):
                continue
            if not self._store.read(self._tables.chunks, (*key, 0), limit=1, columns=("num",)):
                continue  # erased since
            seen.add(key)
            report.add(Wrong.UNOWNED, found.owner, f"file {found.owner}: has chunks and no record", repair)
            if repair:
                blobs.erase(found.owner, found.attempt)

    def _stale(self, table: Table, before: int, repair: bool, report: Report) -> None:
        """Rows young enough to belong to a change under way don't count."""
        for row in self._every_row(table):
            if row.get("span") == HOURS or moment_of(row["naming"]) >= before:
                continue
            record = self._states.look(row["file_id"])
            if record is not None and record.erasing is not None:
                continue  # they go with it
            if self._index.stale(row, record):
                text = f"file {row['file_id']}: {table.name} shows a state that it doesn't have"
                report.add(Wrong.STALE, row["file_id"], text, repair)
                if repair:
                    self._store.delete(table, table.key_of(row))

    def _stands(self, record: FileRecord) -> bool:
        """Whether the record still is as it was, so that what was found really is."""
        seen = self._states.look(record.id)
        return seen is not None and seen.rev == record.rev

    def _every_row(self, table: Table) -> Iterator[Row]:
        cursor: bytes | None = None
        while True:
            rows, cursor = self._store.scan(table, cursor, PAGE)
            yield from rows
            if cursor is None:
                return


def _kind(error: CorruptFile) -> Wrong:
    kinds = {ChunkMissing: Wrong.MISSING, ChunkWrongSize: Wrong.WRONG_SIZE, ExtraChunk: Wrong.EXTRA}
    return kinds.get(type(error), Wrong.DAMAGED)
