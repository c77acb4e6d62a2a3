"""Log lines: a reference's own, and its original's, which are shown under each of its references."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ingest.records import Reference
from storage.ids import Clock, Ids
from storage.interface import Store
from storage.schema import LOGS, ORIGINAL_LOGS
from storage.table import Key, Row, Slice, Table

MILLISECOND: Final = 1000
LINES: Final = 1000  # of one reference and of its original, at most, the newest: a source checked for years has many


@dataclass(frozen=True)
class Line:
    """One line; ``time`` in microseconds, whole milliseconds; ``seq`` keeps two of one millisecond apart."""

    reference_id: str
    time: int
    seq: str
    message: str


class Logs:
    def __init__(self, store: Store, *, ids: Ids, clock: Clock) -> None:
        self._store, self._ids, self._clock = store, ids, clock

    def note_reference(self, reference: Reference, message: str) -> None:
        self._store.put(LOGS, {"attached": reference.attached, **self._line(message)})

    def note_original(self, original_id: str, message: str) -> None:
        self._store.put(*self.original_line(original_id, message))

    def original_line(self, original_id: str, message: str) -> tuple[Table, Row]:
        """The row of a line, for a caller that writes several rows at once."""
        return ORIGINAL_LOGS, {"original_id": original_id, **self._line(message)}

    def lines(self, references: list[Reference]) -> Iterator[Line]:
        """The lines of these references, oldest first for each."""
        slices = []
        for reference in references:
            slices.append(_newest(LOGS, (reference.attached,)))
            slices.append(_newest(ORIGINAL_LOGS, (reference.original_id,)))
        found = self._store.fetch(slices)
        for reference, own, original in zip(references, found, found, strict=True):
            ordered = heapq.merge(reversed(own), reversed(original), key=lambda row: (row["timestamp"], row["seq"]))
            for row in ordered:
                yield Line(reference.reference_id, row["timestamp"], row["seq"], row["message"])

    def _line(self, message: str) -> Row:
        return {
            "timestamp": self._clock() // MILLISECOND * MILLISECOND,
            "seq": self._ids.ordered(),
            "message": message[:4000],
        }


def _newest(table: Table, partition: Key) -> Slice:
    return Slice(table, partition, limit=LINES, reverse=True)
