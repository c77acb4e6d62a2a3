"""Check everything: each original's bytes, queue and index rows, each reference, and what lies about.

Runs beside everything else. Whatever looks wrong is looked at a second time before it counts, since others write at
the same time. Missing index rows are put back, stale ones deleted, litter is announced to the sweep; bytes are never
touched.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

from ingest.attempts import PYRAMID
from ingest.claims import is_open
from ingest.findings import Findings, Wrong
from ingest.indexes import Indexes
from ingest.liveness import is_referenced
from ingest.recent import Recent
from ingest.records import Original, Status
from ingest.references import References
from ingest.scaled import DamagedBox, prepared
from ingest.schedule import queue_rows
from ingest.tablewalk import every_row
from storage.announcements import Litter, announcement
from storage.blobs import BlobStore
from storage.ids import Clock
from storage.interface import Store
from storage.schema import BOXES, CANDIDATES, ORIGINALS, SCALED
from storage.table import Put, Row, Table


class Check:
    def __init__(self, store: Store, blobs: BlobStore, references: References, clock: Clock) -> None:
        self._store, self._blobs, self._references, self._clock = store, blobs, references, clock

    def run(self, *, bytes_too: bool = True, progress: Callable[[int], object] = lambda done: None) -> Findings:
        """Check all. ``bytes_too``: read and verify what is stored, else only rows. ``progress`` is told how many
        originals are done. StoreErrors pass."""
        found = Findings()
        for row in every_row(self._store, ORIGINALS):
            self._original(Original.of(row), bytes_too, found)
            found.originals += 1
            progress(found.originals)
        indexes = Indexes(self._store, self._references, self._clock, found)
        suspects = [*indexes.check_references(), *indexes.drop_stale(), *self._unnamed(found)]
        indexes.check_urls()
        self._announce(suspects, found)
        return found

    def _original(self, original: Original, bytes_too: bool, found: Findings) -> None:
        found.statuses[original.status] += 1
        if not is_referenced(self._store, original.original_id):
            found.unreferenced += 1
            if original.retired:
                return  # a sweep is taking it away
        if original.status == Status.OK:
            found.bytes += original.size or 0
            rows = Recent.rows(original) if original.is_image else []
            if self._lacks(original, rows, Wrong.INDEX, found):
                self._store.put_many(rows)
            if bytes_too:
                self._stored(original, found)
        elif (
            original.due is not None
            and is_open(original, original.due)
            and self._lacks(original, queue_rows(original), Wrong.QUEUE, found)
        ):
            self._queue(original, original.due)

    def _lacks(self, original: Original, rows: list[tuple[Table, Row]], kind: Wrong, found: Findings) -> bool:
        """Whether one of the rows is missing; noted as ``kind``."""
        missing = [table.name for table, row in rows if self._store.get(table, table.key_of(row)) is None]
        if not missing or not self._stands(original):
            return False
        names = ", ".join(missing)
        found.add(kind, f"original {original.original_id} ({original.status}) was missing from {names}")
        return True

    def _queue(self, original: Original, due: int) -> None:
        """Put it back into the queue: for now if it is overdue, since nobody reads what lies before the queue's mark,
        and an erased bucket swallows what is put into it."""
        while is_open(original, due):
            again = dataclasses.replace(original, due=max(due, self._clock()))
            self._store.put_many(queue_rows(again))
            if again.due == due:
                return
            outcome = self._store.commit(ORIGINALS, (original.original_id,), [Put(again.row(), original.rev)])
            if outcome or outcome.rows[0] is None:
                return
            original = Original.of(outcome.rows[0])

    def _stored(self, original: Original, found: Findings) -> None:
        if original.blob is None:
            found.add(Wrong.DAMAGED, f"original {original.original_id} is OK and names no bytes")
            return
        for blob in original.stored:
            for damage in self._blobs.verify(blob):
                if not self._stands(original):
                    return
                found.add(Wrong.DAMAGED, f"{damage}; {original.url}")
        for box in BOXES:
            try:
                prepared(self._store, original, box)
            except DamagedBox as error:
                found.add(Wrong.SCALED, str(error))
                self._store.erase(SCALED[box], (original.original_id, original.attempt))

    def _stands(self, original: Original) -> bool:
        """Whether the original still is as it was, so that what was found missing really is."""
        row = self._store.get(ORIGINALS, (original.original_id,), ("retired",))
        return row is not None and row["rev"] == original.rev

    def _unnamed(self, found: Findings) -> Iterator[tuple[Litter, str]]:
        """Bytes and prepared images of attempts that no original names."""
        unnamed = set()
        for owner, attempt in self._attempts():
            row = self._store.get(ORIGINALS, (owner,), ("attempt", "trying"))
            if row is None or attempt not in (row["attempt"], row["trying"]):
                unnamed.add(f"{owner}/{attempt}")
        found.unnamed = len(unnamed)
        return ((Litter.BLOB, name) for name in unnamed)

    def _attempts(self) -> Iterator[tuple[str, str]]:
        for stored in self._blobs.scan():
            yield stored.owner, stored.attempt.removesuffix(PYRAMID)
        for table in SCALED.values():
            for row in every_row(self._store, table, ("original_id", "attempt")):
                yield row["original_id"], row["attempt"]

    def _announce(self, suspects: list[tuple[Litter, str]], found: Findings) -> None:
        unknown = {(kind.value, name): kind for kind, name in suspects}
        for row in every_row(self._store, CANDIDATES) if unknown else ():
            unknown.pop((row["kind"], row["id"]), None)
        for (_, name), kind in unknown.items():
            self._store.put(*announcement(kind, name, self._clock()))
        found.announced += len(unknown)
