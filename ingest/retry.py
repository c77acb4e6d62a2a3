"""Try again, now: what ended in ERROR or waits for a later try, chosen by context, host or outcome; or what was stored
and is damaged."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from ingest.fetch.outcome import Outcome
from ingest.recent import Recent
from ingest.records import Original, Status
from ingest.references import References
from ingest.schedule import queue_rows
from ingest.tablewalk import every_row
from storage.blobs import BlobStore
from storage.ids import Clock
from storage.interface import Store
from storage.schema import ORIGINALS
from storage.table import Put

PAGE = 500


@dataclasses.dataclass(frozen=True)
class Wanted:
    """Which originals: all that are given must fit, None fits any. ``damaged``: those in store whose bytes are missing
    or not what was stored, which means reading all of them."""

    context: str | None = None
    host: str | None = None
    outcome: str | None = None
    damaged: bool = False

    def fits(self, original: Original) -> bool:
        return (
            original.status in ((Status.OK,) if self.damaged else (Status.ERROR, Status.RETRY))
            and not original.retired
            and (self.damaged or not original.is_local)
            and self.host in (None, original.host)
            and self.outcome in (None, original.outcome)
        )


@dataclasses.dataclass
class Retried:
    """How many were queued; how many local files, which no worker reads, are in ERROR now, to be ingested again."""

    queued: int = 0
    local: int = 0


class Retry:
    def __init__(self, store: Store, blobs: BlobStore, references: References, clock: Clock) -> None:
        self._store, self._blobs, self._references, self._clock = store, blobs, references, clock
        self._recent = Recent(store)

    def run(self, wanted: Wanted) -> Retried:
        """Queue them again with no failures. Others' work on one of them goes first. A damaged one keeps what it has
        until it was fetched again. StoreErrors pass."""
        done = Retried()
        for original in self._candidates(wanted):
            if not self._again(original, wanted):
                continue
            if wanted.damaged:
                self._recent.drop(original)
            if original.is_local:
                done.local += 1
            else:
                done.queued += 1
        return done

    def _again(self, original: Original, wanted: Wanted) -> bool:
        while wanted.fits(original) and (not wanted.damaged or self._is_damaged(original)):
            again = self._failed(original) if original.is_local else self._queued(original)
            outcome = self._store.commit(ORIGINALS, (original.original_id,), [Put(again.row(), original.rev)])
            if outcome:
                return True
            if outcome.rows[0] is None:
                return False
            original = Original.of(outcome.rows[0])
        return False

    def _is_damaged(self, original: Original) -> bool:
        return original.blob is None or any(True for blob in original.stored for _ in self._blobs.verify(blob))

    def _queued(self, original: Original) -> Original:
        again = original.queued_again(self._clock())
        self._store.put_many(queue_rows(again))
        return again

    def _failed(self, original: Original) -> Original:
        reason = "its bytes in store are damaged; ingest the file again"
        return dataclasses.replace(original, status=Status.ERROR, outcome=Outcome.SYSTEM_ERROR.value, reason=reason)

    def _candidates(self, wanted: Wanted) -> Iterator[Original]:
        if wanted.context is None:
            yield from map(Original.of, every_row(self._store, ORIGINALS))
            return
        after = None
        while page := self._references.page(wanted.context, after=after, limit=PAGE):
            yield from (original for _, original in page)
            after = page[-1][0].reference_id
