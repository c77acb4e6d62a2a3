"""References that were found lately, so that a hot one isn't read for each request."""

from __future__ import annotations

import threading
from typing import Final

from ingest.records import Original, Reference, Status
from storage.ids import Clock
from storage.interface import Watchful

Attached = tuple[Reference, Original]


class Remembered:
    """References found lately in this process: those of finished originals only, never absences."""

    LIMIT: Final = 10_000

    def __init__(self, clock: Clock, ttl: float) -> None:
        self._clock, self._ttl = clock, int(ttl * 1_000_000)
        self._found: dict[str, tuple[int, Attached]] = {}

    def get(self, reference_id: str) -> Attached | None:
        until, found = self._found.get(reference_id, (0, None))
        return found if until > self._clock() else None

    def keep(self, found: Attached) -> None:
        if self._ttl and found[1].status == Status.OK:
            if len(self._found) >= self.LIMIT:
                self._found.clear()
            self._found[found[0].reference_id] = (self._clock() + self._ttl, found)

    def forget(self, reference_id: str) -> None:
        self._found.pop(reference_id, None)

    def clear(self) -> None:
        self._found.clear()


class Unchanged:
    """References found by this thread since the last write to the store, by whatever process: as good as a look."""

    LIMIT: Final = 500  # for each thread

    def __init__(self, store: Watchful) -> None:
        self._store, self._local = store, threading.local()

    def get(self, reference_id: str) -> Attached | None:
        state = self._store.state()
        if getattr(self._local, "state", None) != state:
            self._local.state, self._local.found = state, {}
        found: Attached | None = self._local.found.get(reference_id)
        return found

    def keep(self, found: Attached) -> None:
        """What was read after the state that ``get`` saw."""
        if len(self._local.found) >= self.LIMIT:
            self._local.found.clear()
        self._local.found[found[0].reference_id] = found

    def forget(self, reference_id: str) -> None:
        """Nothing to do: the write that calls for it changed the state."""

    def clear(self) -> None:
        """As little."""
