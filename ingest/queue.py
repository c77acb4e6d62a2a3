"""The work queue: a queue for each source host, so that a slow host never starves the others.

Entries are hints: the original's row decides whether there is work (storage protocols, «Claim»). A process reads the
open buckets from the mark on and keeps a cursor in each. What a cursor passed too early is looked at again: originals
under a lease, another's or its own, each ten seconds; the last minutes' buckets, for entries that came late, each
minute; all buckets each hour. (All of them each minute would read a backlog of a million finished entries over and
over.)
"""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from ingest.claims import Claim, Claims, is_open
from ingest.leases import Lease, Mark
from ingest.owner import IsDead, is_dead
from ingest.records import Original
from ingest.schedule import MINUTE, MINUTES_A_DAY
from storage.ids import Clock
from storage.interface import Store
from storage.schema import ORIGINALS, QUEUE, QUEUE_OPEN, URLS
from storage.table import Row

SECOND: Final = 1_000_000
PAGE: Final = 64
LATE: Final = 3  # minutes in which entries may still come into a bucket that is no longer the newest
HOUR: Final = 60 * MINUTE
DONE_AFTER: Final = 60  # minutes after which a bucket without work is erased: longer than any skew of clocks
JOBS_A_TURN: Final = 50
POLL: Final = SECOND // 4
AGAIN: Final = 10 * SECOND
WEEK: Final = 7 * MINUTES_A_DAY


@dataclass
class _Host:
    """What this process knows of one host's queue."""

    buckets: dict[int, tuple[int, str] | None] = field(default_factory=dict)  # minute → cursor (due, original_id)
    ready: deque[Original] = field(default_factory=deque)
    newborn: dict[str, int] = field(default_factory=dict)  # original_id → due, not yet named by its url
    held: dict[str, int] = field(default_factory=dict)  # original_id → due, leased when looked at, or taken by us
    turns: int = 0
    read_at: int = 0

    def is_idle(self) -> bool:
        return not (self.buckets or self.ready or self.newborn or self.held or self.turns)


class Turn:
    """One connection's worth of a host: claims one job after the other while the host has some."""

    def __init__(self, queue: Queue, host: str, slot: Lease) -> None:
        self._queue, self.host, self._slot = queue, host, slot

    def claims(self) -> Iterator[Claim]:
        for _ in range(JOBS_A_TURN):
            if not self._slot.take():
                return
            claim = self._queue.claim(self.host)
            if claim is None:
                return
            yield claim
            self._queue.settle(claim)

    def keep(self) -> None:
        """Renew the slot while a job runs."""
        self._slot.take()


