"""Images in the order in which they came into store, for the gallery. The index is a hint; the originals decide."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ingest.liveness import live_references
from ingest.records import Original, Reference
from ingest.schedule import MINUTE, MINUTES_A_DAY
from storage.interface import Store
from storage.schema import ORIGINALS, RECENT, RECENT_OPEN
from storage.table import Row, Table

PAGE: Final = 100
DAYS: Final = "days"


class Recent:
    def __init__(self, store: Store) -> None:
        self._store = store

    @staticmethod
    def rows(original: Original) -> list[tuple[Table, Row]]:
        """What to put before an original's outcome is committed; ``created`` is set already."""
        created = original.created or 0
        minute = created // MINUTE
        day = minute // MINUTES_A_DAY
        return [
            (RECENT_OPEN, {"span": DAYS, "bucket": day}),
            (RECENT_OPEN, {"span": str(day), "bucket": minute}),
            (RECENT, {"minute": minute, "stored": created, "original_id": original.original_id}),
        ]

    def drop(self, original: Original) -> None:
        """Forget an original that is going away."""
        if original.created is not None:
            self._store.delete(RECENT, (original.created // MINUTE, original.created, original.original_id))

    def newest(self, *, before: tuple[int, str] | None = None, limit: int) -> list[tuple[Reference, Original]]:
        """Up to ``limit`` images with a reference each, newest first; ``before``: (created, original_id) of the last
        one seen."""
        found: list[tuple[Reference, Original]] = []
        for entry in self._entries(before):
            row = self._store.get(ORIGINALS, (entry["original_id"],))
            if row is None or row["created"] != entry["stored"]:
                continue
            reference = next(live_references(self._store, entry["original_id"]), None)
            original = Original.of(row)
            if reference is not None and original.is_image:
                found.append((reference, original))
                if len(found) == limit:
                    break
        return found

    def _entries(self, before: tuple[int, str] | None) -> Iterator[Row]:
        last = before[0] // MINUTE if before else None
        for day in self._buckets(DAYS, None if last is None else last // MINUTES_A_DAY):
            for minute in self._buckets(str(day), last):
                bound = before if minute == last else None
                while page := self._store.read(RECENT, (minute,), before=bound, limit=PAGE, reverse=True):
                    yield from page
                    bound = (page[-1]["stored"], page[-1]["original_id"])

    def _buckets(self, span: str, last: int | None) -> Iterator[int]:
        """The buckets of a span up to ``last``, newest first."""
        before = None if last is None else (last + 1,)
        while page := self._store.read(RECENT_OPEN, (span,), before=before, limit=PAGE, reverse=True):
            yield from (row["bucket"] for row in page)
            before = (page[-1]["bucket"],)
