"""ReGrid's bucket: files of any size in chunks, with hashes, revisions and states, over any storage plugin.

The interface is the seed's, in Python's words; what the seed leaves open (finding, deleting, renaming, maintenance) is
as ReGrid's library and GridFS have it. Thread-safe; a stream belongs to one thread at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import islice
from typing import Any, BinaryIO, Final

from storage import bucket_download
from storage.bucket_check import BucketCheck, Report
from storage.bucket_chunks import Chunks
from storage.bucket_download import DownloadStream, check_range
from storage.bucket_errors import NoBucket, NoFile, NoRevision
from storage.bucket_find import Page, Pattern, Search
from storage.bucket_index import Index
from storage.bucket_record import (
    CHUNK_SIZE,
    FileRecord,
    Status,
    check_chunk_size,
    check_filename,
    check_id,
    check_metadata,
)
from storage.bucket_states import States, check_complete
from storage.bucket_tables import BUCKETS, tables_of
from storage.bucket_upload import UploadStream
from storage.ids import Clock, Ids, system_clock
from storage.interface import Store
from storage.schema import CANDIDATES, LEASES
from storage.table import ABSENT, Put, Row

SHARDS: Final = 32
"""Partitions of a bucket's names: up to 16 million files before one of them grows beyond 64 MiB."""
DAY: Final = 86400 * 1_000_000


