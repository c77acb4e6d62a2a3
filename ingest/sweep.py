"""The sweep: what nobody refers to goes, and no schedule of others' steps can make it take what somebody refers to.

An original is retired one way, looked at again, and only then erased (storage protocols, «Sweep»). Works off what was
announced longer ago than the grace time; one at a time by lease, for thrift, not for safety.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from ingest import attempts
from ingest.leases import Lease, Mark
from ingest.liveness import events, is_referenced
from ingest.owner import IsDead, is_dead
from ingest.recent import Recent
from ingest.records import Original
from ingest.references import DIGITS, References
from ingest.tablewalk import every_row
from storage.announcements import HOUR, SHARDS, Litter, announcement
from storage.blobs import BlobStore
from storage.ids import Clock, moment_of
from storage.interface import Store
from storage.schema import (
    BINARY_REFS,
    BINARYREFS_CONTEXT,
    BINARYREFS_ORIGINAL,
    CANDIDATES,
    CONTEXTS,
    ORIGINAL_LOGS,
    ORIGINALS,
    URLS,
    URLS_ORIGINAL,
)
from storage.table import Put, Remove, Row

PAGE: Final = 500
NEWBORN: Final = HOUR  # µs in which what was announced may still be on its way; longer than any skew of clocks


@dataclasses.dataclass
class SweepReport:
    """Counts of one run. ``skipped`` is true when another sweep was running; ``bytes`` are those of ``originals``;
    ``blobs`` are unfinished tries that had left bytes."""

    skipped: bool = False
    dry_run: bool = False
    candidates: int = 0
    originals: int = 0
    bytes: int = 0
    blobs: int = 0
    contexts: int = 0
    references: int = 0
    referenced: int = 0
    young: int = 0
    buckets: int = 0

    @property
    def is_clean(self) -> bool:
        return not self.skipped


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
        self._mark = Mark(store, "candidates")
        self._report = SweepReport()

    def run(self, grace: int, *, dry_run: bool = False, full: bool = False) -> SweepReport:
        """One run; ``grace`` in microseconds. ``full`` walks all originals too, as the seed does. StoreErrors pass."""
        self._report = SweepReport(dry_run=dry_run)
        if not self._lease.take():
            self._report.skipped = True
            return self._report
        try:
            if dry_run:
                self._count(grace, full)
            else:
                self._run(grace, full)
        finally:
            self._lease.release()
        return self._report

    def _run(self, grace: int, full: bool) -> None:
        # dead contexts first, young ones too: what they release is announced, and what follows sees it
        for hour in self._hours():
            for row in self._hour(hour):
                if row["kind"] == Litter.GENERATION:
                    self._work_off(row, grace)
        oldest = self._clock() // HOUR
        for hour in self._hours():
            if hour > (self._clock() - grace) // HOUR:
                oldest = min(oldest, hour)
                break
            for shard in range(SHARDS):
                if not self._bucket(hour, shard, grace):
                    oldest = min(oldest, hour)
        if full:
            for original_id in self._all_originals():
                self.original(original_id, grace)
        self._mark.advance(oldest)

    def _bucket(self, hour: int, shard: int, grace: int) -> bool:
        """Work off one bucket; whether it is done with for ever, and erased."""
        done = True
        for row in self._candidates(hour, shard):
            done = self._work_off(row, grace) and done
        # An announcement may be late by a skew of clocks, and an erased bucket swallows what is written to it later.
        if not done or (hour + 1) * HOUR + NEWBORN > self._clock() - grace:
            return False
        for row in self._candidates(hour, shard):
            if row["kind"] == Litter.ORIGINAL and self._store.get(ORIGINALS, (row["id"],), ()) is None:
                self._erase_hints(row["id"])  # of an original that never came, its PUT having died
        self._store.erase(CANDIDATES, (hour, shard))
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
            if _youngest(original, event) > self._clock() - grace:
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

    def _look(self, original_id: str) -> tuple[Row | None, Row | None]:
        """The newest event, and only then the original: «absent» must be the later look."""
        event = next(events(self._store, original_id), None)
        return event, self._store.get(ORIGINALS, (original_id,))

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
        if not self._is_dead(generation, context):
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
        for entry in self._urls(name):
            row = self._store.get(URLS, (entry["url"],))
            if row is not None and row["original_id"] == name:
                self._store.commit(URLS, (entry["url"],), [Remove((entry["url"],), row["rev"])])
        for attempt in {original.attempt, original.trying} - {None}:
            attempts.erase(self._store, self._blobs, name, str(attempt))
        self._recent.drop(original)
        self._erase_hints(name)
        row = self._store.get(ORIGINALS, (name,))
        if row is not None:
            self._store.commit(ORIGINALS, (name,), [Remove((name,), row["rev"])])
        self._report.originals += 1
        self._report.bytes += original.size or 0

    def _erase_hints(self, original_id: str) -> None:
        for table in (ORIGINAL_LOGS, URLS_ORIGINAL, BINARYREFS_ORIGINAL):
            self._store.erase(table, (original_id,))

    def _count(self, grace: int, full: bool) -> None:
        """What a run would do, without a write."""
        names: set[str] = set()
        released: set[str] = set()
        for hour in self._hours():
            is_due = hour <= (self._clock() - grace) // HOUR
            for row in self._hour(hour):
                kind, name = row["kind"], row["id"]
                self._report.candidates += is_due or kind == Litter.GENERATION
                if kind == Litter.GENERATION:
                    released |= self._count_generation(*name.split("/", 1))
                elif kind == Litter.BLOB and is_due:
                    original_id, attempt = name.split("/", 1)
                    self._report.blobs += self._is_left_over(original_id, attempt)
                elif kind == Litter.ORIGINAL and is_due:
                    names.add(name)
        for name in names | released | set(self._all_originals() if full else ()):
            self._count_original(name, grace, name in released)

    def _is_left_over(self, original_id: str, attempt: str) -> bool:
        row = self._store.get(ORIGINALS, (original_id,), ("attempt", "trying"))
        return (row is None or attempt not in (row["attempt"], row["trying"])) and self._blobs.has(original_id, attempt)

    def _count_generation(self, generation: str, context: str) -> set[str]:
        """The originals that the references of a dead generation would be released from."""
        if not self._is_dead(generation, context):
            return set()
        released, seen = set(), 0
        for digit in DIGITS:
            for entry in self._entries(generation, digit):
                row = self._store.get(BINARY_REFS, (entry["reference_id"],))
                if row is not None and row["generation"] == generation:
                    released.add(row["original_id"])
                seen += 1
        self._report.references += seen
        self._report.contexts += seen > 0
        return released

    def _count_original(self, original_id: str, grace: int, is_released: bool) -> None:
        event, row = self._look(original_id)
        if row is None:
            return
        original, now = Original.of(row), self._clock()
        if is_referenced(self._store, original_id):
            self._report.referenced += 1
        elif (now if is_released else _youngest(original, event)) > now - grace:
            self._report.young += 1
        else:
            self._report.originals += 1
            self._report.bytes += original.size or 0

    def _is_dead(self, generation: str, context: str) -> bool:
        row = self._store.get(CONTEXTS, (context,))
        return row is None or row["generation"] != generation

    def _hours(self) -> range:
        now = self._clock() // HOUR
        return range(max(self._mark.read() or self._first_hour(now), now - 400 * 24), now + 1)

    def _first_hour(self, now: int) -> int:
        """Where to begin when no sweep has left a mark yet: a year of empty hours would take half a minute."""
        return min((row["hour"] for row in every_row(self._store, CANDIDATES, ("hour",))), default=now)

    def _hour(self, hour: int) -> Iterator[Row]:
        for shard in range(SHARDS):
            yield from self._candidates(hour, shard)

    def _candidates(self, hour: int, shard: int) -> Iterator[Row]:
        yield from _pages(lambda after: self._store.read(CANDIDATES, (hour, shard), after=after, limit=PAGE), "kind id")

    def _entries(self, generation: str, digit: str) -> Iterator[Row]:
        def read(after: tuple[str, ...] | None) -> list[Row]:
            return self._store.read(BINARYREFS_CONTEXT, (generation, digit), after=after, limit=PAGE)

        yield from _pages(read, "reference_id attached")

    def _urls(self, original_id: str) -> Iterator[Row]:
        yield from _pages(lambda after: self._store.read(URLS_ORIGINAL, (original_id,), after=after, limit=PAGE), "url")

    def _all_originals(self) -> Iterator[str]:
        cursor: bytes | None = None
        while True:
            rows, cursor = self._store.scan(ORIGINALS, cursor, PAGE, ("original_id",))
            yield from (row["original_id"] for row in rows)
            if cursor is None:
                return


def _youngest(original: Original, event: Row | None) -> int:
    """When it was last heard of: registered, worked on, attached to or released."""
    return max(original.registered, original.lease_until or 0, moment_of(event["event"]) if event else 0)


def _pages(read: Callable[[tuple[str, ...] | None], list[Row]], key: str) -> Iterator[Row]:
    after: tuple[str, ...] | None = None
    while page := read(after):
        yield from page
        if len(page) < PAGE:
            return
        after = tuple(page[-1][name] for name in key.split())
