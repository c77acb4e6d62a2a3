"""A claim: one worker's lease on one original, from taking it to its outcome.

Every write compares and sets against the revision that this claim last saw. A conflict is read and decided: where the
row still names this attempt, only something harmless moved it and the write is repeated; else the claim is lost and
what was made for it is thrown away.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Sequence
from typing import Any, Final

from ingest.leases import LEASE
from ingest.logs import Logs
from ingest.owner import IsDead, is_dead
from ingest.records import Original, Status
from storage.announcements import Litter, announcement
from storage.ids import Clock, Ids
from storage.interface import Store
from storage.schema import ORIGINALS
from storage.table import ABSENT, Put, Row, Table

LOST_LEASES: Final = 3


class Claim:
    """A lease on an original. ``lost`` is set once it is known that somebody else has it."""

    def __init__(self, store: Store, original: Original, attempt: str, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._lock = threading.Lock()
        self._over = False
        self.original, self.attempt = original, attempt
        self.lost = threading.Event()

    def renew(self) -> None:
        with self._lock:
            if not self._over:
                self._commit(lease_until=self._clock() + LEASE)

    def conclude(self, rows: Sequence[tuple[Table, Row]] = (), /, **changes: Any) -> bool:
        """The outcome, behind the rows that must be there before it, and the end of the claim; False when it was
        lost."""
        with self._lock, self._store.unit():  # in this order, or a renewal under way would be waited for in vain
            self._over = True
            self._store.put_many(rows)
            return self._commit(lease_owner=None, lease_until=None, trying=None, **changes)

    def _commit(self, **changes: Any) -> bool:
        while not self.lost.is_set():
            changed = dataclasses.replace(self.original, **changes)
            key = (changed.original_id,)
            outcome = self._store.commit(ORIGINALS, key, [Put(changed.row(), self.original.rev)])
            if outcome:
                self.original = dataclasses.replace(changed, rev=outcome.rev)
                return True
            met = outcome.rows[0]
            if met is not None and met["attempt"] == self.attempt:
                return True  # applied, and overtaken since
            if met is None or met["trying"] != self.attempt or met["retired"]:
                self.lost.set()
            else:
                self.original = Original.of(met)
        return False


class Claims:
    """Takes claims for one owner (a process)."""

    def __init__(self, store: Store, *, owner: str, ids: Ids, clock: Clock, dead: IsDead = is_dead) -> None:
        self._store, self._owner, self._ids, self._clock, self._dead = store, owner, ids, clock, dead
        self._logs = Logs(store, ids=ids, clock=clock)

    def is_free(self, original: Original) -> bool:
        """Whether nobody works on it: no lease, one that ran out, or that of a process known to be dead."""
        if original.lease_owner is None or (original.lease_until or 0) <= self._clock():
            return True
        return original.lease_owner != self._owner and self._dead(original.lease_owner)

    def take(self, original: Original) -> Claim | None:
        """Claim it; None when another was quicker, or when this ends it: too many workers died of it."""
        now = self._clock()
        lost = (original.lost_leases or 0) + (original.lease_owner is not None)
        attempt = self._ids.ordered()
        if lost >= LOST_LEASES:
            reason = f"the worker died {lost} times while it worked on this"
            changed = dataclasses.replace(
                original,
                status=Status.ERROR,
                outcome="SYSTEM_ERROR",
                reason=reason,
                lost_leases=lost,
                last_failure=now,
                last_checked=now // 1000 * 1000,
                lease_owner=None,
                lease_until=None,
                trying=None,
            )
            self._logs.note_original(original.original_id, f"SYSTEM_ERROR: {reason}")
            self._store.commit(ORIGINALS, (original.original_id,), [Put(changed.row(), original.rev)])
            return None
        leased = self._leased(original, attempt, lost, now)
        with self._store.unit():
            self._store.put(*announcement(Litter.BLOB, f"{original.original_id}/{attempt}", now))
            if original.lease_owner is not None:
                line = f"the worker died during a try, or lost its lease ({lost} of {LOST_LEASES}); tried again"
                self._logs.note_original(original.original_id, line)
            outcome = self._store.commit(ORIGINALS, (original.original_id,), [Put(leased.row(), original.rev)])
        if not outcome:
            return None
        return Claim(self._store, dataclasses.replace(leased, rev=outcome.rev), attempt, self._clock)

    def begin(self, url: str, host: str, mime: str | None) -> Claim:
        """A claim on a new original that nobody refers to yet and no queue names (see References.adopt)."""
        now, attempt = self._clock(), self._ids.ordered()
        bare = Original(self._ids.random(), Status.PROCESSING, url, host, registered=now, mime_declared=mime)
        original = self._leased(bare, attempt, 0, now)
        self._store.put_many(
            [
                announcement(Litter.ORIGINAL, original.original_id, now),
                announcement(Litter.BLOB, f"{original.original_id}/{attempt}", now),
            ]
        )
        outcome = self._store.commit(ORIGINALS, (original.original_id,), [Put(original.row(), ABSENT)])
        return Claim(self._store, dataclasses.replace(original, rev=outcome.rev), attempt, self._clock)

    def _leased(self, original: Original, attempt: str, lost: int, now: int) -> Original:
        return dataclasses.replace(
            original,
            status=Status.PROCESSING,
            lease_owner=self._owner,
            lease_until=now + LEASE,
            trying=attempt,
            lost_leases=lost,
        )


def is_open(original: Original, due: int | None) -> bool:
    """Whether a queue entry of this ``due`` still stands for work to do."""
    return original.status in (Status.PROCESSING, Status.RETRY) and not original.retired and original.due == due
