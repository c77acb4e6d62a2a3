"""What a sweep would do, without a write."""

from __future__ import annotations

from ingest.candidates import Candidates
from ingest.liveness import is_dead_generation, is_referenced, last_event, last_heard_of
from ingest.records import Original
from ingest.references import DIGITS
from ingest.sweepreport import SweepReport
from ingest.tablewalk import every_row, rows_of
from storage.announcements import HOUR, Litter
from storage.blobs import BlobStore
from storage.ids import Clock
from storage.interface import Store
from storage.schema import BINARY_REFS, BINARYREFS_CONTEXT, ORIGINALS


class DryRun:
    """Counts into ``report``."""

    def __init__(self, store: Store, blobs: BlobStore, clock: Clock, report: SweepReport) -> None:
        self._store, self._blobs, self._clock, self._report = store, blobs, clock, report

    def run(self, grace: int, full: bool) -> None:
        names: set[str] = set()
        released: set[str] = set()
        candidates = Candidates(self._store, self._clock)
        for hour in candidates.hours():
            is_due = hour <= (self._clock() - grace) // HOUR
            for row in candidates.of_hour(hour):
                kind, name = row["kind"], row["id"]
                self._report.candidates += is_due or kind == Litter.GENERATION
                if kind == Litter.GENERATION:
                    released |= self._generation(*name.split("/", 1))
                elif kind == Litter.BLOB and is_due:
                    self._report.blobs += self._is_left_over(*name.split("/", 1))
                elif kind == Litter.ORIGINAL and is_due:
                    names.add(name)
        if full:
            names |= {row["original_id"] for row in every_row(self._store, ORIGINALS, ("original_id",))}
        for name in names | released:
            self._original(name, grace, name in released)

    def _is_left_over(self, original_id: str, attempt: str) -> bool:
        row = self._store.get(ORIGINALS, (original_id,), ("attempt", "trying"))
        return (row is None or attempt not in (row["attempt"], row["trying"])) and self._blobs.has(original_id, attempt)

    def _generation(self, generation: str, context: str) -> set[str]:
        """The originals that the references of a dead generation would be released from."""
        if not is_dead_generation(self._store, generation, context):
            return set()
        released, seen = set(), 0
        for digit in DIGITS:
            for entry in rows_of(self._store, BINARYREFS_CONTEXT, (generation, digit)):
                row = self._store.get(BINARY_REFS, (entry["reference_id"],))
                if row is not None and row["generation"] == generation:
                    released.add(row["original_id"])
                seen += 1
        self._report.references += seen
        self._report.contexts += seen > 0
        return released

    def _original(self, original_id: str, grace: int, is_released: bool) -> None:
        event, row = last_event(self._store, original_id), self._store.get(ORIGINALS, (original_id,))
        if row is None:
            return
        original, now = Original.of(row), self._clock()
        if is_referenced(self._store, original_id):
            self._report.referenced += 1
        elif (now if is_released else last_heard_of(original, event)) > now - grace:
            self._report.young += 1
        else:
            self._report.originals += 1
            self._report.bytes += original.size or 0
