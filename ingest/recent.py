"""Images in the order in which they came into store, for the gallery. The index is a hint; the originals decide."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from ingest.liveness import openings
from ingest.records import Original, Reference
from ingest.schedule import MINUTE, MINUTES_A_DAY
from storage.interface import Store
from storage.schema import ORIGINALS, RECENT, RECENT_OPEN
from storage.table import Row, Table

PAGE: Final = 100
LOOK: Final = 1000  # entries for one page; so a context of millions that was taken down isn't walked in one request
DAYS: Final = "days"

Place = tuple[int, str]  # created (µs) and original_id


@dataclass(frozen=True)
class Images:
    """``older``: the place where the next page begins, None if there is none. A page may have fewer images than were
    asked for, even none, and be followed by others."""

    found: list[tuple[Reference, Original]]
    older: Place | None


class Recent:
    def __init__(self, store: Store, *, look: int = LOOK) -> None:
        self._store, self._look = store, look

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

    def newest(self, *, before: Place | None = None, limit: int) -> Images:
        """Up to ``limit`` images with a reference each, newest first; ``before``: the ``older`` of the page before."""
        found: list[tuple[Reference, Original]] = []
        entries, left = self._entries(before), self._look
        while batch := list(islice(entries, min(limit - len(found), left))):
            found += self._images(batch)
            left -= len(batch)
            before = batch[-1]["stored"], batch[-1]["original_id"]
        return Images(found, before if next(entries, None) else None)

    def _images(self, entries: list[Row]) -> list[tuple[Reference, Original]]:
        rows = self._store.fetch((ORIGINALS, (entry["original_id"],)) for entry in entries)
        originals = [
            Original.of(row[0])
            for entry, row in zip(entries, rows, strict=True)
            if row and row[0]["created"] == entry["stored"]
        ]
        images = [original for original in originals if original.is_image]
        references = openings(self._store, [image.original_id for image in images])
        return [(reference, image) for reference, image in zip(references, images, strict=True) if reference]

    def _entries(self, before: Place | None) -> Iterator[Row]:
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
