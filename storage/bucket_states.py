"""Every change of a file's record, by compare-and-set, with the index rows that it needs (storage protocols, «Files»).

Incomplete → Complete → Deleted, or Incomplete → removed. What is to be removed is announced to the sweep before and
marked ``erasing`` first: from then on nobody can complete, open or list it, and whoever comes by can finish the work.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Final, NoReturn

from storage.announcements import Litter, announcement
from storage.bucket_errors import FileExists, FileNotReady, NoFile
from storage.bucket_index import Index
from storage.bucket_record import FileRecord, Status
from storage.bucket_tables import BucketTables
from storage.errors import Unavailable
from storage.ids import Clock, Ids
from storage.interface import Store
from storage.schema import LEASES
from storage.table import ABSENT, Put, Remove, Row

ROUNDS: Final = 20  # each lost race means that somebody else went on, so that many in a row tell of a sick store
STALE: Final = 60 * 1_000_000  # µs between an index row and its record, after which a new naming is needed

Erase = Callable[[FileRecord], None]


class States:
    """``erase`` removes a file's chunks, for ever."""

    def __init__(
        self, store: Store, bucket: str, tables: BucketTables, index: Index, erase: Erase, ids: Ids, clock: Clock
    ) -> None:
        self._store, self._bucket, self._files, self._index = store, bucket, tables.files, index
        self._erase, self._ids, self._clock = erase, ids, clock

    def find(self, file_id: str) -> FileRecord:
        """Raises NoFile for an id that is unknown, or whose file is being removed."""
        record = self.look(file_id)
        if record is None or record.erasing is not None:
            raise NoFile(f"file {file_id}: there is no such file")
        return record

    def look(self, file_id: str) -> FileRecord | None:
        """Whatever there is of a file."""
        row = self._store.get(self._files, (file_id,))
        return FileRecord.of(row) if row else None

    def begin(self, record: FileRecord) -> FileRecord:
        """The record of an upload that starts now. Raises FileExists."""
        with self._store.unit():
            self.announce(record.id)
            outcome = self._store.commit(self._files, (record.id,), [Put(record.row(), ABSENT)])
        if not outcome:
            raise FileExists(f"file {record.id}: the id is in use")
        return dataclasses.replace(record, rev=outcome.rev)

    def renew(self, record: FileRecord) -> FileRecord:
        """A sign of life. Raises NoFile when the upload was removed."""
        alive = dataclasses.replace(record, alive=self._clock())
        return self._replace(record, alive) or _lost(record)

    def complete(self, record: FileRecord, length: int, sha256: str) -> FileRecord:
        """All chunks are there: the upload becomes the newest revision of its name. Raises NoFile when it was removed
        meanwhile."""
        with self._store.unit():
            finished = max(self._clock(), record.started_at, self._index.newest(record.filename) + 1)
            complete = dataclasses.replace(
                record, status=Status.COMPLETE, length=length, sha256=sha256, finished_at=finished
            )
            return self._replace(record, complete) or _lost(record)

    def complete_first(self, record: FileRecord, length: int, sha256: str) -> FileRecord:
        """The same, and no other upload that asks for this can have the name too. Raises FileExists."""
        key = (f"file:{self._bucket}:{record.filename}",)
        rev = self._take_name(key, record)
        exists = any(True for _ in self._index.revisions(record.filename, Status.COMPLETE, newest_first=True))
        done = None if exists else self.complete(record, length, sha256)
        self._store.commit(LEASES, key, [Remove(key, rev)])
        if done is None:
            raise FileExists(f"file {record.id}: there is a {record.filename!r}")
        return done

    def rename(self, file_id: str, filename: str) -> FileRecord:
        """Keeps finishedAt: the file takes its place among the revisions of its new name."""

        def renamed(record: FileRecord) -> FileRecord:
            check_complete(record)
            return record if record.filename == filename else dataclasses.replace(record, filename=filename)

        return self._change(file_id, renamed)

    def replace_metadata(self, file_id: str, metadata: object) -> FileRecord:
        def changed(record: FileRecord) -> FileRecord:
            check_complete(record)
            return dataclasses.replace(record, metadata=metadata)

        return self._change(file_id, changed)

    def delete(self, file_id: str) -> FileRecord:
        """Hide a file and keep its chunks. Deleted already: nothing happens. Raises FileNotReady for an upload under
        way."""

        def deleted(record: FileRecord) -> FileRecord:
            if record.status is Status.DELETED:
                return record
            check_complete(record)
            return self._deleted(record)

        return self._change(file_id, deleted)

    def remove(self, file_id: str) -> None:
        """Remove a file or an upload with all there is of it. Finishes what was broken off. Raises NoFile."""
        record = self.look(file_id)
        if record is None:
            raise NoFile(f"file {file_id}: there is no such file")
        self.announce(file_id)
        self._take_down(file_id, lambda seen: seen.attempt == record.attempt)

    def abandon(self, record: FileRecord) -> None:
        """Remove an upload, unless it was completed after all: an unknown outcome may have been one."""
        self._take_down(record.id, lambda seen: seen.attempt == record.attempt and seen.status is Status.INCOMPLETE)
        seen = self.look(record.id)
        if seen is None or seen.attempt != record.attempt:
            self._erase(record)  # what was written after somebody else had removed the upload

    def clean(self, file_id: str, before: int) -> bool:
        """Remove an upload without a sign of life since ``before``, and what is half removed. False while there is an
        upload under way."""
        self._take_down(file_id, lambda seen: seen.status is Status.INCOMPLETE and seen.alive < before)
        record = self.look(file_id)
        return record is None or record.status is not Status.INCOMPLETE

    def announce(self, file_id: str) -> None:
        """Tell the sweep of what may become litter."""
        self._store.put(*announcement(Litter.FILE, f"{self._bucket}/{file_id}", self._clock()))

    def _change(self, file_id: str, change: Callable[[FileRecord], FileRecord]) -> FileRecord:
        for _ in range(ROUNDS):
            with self._store.unit():
                record = self.find(file_id)
                wanted = change(record)
                done = record if wanted is record else self._replace(record, wanted)
            if done is not None:
                return done
        raise Unavailable(f"file {file_id} changes all the time; try again")

    def _replace(self, record: FileRecord, wanted: FileRecord) -> FileRecord | None:
        """Commit ``wanted`` over ``record``: its index rows before, those of the old state dropped after. None when
        somebody else was quicker."""
        moved = _place(record) != _place(wanted)
        while True:
            started = self._clock()
            if moved and wanted.is_listed:
                wanted = dataclasses.replace(wanted, naming=self._ids.ordered())
                self._store.put_many(self._index.rows(wanted))
            if self._clock() - started <= STALE:
                break
            self._index.drop(wanted)
        outcome = self._store.commit(self._files, (record.id,), [Put(wanted.row(), record.rev)])
        if outcome:
            if moved and wanted.is_listed:
                self._index.drop(record)
            return dataclasses.replace(wanted, rev=outcome.rev)
        if moved and wanted.is_listed:
            seen = self.look(record.id)
            if seen is not None and seen.naming == wanted.naming:
                return seen  # it was applied, and then overtaken by a change that moved nothing
            self._index.drop(wanted)
        return None

    def _take_down(self, file_id: str, wanted: Callable[[FileRecord], bool]) -> None:
        """Mark what is there, if it is wanted, and remove what is marked."""
        for _ in range(ROUNDS):
            record = self.look(file_id)
            if record is None:
                return
            if record.erasing is None:
                if not wanted(record):
                    return
                self._replace(record, self._doomed(record))
            elif self._finish(record):
                return
        raise Unavailable(f"file {file_id} changes all the time; try again")

    def _doomed(self, record: FileRecord) -> FileRecord:
        if record.status is Status.COMPLETE:
            record = self._deleted(record)
        return dataclasses.replace(record, erasing=self._clock())

    def _finish(self, record: FileRecord) -> bool:
        """The record goes last: a crash before it can be resumed. False when somebody else was quicker."""
        self._erase(record)
        self._index.drop(record)
        return bool(self._store.commit(self._files, (record.id,), [Remove((record.id,), record.rev)]))

    def _deleted(self, record: FileRecord) -> FileRecord:
        moment = max(self._clock(), record.finished_at or 0)
        return dataclasses.replace(record, status=Status.DELETED, deleted_at=moment)

    def _take_name(self, key: tuple[str], record: FileRecord) -> str:
        """The right to be the first of a name, held for as long as a completion takes. A holder that crashed holds it
        until its upload is cleaned away."""
        row: Row = {"name": key[0], "owner": record.id}
        for _ in range(ROUNDS):
            outcome = self._store.commit(LEASES, key, [Put(row, ABSENT)])
            if outcome:
                return outcome.rev
            met = outcome.rows[0]
            if met is None:
                continue
            holder = self.look(met["owner"])
            if met["owner"] != record.id and holder is not None and holder.status is Status.INCOMPLETE:
                raise FileExists(f"file {record.id}: {record.filename!r} is being uploaded by another, {holder.id}")
            self._store.commit(LEASES, key, [Remove(key, met["rev"])])
        raise Unavailable(f"file {record.id}: its name changes hands all the time; try again")


def check_complete(record: FileRecord) -> None:
    if record.status is Status.INCOMPLETE:
        raise FileNotReady(f"file {record.id}: its upload isn't complete")
    if record.status is Status.DELETED:
        raise NoFile(f"file {record.id}: it is deleted")


def _place(record: FileRecord) -> tuple[object, ...]:
    """What the index rows of a record depend on."""
    return (record.status, record.filename, record.finished_at) if record.is_listed else ()


def _lost(record: FileRecord) -> NoReturn:
    raise NoFile(f"file {record.id}: the upload was removed while it was under way")