class Bucket:
    """``name``: ``[a-z][a-z0-9_]{0,39}``. ``concurrency``: chunk operations in flight, and so chunks in memory, of one
    stream."""

    def __init__(
        self,
        storage: Store,
        name: str = "fs",
        *,
        chunk_size_bytes: int = CHUNK_SIZE,
        concurrency: int = 10,
        ids: Ids | None = None,
        clock: Clock = system_clock,
    ) -> None:
        self.name = name
        self._store, self._tables = storage, tables_of(name)
        self._chunk_size = check_chunk_size(chunk_size_bytes)
        self._chunks = Chunks(storage, self._tables.chunks, concurrency)
        self._ids, self._clock = ids or Ids(clock), clock

    def init(self, *, shards: int = SHARDS) -> None:
        """Make the tables that are missing, those that buckets share too; usable on return, in an empty store as well.
        Idempotent, safe from several processes. ``shards`` is fixed by the first. Raises SchemaMismatch when a table of
        these names has another shape."""
        if shards < 1:
            raise ValueError(f"{shards} shards")
        self._store.create([BUCKETS, CANDIDATES, LEASES, *self._tables.all])
        row: Row = {"name": self.name, "shards": shards, "created": self._clock()}
        if self._store.get(BUCKETS, (self.name,)) is None:
            self._store.commit(BUCKETS, (self.name,), [Put(row, ABSENT)])

    def open_upload_stream(
        self,
        filename: str,
        *,
        chunk_size_bytes: int | None = None,
        metadata: Any = None,
        file_id: str | None = None,
    ) -> UploadStream:
        """A writable binary file object; the file is there once it is closed. ``metadata``: any JSON value.

        Raises ValueError for what can't be a filename, an id, a chunk size or metadata; FileExists for a duplicate id.
        """
        chunk_size = self._chunk_size if chunk_size_bytes is None else check_chunk_size(chunk_size_bytes)
        now = self._clock()
        record = FileRecord(
            id=self._ids.random() if file_id is None else check_id(file_id),
            filename=check_filename(filename),
            status=Status.INCOMPLETE,
            chunk_size_bytes=chunk_size,
            started_at=now,
            metadata=check_metadata(metadata),
            attempt=self._ids.ordered(),
            alive=now,
        )
        record = self._states.begin(record)
        writer = self._chunks.of(record).create(record.id, record.attempt)
        return UploadStream(self._states, writer, record, self._clock)

    def upload_from_stream(
        self,
        filename: str,
        source: BinaryIO,
        *,
        chunk_size_bytes: int | None = None,
        metadata: Any = None,
        file_id: str | None = None,
    ) -> FileRecord:
        """Store all that a source still has. The source isn't closed."""
        with self.open_upload_stream(
            filename, chunk_size_bytes=chunk_size_bytes, metadata=metadata, file_id=file_id
        ) as stream:
            stream.write_all(source)
        return stream.record

    def open_download_stream(self, file_id: str, *, start: int = 0, end: int | None = None) -> DownloadStream:
        """The bytes [start, end) as a seekable binary file object, positions counted from ``start``.

        Raises NoFile, FileNotReady, InvalidRange; its reads raise CorruptFile.
        """
        record = self._complete(file_id)
        start, end = check_range(record, start, end)
        return DownloadStream(self._chunks.of(record), record, start, end)

    def open_download_stream_by_name(self, filename: str, revision: int = -1) -> DownloadStream:
        """Raises NoFile or NoRevision, and as above."""
        record = self.get_by_name(filename, revision)
        return DownloadStream(self._chunks.of(record), record, 0, record.blob.size)

    def pieces(self, record: FileRecord, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """The bytes [start, end), chunk by chunk, as they come from the store. Raises InvalidRange; while iterated,
        CorruptFile, for a whole file before its last chunk."""
        check_complete(record)
        start, end = check_range(record, start, end)
        return bucket_download.pieces(self._chunks.of(record), record, start, end)

    def download_to_stream(self, file_id: str, destination: BinaryIO) -> FileRecord:
        """Write all bytes of a file. Raises NoFile, FileNotReady, CorruptFile."""
        return self._download(self._complete(file_id), destination)

    def download_to_stream_by_name(self, filename: str, destination: BinaryIO, revision: int = -1) -> FileRecord:
        return self._download(self.get_by_name(filename, revision), destination)

    def get(self, file_id: str) -> FileRecord:
        """A file's record, whatever its status. Raises NoFile."""
        return self._states.find(file_id)

    def get_by_name(self, filename: str, revision: int = -1) -> FileRecord:
        """A Complete file. ``revision``: 0 the oldest, 1 the one after it …; -1 the newest, -2 the one before it …
        Raises NoFile when the name has none, NoRevision when it hasn't so many."""
        newest_first = revision < 0
        found = self._index.revisions(filename, Status.COMPLETE, newest_first=newest_first)
        place = -1 - revision if newest_first else revision
        last = deque(enumerate(islice(found, place + 1)), maxlen=1)
        if not last:
            raise NoFile(f"file {filename!r}: there is no such file")
        [(number, record)] = last
        if number < place:
            raise NoRevision(f"file {filename!r}: there is no revision {revision}, of {number + 1}")
        return record

    def revisions(self, filename: str) -> list[FileRecord]:
        """The Complete files of a name, oldest first: what stands at [r] is revision r."""
        return list(self._index.revisions(filename, Status.COMPLETE, newest_first=False))

    def find(
        self,
        *,
        filename: str | None = None,
        pattern: Pattern | None = None,
        prefix: str | None = None,
        metadata: dict[str, Any] | None = None,
        status: str = Status.COMPLETE,
        newest_first: bool = True,
        skip: int = 0,
        limit: int | None = None,
    ) -> Iterator[FileRecord]:
        """Files by finishedAt; with ``prefix`` by name, and by finishedAt within a name. All conditions must hold.

        ``pattern`` is looked for anywhere in a name: a text in RE2's syntax, or a compiled one of :mod:`re`.
        ``metadata``: these items must be in the file's. Both are full scans (of what ``filename`` or ``prefix``
        leaves), and so is the status Incomplete. Raises ValueError for a pattern that isn't one.
        """
        return self._search.find(
            filename=filename,
            pattern=pattern,
            prefix=prefix,
            metadata=metadata,
            status=Status(status),
            newest_first=newest_first,
            skip=skip,
            limit=limit,
        )

    def page(
        self,
        *,
        filename: str | None = None,
        prefix: str = "",
        pattern: Pattern | None = None,
        after: tuple[str, int, str] | None = None,
        limit: int = 100,
    ) -> Page:
        """One page of Complete files by name, newest first within a name. Bounded work: a page may be short, even
        empty, before the end. ``after``: what the page before ended with."""
        return self._search.page(filename=filename, prefix=prefix, pattern=pattern, after=after, limit=limit)

    def delete(self, file_id: str, *, hard: bool = False) -> None:
        """Hide a file and keep its chunks; with ``hard`` remove it for ever, or an upload under way.

        Can be repeated after a crash at any point. Raises NoFile; FileNotReady for an upload, unless ``hard``.
        """
        if hard:
            self._states.remove(file_id)
        else:
            self._states.delete(file_id)

    def delete_by_name(self, filename: str, *, hard: bool = False) -> int:
        """Delete all revisions of a name, one after the other; with ``hard`` those deleted before too. How many.
        Raises NoFile when there is none."""
        statuses = (Status.COMPLETE, Status.DELETED) if hard else (Status.COMPLETE,)
        return self._of_each(filename, statuses, lambda file_id: self.delete(file_id, hard=hard))

    def rename(self, file_id: str, new_filename: str) -> FileRecord:
        """Raises NoFile, FileNotReady, ValueError. finishedAt stays, and with it the place among the revisions."""
        return self._states.rename(file_id, check_filename(new_filename))

    def rename_by_name(self, filename: str, new_filename: str) -> int:
        """Rename all revisions of a name, one after the other; how many. Raises NoFile when there is none."""
        check_filename(new_filename)
        return self._of_each(filename, (Status.COMPLETE,), lambda file_id: self.rename(file_id, new_filename))

    def replace_metadata(self, file_id: str, metadata: Any) -> FileRecord:
        """Raises NoFile, FileNotReady, ValueError."""
        return self._states.replace_metadata(file_id, check_metadata(metadata))

    def check(
        self,
        older_than: int = DAY,
        repair: bool = False,
        progress: Callable[[int], object] = lambda done: None,
    ) -> Report:
        """Look at every file, chunk and index row, and report what is wrong; with ``repair`` mend what can be mended.

        ``older_than``: microseconds without a sign of life after which an upload, or a removal, counts as abandoned.
        ``progress`` is told how many files are done. Runs beside everything else.
        """
        check = BucketCheck(self._store, self._tables, self._states, self._index, self._chunks, self._clock)
        return check.run(older_than, repair, progress)

    def sweep(self, file_id: str, grace: int) -> None:
        """What the sweep does with an announced file: remove an upload that has shown no sign of life for ``grace``
        microseconds, and what is half removed."""
        if not self._states.clean(file_id, self._clock() - grace):
            self._states.announce(file_id)

    @cached_property
    def _index(self) -> Index:
        row = self._store.get(BUCKETS, (self.name,))
        if row is None:
            raise NoBucket(f"bucket {self.name}: there is no such bucket; init() makes it")
        return Index(self._store, self._tables, row["shards"])

    @cached_property
    def _states(self) -> States:
        erase = self._chunks.erase
        return States(self._store, self.name, self._tables, self._index, erase, self._ids, self._clock)

    @cached_property
    def _search(self) -> Search:
        return Search(self._store, self._tables, self._index)

    def _complete(self, file_id: str) -> FileRecord:
        record = self.get(file_id)
        check_complete(record)
        return record

    def _download(self, record: FileRecord, destination: BinaryIO) -> FileRecord:
        for piece in self.pieces(record):
            destination.write(piece)
        return record

    def _of_each(self, filename: str, statuses: tuple[Status, ...], act: Callable[[str], object]) -> int:
        """Act on each revision; one that goes away meanwhile isn't counted."""
        found = [
            record.id for status in statuses for record in self._index.revisions(filename, status, newest_first=False)
        ]
        if not found:
            raise NoFile(f"file {filename!r}: there is no such file")
        done = 0
        for file_id in found:
            try:
                act(file_id)
                done += 1
            except NoFile:
                pass
        return done
