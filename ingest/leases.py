"""Named leases in the store: locks with an end, and the marks that only move forward.

A lease is for thrift (one sweep at a time, few connections to a host), never for safety: clocks need not agree.
"""

from __future__ import annotations

import threading
from typing import Final

from ingest.owner import IsDead, is_dead
from storage.ids import Clock
from storage.interface import Store
from storage.schema import LEASES
from storage.table import ABSENT, Expect, Put, Remove, Row

MINUTE: Final = 60 * 1_000_000
HOUR: Final = 60 * MINUTE
LEASE: Final = 30 * 1_000_000  # µs


class Lease:
    """One named lease, held or not."""

    def __init__(self, store: Store, name: str, owner: str, clock: Clock, dead: IsDead = is_dead) -> None:
        self.name = name
        self._store, self._owner, self._clock, self._dead = store, owner, clock, dead
        self._lock = threading.Lock()
        self._rev: str | None = None
        self._until = 0

    def take(self) -> bool:
        """Take it, or renew it when it has less than two thirds left; False when another holds it."""
        with self._lock:
            now = self._clock()
            if self._rev is not None and self._until - now > LEASE * 2 // 3:
                return True
            expect = self._rev if self._until > now else self._free(now)
            if expect is None:
                return False
            row: Row = {"name": self.name, "owner": self._owner, "until": now + LEASE, "value": None}
            outcome = self._store.commit(LEASES, (self.name,), [Put(row, expect)])
            self._rev, self._until = (outcome.rev, now + LEASE) if outcome else (None, 0)
            return bool(outcome)

    def release(self) -> None:
        with self._lock:
            if self._rev is not None:
                self._store.commit(LEASES, (self.name,), [Remove((self.name,), self._rev)])
                self._rev, self._until = None, 0

    def _free(self, now: int) -> Expect:
        """What to expect when taking it: ABSENT or a revision; None when somebody holds it."""
        row = self._store.get(LEASES, (self.name,))
        if row is None:
            return ABSENT
        free = row["until"] <= now or self._dead(row["owner"])
        return row["rev"] if free else None


class Mark:
    """A number in the store that only grows: everything below it is done."""

    def __init__(self, store: Store, name: str) -> None:
        self._store, self._name = store, f"mark:{name}"

    def read(self) -> int:
        row = self._store.get(LEASES, (self._name,))
        return 0 if row is None else row["value"]

    def advance(self, value: int) -> None:
        """Move it forward; where another moved it at the same time or further, that stands."""
        row = self._store.get(LEASES, (self._name,))
        if row is None or row["value"] < value:
            changed = {"name": self._name, "owner": "", "until": None, "value": value}
            self._store.commit(LEASES, (self._name,), [Put(changed, row["rev"] if row else ABSENT)])


def begin_marks(store: Store, clock: Clock) -> None:
    """Set the marks of a new store, so that nobody looks for what is older than it."""
    now = clock()
    for name, value in (("queue", now // MINUTE - 60), ("candidates", now // HOUR - 2)):
        row: Row = {"name": f"mark:{name}", "owner": "", "until": None, "value": value}
        store.commit(LEASES, (row["name"],), [Put(row, ABSENT)])
