"""The sweep: what nobody refers to goes, and no schedule of others' steps can make it take what somebody refers to.

An original is retired one way, looked at again, and only then erased (storage protocols, «Sweep»). Works off what was
announced longer ago than the grace time; one at a time by lease, for thrift, not for safety.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping
from typing import Final

from ingest import attempts
from ingest.candidates import Candidates
from ingest.dryrun import DryRun
from ingest.leases import Lease
from ingest.liveness import is_dead_generation, is_referenced, last_event, last_heard_of
from ingest.owner import IsDead, is_dead
from ingest.recent import Recent
from ingest.records import Original
from ingest.references import DIGITS, References
from ingest.sweepreport import SweepReport
from ingest.tablewalk import every_row, rows_of
from storage.announcements import HOUR, SHARDS, Litter, announcement
from storage.blobs import BlobStore
from storage.ids import Clock
from storage.interface import Store
from storage.schema import (
    BINARYREFS_CONTEXT,
    BINARYREFS_ORIGINAL,
    ORIGINAL_LOGS,
    ORIGINALS,
    URLS,
    URLS_ORIGINAL,
)
from storage.table import Put, Remove, Row, Table

PAGE: Final = 500
NEWBORN: Final = HOUR  # µs in which what was announced may still be on its way; longer than any skew of clocks


class Sweep:
    """``others``: who works off further kinds of candidates, called with their id and the grace."""

    def __init__(
        self,
        store: Store,
        blobs: BlobStore,
        references: References,
        *,
        owner: str,
        clock: Clock,
        dead: IsDead = is_dead,
        others: Mapping[str, Callable[[str, int], None]] | None = None,
    ) -> None:
        self._others = others or {}
        self._store, self._blobs, self._references, self._clock = store, blobs, references, clock
        self._recent = Recent(store)
        self._lease = Lease(store, "sweep", owner, clock, dead)
        self._candidates = Candidates(store, clock)
        self._report = SweepReport()

    def run(self, grace: int, *, dry_run: bool = False, full: bool = False) -> SweepReport:
        """One run; ``grace`` in microseconds. ``full`` walks all originals too, as the seed does. StoreErrors pass."""
        self._report = SweepReport(dry_run=dry_run)
        if not self._lease.take():
            self._report.skipped = True
            return self._report
        try:
            if dry_run:
                DryRun(self._store, self._blobs, self._clock, self._report).run(grace, full)
            else:
                self._run(grace, full)
        finally:
            self._lease.release()
        return self._report

    def _run(self, grace: int, full: bool) -> None:
        # dead contexts first, young ones too: what they release is announced, and what follows sees it
        for hour in self._candidates.hours():
            for row in self._candidates.of_hour(hour):
                if row["kind"] == Litter.GENERATION:
                    self._work_off(row, grace)
        oldest = self._clock() // HOUR
        for hour in self._candidates.hours():
            if hour > (self._clock() - grace) // HOUR:
                oldest = min(oldest, hour)
                break
            for shard in range(SHARDS):
                if not self._bucket(hour, shard, grace):
                    oldest = min(oldest, hour)
        if full:
            for row in every_row(self._store, ORIGINALS, ("original_id",)):
                self.original(row["original_id"], grace)
        self._candidates.advance(oldest)

    def _bucket(self, hour: int, shard: int, grace: int) -> bool:
        """Work off one bucket; whether it is done with for ever, and erased."""
        done = True
        for row in self._candidates.of_bucket(hour, shard):
            done = self._work_off(row, grace) and done
        # An announcement may be late by a skew of clocks, and an erased bucket swallows what is written to it later.
        if not done or (hour + 1) * HOUR + NEWBORN > self._clock() - grace:
            return False
        for row in self._candidates.of_bucket(hour, shard):
            if row["kind"] == Litter.ORIGINAL:
                self.last_look(row["id"])
        self._candidates.drop(hour, shard)
        self._report.buckets += 1
        return True

    def _work_off(self, row: Row, grace: int) -> bool:
        """False for a kind that nobody here knows."""
        self._lease.take()
        self._report.candidates += 1
        kind, name = row["kind"], row["id"]
        if kind == Litter.GENERATION:
            self.generation(*name.split("/", 1))
        elif kind == Litter.BLOB:
            self.blob(*name.split("/", 1))
        elif kind == Litter.ORIGINAL:
            self.original(name, grace)
        elif kind in self._others:
            self._others[kind](name, grace)
        else:
            return False
        return True

    def original(self, original_id: str, grace: int) -> None:
        """Retire and erase an original that nobody refers to."""
        while True:
            event, row = self._look(original_id)
            if row is None:
                if event is not None:  # else it may be newborn
                    self._store.erase(BINARYREFS_ORIGINAL, (original_id,))
                return
            original = Original.of(row)
            if is_referenced(self._store, original_id):
                self._report.referenced += 1
                return
            if last_heard_of(original, event) > self._clock() - grace:
                self._report.young += 1
                self._store.put(*announcement(Litter.ORIGINAL, original_id, self._clock()))
                return
            if original.retired:
                break
            retired = dataclasses.replace(original, retired=1)
            outcome = self._store.commit(ORIGINALS, (original_id,), [Put(retired.row(), original.rev)])
            if outcome:
                original = dataclasses.replace(retired, rev=outcome.rev)
                break
        if self._look_again(original):
            self._report.referenced += 1
            return
        self._erase(original)

    def last_look(self, original_id: str) -> None:
        """Erase what a PUT left that died on its way: of an original that never came, or was swept meanwhile."""
        if self._store.get(ORIGINALS, (original_id,), ()) is None:
            self._cut_names(original_id)
            self._erase_hints(original_id)

    def _look(self, original_id: str) -> tuple[Row | None, Row | None]:
        """The newest event, and only then the original: «absent» must be the later look."""
        return last_event(self._store, original_id), self._store.get(ORIGINALS, (original_id,))

    def _look_again(self, original: Original) -> bool:
        """Whether a PUT that had seen it before it was retired has attached to it since; it then stays retired."""
        return is_referenced(self._store, original.original_id)

    def blob(self, original_id: str, attempt: str) -> None:
        """Erase an attempt that its original doesn't name."""
        while True:
            row = self._store.get(ORIGINALS, (original_id,))
            if row is None:
                break
            if attempt == row["attempt"]:
                return
            if attempt == row["trying"]:  # if its worker is dead, the next one takes over and leaves this to a sweep
                self._store.put(*announcement(Litter.BLOB, f"{original_id}/{attempt}", self._clock()))
                return
            # A worker may have announced this attempt and not yet claimed with it: a new revision makes it lose.
            changed: Row = {name: value for name, value in row.items() if name != "rev"}
            if self._store.commit(ORIGINALS, (original_id,), [Put(changed, row["rev"])]):
                break
        self._report.blobs += self._blobs.has(original_id, attempt)
        attempts.erase(self._store, self._blobs, original_id, attempt)

    def generation(self, generation: str, context: str) -> None:
        """Detach the references of a generation that its context no longer names."""
        if not is_dead_generation(self._store, generation, context):
            return
        seen = 0
        for digit in DIGITS:
            after: tuple[str, ...] | None = None
            while page := self._store.read(BINARYREFS_CONTEXT, (generation, digit), after=after, limit=PAGE):
                for entry in page:
                    self._references.detach_generation(entry["reference_id"], generation)
                seen += len(page)
                after = (page[-1]["reference_id"], page[-1]["attached"])
                self._lease.take()
            if after is not None:
                self._store.erase(BINARYREFS_CONTEXT, (generation, digit))
        self._report.references += seen
        self._report.contexts += seen > 0

    def _erase(self, original: Original) -> None:
        """Cut the names, erase what hangs below, remove the row itself last: a crash in between can be resumed."""
        name = original.original_id
        was_named = self._cut_names(name)
        for attempt in {original.attempt, original.trying} - {None}:
            attempts.erase(self._store, self._blobs, name, str(attempt))
        self._recent.drop(original)
        # A PUT may be about to name it: the last look at its announcement finds the name by the row that is kept.
        kept = () if was_named or last_heard_of(original, None) < self._clock() - NEWBORN else (URLS_ORIGINAL,)
        self._erase_hints(name, kept)
        row = self._store.get(ORIGINALS, (name,))
        if row is not None:
            self._store.commit(ORIGINALS, (name,), [Remove((name,), row["rev"])])
        self._report.originals += 1
        self._report.bytes += original.size or 0

    def _cut_names(self, original_id: str) -> bool:
        """Remove the rows of the URLs that name it; whether there was any."""
        was_named = False
        for entry in rows_of(self._store, URLS_ORIGINAL, (original_id,)):
            row = self._store.get(URLS, (entry["url"],))
            if row is not None and row["original_id"] == original_id:
                self._store.commit(URLS, (entry["url"],), [Remove((entry["url"],), row["rev"])])
                was_named = True
        return was_named

    def _erase_hints(self, original_id: str, kept: Collection[Table] = ()) -> None:
        for table in (ORIGINAL_LOGS, URLS_ORIGINAL, BINARYREFS_ORIGINAL):
            if table not in kept:
                self._store.erase(table, (original_id,))
