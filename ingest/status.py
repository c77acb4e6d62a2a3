"""What the store holds and what is still to do, for a person or a monitor. Never asked in a request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from ingest.queue import Queue
from ingest.records import Original, Status
from ingest.tablewalk import every_row
from storage.ids import Clock
from storage.interface import Store
from storage.schema import ORIGINALS

COLUMNS = ("status", "outcome", "host", "size", "retired")


@dataclass
class HostQueue:
    """One source host's queue: entries whose time has come, those that wait for a later try, those worked on now.

    ``oldest`` is the earliest ``due`` of all, in µs; ``failing`` counts those that failed before.
    """

    host: str
    due: int = 0
    later: int = 0
    running: int = 0
    failing: int = 0
    oldest: int | None = None

    @property
    def total(self) -> int:
        return self.due + self.later + self.running


@dataclass
class Holdings:
    """Counts of all originals, by status and, of those in ERROR, by outcome and by host."""

    statuses: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    hosts: Counter[str] = field(default_factory=Counter)
    bytes: int = 0
    retired: int = 0


class Overview:
    def __init__(self, store: Store, queue: Queue, clock: Clock) -> None:
        self._store, self._queue, self._clock = store, queue, clock

    def queues(self) -> list[HostQueue]:
        """The queue by host, the longest first. Costs what the queue holds."""
        now = self._clock()
        found: dict[str, HostQueue] = {}
        seen: set[str] = set()
        for original in self._queue.waiting():
            if original.original_id in seen:
                continue
            seen.add(original.original_id)
            _count(found.setdefault(original.host, HostQueue(original.host)), original, now)
        return sorted(found.values(), key=lambda one: (-one.total, one.host))

    def holdings(self) -> Holdings:
        """All originals, counted. Costs a walk over the whole table."""
        found = Holdings()
        for row in every_row(self._store, ORIGINALS, COLUMNS):
            found.statuses[row["status"]] += 1
            found.retired += bool(row["retired"])
            if row["status"] == Status.OK:
                found.bytes += row["size"] or 0
            elif row["status"] == Status.ERROR:
                found.outcomes[row["outcome"] or "unknown"] += 1
                found.hosts[row["host"]] += 1
        return found

    def failures(self) -> Iterator[Original]:
        """Every original that ended in ERROR, or failed and is to be tried again."""
        for row in every_row(self._store, ORIGINALS):
            if row["status"] in (Status.ERROR, Status.RETRY):
                yield Original.of(row)


def _count(queue: HostQueue, original: Original, now: int) -> None:
    if (original.lease_until or 0) > now:
        queue.running += 1
    elif (original.due or 0) <= now:
        queue.due += 1
    else:
        queue.later += 1
    queue.failing += bool(original.failures)
    if original.due is not None:
        queue.oldest = min(queue.oldest or original.due, original.due)