class Queue:
    """The hosts with work, for the threads of one worker process. ``connections``: for each host, over all workers."""

    def __init__(
        self,
        store: Store,
        claims: Claims,
        *,
        owner: str,
        clock: Clock,
        connections: int = 2,
        rng: random.Random | None = None,
        dead: IsDead = is_dead,
    ) -> None:
        self._store, self._claims, self._owner, self._clock, self._dead = store, claims, owner, clock, dead
        self._connections, self._rng = connections, rng or random.Random()
        self._mark = Mark(store, "queue")
        self._lock = threading.Lock()
        self._hosts: dict[str, _Host] = {}
        self._whole_at = self._late_at = self._again_at = self._recent_at = 0

    @contextmanager
    def turn(self) -> Iterator[Turn | None]:
        """A turn at a host that has work and a connection free, chosen at random; None when there is none."""
        found = self._open_turn()
        try:
            yield found[0] if found else None
        finally:
            if found:
                _, host, slot = found
                with self._lock:
                    host.turns -= 1
                slot.release()

    def claim(self, name: str) -> Claim | None:
        """A claim on the host's next original, None when it has no more for now."""
        while True:
            with self._lock:
                host = self._hosts.get(name)
                if host is None or not (host.ready or self._read(name, host)):
                    return None
                original = host.ready.popleft()
            claim = self._claims.take(original)
            with self._lock:
                host.held[original.original_id] = original.due or 0
            if claim is not None:
                return claim

    def settle(self, claim: Claim) -> None:
        """Forget a claim's original once its entry is done with. One whose outcome could not be written stays held."""
        with self._lock:
            host = self._hosts[claim.original.host]
            due = host.held.get(claim.original.original_id)
            if due is not None and not is_open(claim.original, due):
                del host.held[claim.original.original_id]

    def tidy(self) -> None:
        """Erase the buckets that are older than an hour and have no work left, and move the mark."""
        now = self._clock() // MINUTE
        oldest = now - DONE_AFTER
        for row in self._open_rows(self._mark.read(), now):
            minute, host = row["bucket"], row["host"]
            if minute >= now - DONE_AFTER:
                break
            if self._has_work(minute, host):
                oldest = min(oldest, minute)
                continue
            self._store.erase(QUEUE, (minute, host))
            self._store.delete(QUEUE_OPEN, (row["day"], minute, host))
        self._mark.advance(oldest)

    def waiting(self) -> Iterator[Original]:
        """Every original that an entry still stands for, due or not: for the status command."""
        for row in self._open_rows(self._mark.read(), self._clock() // MINUTE + 2 * MINUTES_A_DAY):
            for entries in self._pages(row["bucket"], row["host"], None):
                for entry, found in self._look_up(entries):
                    if found is not None and is_open(found, entry["due"]):
                        yield found

    def _open_turn(self) -> tuple[Turn, _Host, Lease] | None:
        with self._lock:
            self._refresh()
            names = [name for name, host in self._hosts.items() if host.turns < self._connections]
            self._rng.shuffle(names)
            for name in names:
                host = self._hosts[name]
                if not (host.ready or self._read(name, host)):
                    continue
                slot = self._slot(name)
                if slot is not None:
                    host.turns += 1
                    return Turn(self, name, slot), host, slot
        return None

    def _slot(self, name: str) -> Lease | None:
        first = self._rng.randrange(self._connections)
        for number in range(self._connections):
            slot = (first + number) % self._connections
            lease = Lease(self._store, f"host:{name}:{slot}", self._owner, self._clock, self._dead)
            if lease.take():
                return lease
        return None

    def _refresh(self) -> None:
        """Learn of new buckets; each minute look again at what was passed, each hour at everything. A look counts once
        the store has answered it all."""
        now = self._clock()
        if now - self._recent_at < POLL:
            return
        if now - self._whole_at >= HOUR:
            for host in self._hosts.values():
                host.buckets.clear()
            self._learn(self._mark.read(), now)
            self._whole_at = now
        if now - self._again_at >= AGAIN:
            for host in self._hosts.values():
                self._sort_out(host, [{"original_id": name, "due": due} for name, due in host.held.items()])
            self._again_at = now
        if now - self._late_at >= MINUTE:
            self._late_at = now
            for host in self._hosts.values():
                host.buckets |= dict.fromkeys(minute for minute in host.buckets if minute >= now // MINUTE - LATE)
                host.read_at = 0
            self._hosts = {name: host for name, host in self._hosts.items() if not host.is_idle()}
        self._recent_at = now
        self._learn(now // MINUTE - LATE, now)

    def _learn(self, first: int, now: int) -> None:
        for row in self._open_rows(first, now // MINUTE):
            host = self._hosts.setdefault(row["host"], _Host())
            if row["bucket"] not in host.buckets:
                host.buckets[row["bucket"]] = None
                host.read_at = 0

    def _open_rows(self, first: int, last: int) -> Iterator[Row]:
        """The open buckets of the minutes first…last. Without a mark, of the days that can have any."""
        for start, stop in _spans(max(first, last - 400 * MINUTES_A_DAY), last + 1):
            after: tuple[int | str, ...] = (start - 1,)
            while True:
                page = self._store.read(QUEUE_OPEN, (start // MINUTES_A_DAY,), after=after, before=(stop,), limit=1000)
                yield from page
                if len(page) < 1000:
                    break
                after = (page[-1]["bucket"], page[-1]["host"])

    def _read(self, name: str, host: _Host) -> bool:
        """Fill ``ready`` from the host's buckets, oldest first; whether there is anything."""
        now = self._clock()
        if now - host.read_at < POLL:
            return False
        for minute in sorted(host.buckets):
            while not host.ready:
                page = self._store.read(
                    QUEUE, (minute, name), after=host.buckets[minute], before=(now + 1,), limit=PAGE
                )
                self._sort_out(host, page)
                if page:
                    host.buckets[minute] = (page[-1]["due"], page[-1]["original_id"])
                if len(page) < PAGE:
                    if minute < now // MINUTE - LATE:
                        del host.buckets[minute]
                    break
            if host.ready:
                return True
        self._sort_out(host, [{"original_id": name, "due": due} for name, due in host.newborn.items()])
        if not host.ready:
            host.read_at = now
        return bool(host.ready)

    def _sort_out(self, host: _Host, entries: list[Row]) -> None:
        """Put the originals that are free into ``ready``, and keep in mind those that others have and those whose PUT
        is still under way. What the store gives no answer for stays where it was."""
        now = self._clock()
        for entry, original in self._look_up(entries):
            due, original_id = entry["due"], entry["original_id"]
            is_named = original is not None and self._is_named(original)
            host.newborn.pop(original_id, None)
            host.held.pop(original_id, None)
            if original is None or not is_named:
                if now - due < MINUTE:
                    host.newborn[original_id] = due
            elif not is_open(original, due) or any(other.original_id == original_id for other in host.ready):
                continue
            elif self._claims.is_free(original):
                host.ready.append(original)
            else:
                host.held[original_id] = due

    def _is_named(self, original: Original) -> bool:
        row = self._store.get(URLS, (original.url,))
        return row is not None and row["original_id"] == original.original_id

    def _look_up(self, entries: list[Row]) -> list[tuple[Row, Original | None]]:
        rows = self._store.fetch((ORIGINALS, (entry["original_id"],)) for entry in entries)
        return [(entry, Original.of(row[0]) if row else None) for entry, row in zip(entries, rows, strict=True)]

    def _pages(self, minute: int, host: str, after: tuple[int, str] | None) -> Iterator[list[Row]]:
        while True:
            page = self._store.read(QUEUE, (minute, host), after=after, limit=1000)
            yield page
            if len(page) < 1000:
                return
            after = (page[-1]["due"], page[-1]["original_id"])

    def _has_work(self, minute: int, host: str) -> bool:
        return any(
            found is not None and is_open(found, entry["due"])
            for entries in self._pages(minute, host, None)
            for entry, found in self._look_up(entries)
        )


def _spans(first: int, stop: int) -> Iterator[tuple[int, int]]:
    """Minutes, one day at a time; those of the last week an hour at a time. In these days rows are deleted, and a node
    that reads a span of them holds all tombstones in memory, and gives up at 100,000."""
    while first < stop:
        length = 60 if first >= stop - WEEK else MINUTES_A_DAY
        end = min(stop, (first // length + 1) * length)
        yield first, end
        first = end
