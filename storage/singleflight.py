"""Single-flight: of all who miss one value at once, in any thread of any process, one makes it and the others wait.

Threads of one process meet in a dict of flights and get the maker's value from memory, so that they have it even when
it can't be cached. Processes meet at a lock that the kernel frees when its holder dies; whoever gets it next looks
into the cache first. A maker's exception reaches the threads that wait in its process at that moment (a broken image
is tried once, not once for each of 200 waiting requests); it isn't kept, and other processes and later calls try for
themselves.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Protocol

_FIRST_POLL, _LAST_POLL = 0.002, 0.05


class Busy(Exception):
    """Another makes this value and it didn't come within the deadline, or too many wait already. HTTP 503."""


class Locks(Protocol):
    """Locks between processes, as :class:`storage.bytelocks.ByteLocks` has them."""

    def take(self, name: bytes) -> int | None: ...
    def free(self, token: int) -> None: ...


class _Flight:
    """One making. Done without value and error: its leader gave up before it began, so another may lead."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.value: bytes | None = None
        self.error: Exception | None = None
        self.trace: TracebackType | None = None


class SingleFlight:
    """``wait``: seconds that a call may wait for another's value (making it oneself isn't bounded here).
    ``waiters``: threads of this process that may wait at once; with half of the server's threads, the other half
    keeps answering while one slow image is made."""

    def __init__(
        self,
        *,
        wait: float,
        waiters: int,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._wait, self._clock, self._sleep = wait, clock, sleep
        self._places = threading.BoundedSemaphore(waiters)
        self._mutex = threading.Lock()
        self._flights: dict[bytes, _Flight] = {}
        self.waited = 0

    def run(
        self,
        name: bytes,
        locks: Locks | None,
        look: Callable[[], bytes | None],
        make: Callable[[], bytes],
        keep: Callable[[bytes], None],
    ) -> bytes:
        """The value of ``name``: found by ``look``, or made by ``make`` and handed to ``keep``, here or elsewhere.

        ``locks`` is None where nothing can be kept: what another process makes couldn't be found, so there is nothing
        to wait for. ``look`` and ``keep`` must not raise. Raises Busy, and what ``make`` raises.
        """
        deadline = self._clock() + self._wait
        while True:
            with self._mutex:
                flight = self._flights.get(name)
                if flight is None:
                    flight = self._flights[name] = _Flight()
                    break
            self._follow(flight, deadline)
            if flight.error is not None:
                # The trace is reset, or it would grow with each thread that raises the one exception.
                raise flight.error.with_traceback(flight.trace)
            if flight.value is not None:
                return flight.value
        try:
            with self._alone(name, locks, deadline):
                value = look()
                if value is None:
                    value = self._make(flight, make)
                    keep(value)
                flight.value = value
                return value
        finally:
            with self._mutex:
                del self._flights[name]
            flight.done.set()

    def _make(self, flight: _Flight, make: Callable[[], bytes]) -> bytes:
        try:
            value = make()
        except Exception as error:
            flight.error, flight.trace = error, error.__traceback__
            raise
        # Those who wait needn't wait for the disk as well.
        flight.value = value
        flight.done.set()
        return value

    def _follow(self, flight: _Flight, deadline: float) -> None:
        if flight.done.is_set():
            return
        with self._place():
            if not flight.done.wait(max(0.0, deadline - self._clock())):
                raise Busy("made by another request, and not ready within the deadline")

    @contextmanager
    def _alone(self, name: bytes, locks: Locks | None, deadline: float) -> Iterator[None]:
        """No other process makes this name meanwhile, as far as there are locks."""
        token = None
        # Without locks the same work may be done twice, but no answer fails for it.
        if locks is not None:
            with suppress(OSError):
                token = locks.take(name)
                if token is None:
                    with self._place():
                        token = self._queue(name, locks, deadline)
        try:
            yield
        finally:
            if locks is not None and token is not None:
                locks.free(token)

    def _queue(self, name: bytes, locks: Locks, deadline: float) -> int:
        pause = _FIRST_POLL
        while True:
            left = deadline - self._clock()
            if left <= 0:
                raise Busy("made by another process, and not ready within the deadline")
            self._sleep(min(pause, left))
            token = locks.take(name)
            if token is not None:
                return token
            pause = min(2 * pause, _LAST_POLL)

    @contextmanager
    def _place(self) -> Iterator[None]:
        if not self._places.acquire(blocking=False):
            raise Busy("too many requests wait already")
        with self._mutex:
            self.waited += 1
        try:
            yield
        finally:
            self._places.release()
