"""Try again, now: what ended in ERROR or waits for a later try, chosen by context, host or outcome."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from ingest.records import Original, Status
from ingest.references import References
from ingest.schedule import queue_rows
from ingest.tablewalk import every_row
from storage.ids import Clock
from storage.interface import Store
from storage.schema import ORIGINALS
from storage.table import Put

PAGE = 500


@dataclasses.dataclass(frozen=True)
class Wanted:
    """Which originals: all that are given must fit, None fits any. Local files never do: no worker reads them."""

    context: str | None = None
    host: str | None = None
    outcome: str | None = None

    def fits(self, original: Original) -> bool:
        return (
            original.status in (Status.ERROR, Status.RETRY)
            and not original.retired
            and not original.url.startswith("file:")
            and self.host in (None, original.host)
            and self.outcome in (None, original.outcome)
        )


class Retry:
    def __init__(self, store: Store, references: References, clock: Clock) -> None:
        self._store, self._references, self._clock = store, references, clock

    def run(self, wanted: Wanted) -> int:
        """Queue them again with no failures; how many. Others' work on one of them goes first."""
        return sum(self._again(original, wanted) for original in self._candidates(wanted) if wanted.fits(original))

    def _again(self, original: Original, wanted: Wanted) -> bool:
        while wanted.fits(original):
            again = dataclasses.replace(
                original,
                status=Status.PROCESSING,
                due=self._clock(),
                failures=0,
                lost_leases=0,
                first_failure=None,
            )
            self._store.put_many(queue_rows(again))
            outcome = self._store.commit(ORIGINALS, (original.original_id,), [Put(again.row(), original.rev)])
            if outcome:
                return True
            if outcome.rows[0] is None:
                return False
            original = Original.of(outcome.rows[0])
        return False

    def _candidates(self, wanted: Wanted) -> Iterator[Original]:
        if wanted.context is None:
            yield from map(Original.of, every_row(self._store, ORIGINALS))
            return
        after = None
        while page := self._references.page(wanted.context, after=after, limit=PAGE):
            yield from (original for _, original in page)
            after = page[-1][0].reference_id
