"""The buckets of what was announced, hour by hour, and how far they have been worked off."""

from __future__ import annotations

from collections.abc import Iterator

from ingest.leases import Mark
from ingest.tablewalk import every_row, rows_of
from storage.announcements import HOUR, SHARDS
from storage.ids import Clock
from storage.interface import Store
from storage.schema import CANDIDATES
from storage.table import Row

MEMORY = 400 * 24  # hours looked back at most


class Candidates:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._mark = Mark(store, "candidates")

    def hours(self) -> range:
        """From the first that isn't worked off to the present one."""
        now = self._clock() // HOUR
        return range(max(self._mark.read() or self._first(now), now - MEMORY), now + 1)

    def of_hour(self, hour: int) -> Iterator[Row]:
        for shard in range(SHARDS):
            yield from self.of_bucket(hour, shard)

    def of_bucket(self, hour: int, shard: int) -> Iterator[Row]:
        return rows_of(self._store, CANDIDATES, (hour, shard))

    def drop(self, hour: int, shard: int) -> None:
        """Erase a bucket. What is announced in it later may be swallowed."""
        self._store.erase(CANDIDATES, (hour, shard))

    def advance(self, hour: int) -> None:
        """Everything before this hour is worked off."""
        self._mark.advance(hour)

    def _first(self, now: int) -> int:
        """Where to begin when no sweep has left a mark yet: a year of empty hours would take half a minute."""
        return min((row["hour"] for row in every_row(self._store, CANDIDATES, ("hour",))), default=now)
