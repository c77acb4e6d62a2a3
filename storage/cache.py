"""The cache tier: bytes by key on the local disk, for all threads and processes of one machine.

Values must be functions of their keys (a checksum and a canonical request): they are evicted, never invalidated.
Whatever happens to the folder costs speed and never an answer: when it is full, read-only, deleted while in use or
damaged, ``get`` answers None, ``set`` and ``evict`` do nothing, and ``make`` makes.

In the folder: the database (``cache.db`` and its log), value files in folders of two hex digits, ``locks``, and
``damaged.db``, the beginning of a database that was set aside. Nothing else in it is ever touched.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakSet

from storage.bytelocks import ByteLocks
from storage.cache_rows import DATABASE, Broken, Hindered, Locked, Rows, Unsound
from storage.singleflight import Busy, SingleFlight
from storage.valuefiles import ValueFiles

__all__ = ["Busy", "Cache", "Counts"]

log = logging.getLogger(__name__)

_PAUSE = 5.0  # seconds without the database after it couldn't be opened, and without writing after it was locked
_SWEEP_EVERY = 300.0  # seconds
_GRACE = 60.0  # seconds after which a value file without a row belongs to a dead writer
_OPENING_POLLS, _OPENING_POLL = 200, 0.01  # how often, and every how many seconds, to ask whether it's one's turn
_ASIDE = 1 << 20  # bytes kept of a damaged database, to look at


@dataclass(frozen=True)
class Counts:
    """Of this process. ``errors``: calls that the cache failed, values found damaged. ``waited``: calls of ``make``
    that waited for another's."""

    hits: int
    misses: int
    made: int
    waited: int
    errors: int
    evicted: int


class Cache:
    """``size_limit``: bytes of database and value files together, without the write-ahead log (up to about 8 MiB).
    ``file_limit``: value files, of which there is one for each value of 1 MB or more; besides them there are at most
    256 folders and half a dozen files. Both hold after every write. ``wait`` (seconds), ``waiters``: see
    :class:`~storage.singleflight.SingleFlight`.

    Nothing is opened before the first use, and each process opens for itself: what is made before a fork works after
    it. ``clock`` and ``wall_clock`` tell seconds.
    """

    def __init__(
        self,
        folder: Path,
        *,
        size_limit: int,
        file_limit: int,
        wait: float = 30.0,
        waiters: int = 8,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder, self._size_limit, self._file_limit = folder, size_limit, file_limit
        self._largest = size_limit // 4
        self._wait, self._waiters, self._clock, self._wall_clock = wait, waiters, clock, wall_clock
        self._files = ValueFiles(folder, self._largest)
        self._locks = ByteLocks(folder / "locks")
        self._start()
        _caches.add(self)

    def _start(self) -> None:
        self._mutex, self._opening, self._sweeping = threading.Lock(), threading.Lock(), threading.Lock()
        self._rows: Rows | None = None
        self._counts = dict.fromkeys(("hits", "misses", "made", "errors", "evicted"), 0)
        self._closed_until = self._unwritten_until = self._sweep_at = -math.inf
        self._keeps = True
        self._flights = SingleFlight(wait=self._wait, waiters=self._waiters, clock=self._clock)

    def _start_in_fork(self) -> None:
        """In a forked child, where threads, locks and connections are the parent's."""
        self._locks.after_fork()
        self._start()

    def get(self, key: str) -> bytes | None:
        """The value, unless it is missing, found damaged (then it is removed) or the cache is out of order."""
        value = self._look(_name(key))
        self._count("misses" if value is None else "hits")
        return value

    def set(self, key: str, value: bytes) -> None:
        """Keep a value. One above a quarter of the size limit isn't kept: it would throw out too much."""
        self._keep(_name(key), value)

    def make(self, key: str, maker: Callable[[], bytes]) -> bytes:
        """The value as ``get`` has it, or made and kept: once for all who ask meanwhile, in any process.

        Raises Busy when another's making takes longer than ``wait`` or too many wait; and what ``maker`` raises, to
        those who wait for it in this process as well.
        """
        value = self.get(key)
        if value is not None:
            return value
        name = _name(key)

        def keep(made: bytes) -> None:
            self._count("made")
            self._keep(name, made)

        # What isn't kept can't be found by another process, so it needn't wait for this one.
        locks = self._locks if self._keeps else None
        return self._flights.run(name, locks, lambda: self._look(name), maker, keep)

    def evict(self, key: str) -> None:
        rows = self._opened()
        if rows is not None:
            self._remove(rows, _name(key))

    def counts(self) -> Counts:
        with self._mutex:
            return Counts(**self._counts, waited=self._flights.waited)

    def close(self) -> None:
        """Let go of the database. Idempotent; a later use opens it again."""
        rows, self._rows = self._rows, None
        if rows is not None:
            rows.close()

    def _look(self, name: bytes) -> bytes | None:
        rows = self._opened()
        if rows is None:
            return None
        try:
            return rows.get(name)
        except Unsound as error:
            log.warning("a value of the cache %s is removed: %s", self._folder, error)
            self._count("errors")
            self._remove(rows, name)
        except (Hindered, Broken) as error:
            self._failed(rows, error)
        return None

    def _keep(self, name: bytes, value: bytes) -> None:
        if len(value) > self._largest or self._clock() < self._unwritten_until:
            return
        rows = self._opened()
        if rows is not None and not rows.in_place():
            self._drop(rows)
            rows = self._opened()
        if rows is None:
            self._keeps = False
            return
        try:
            rows.put(name, value)
        except (Hindered, Broken) as error:
            if self._keeps:
                log.warning("the cache %s keeps nothing for now: %s", self._folder, error)
            self._keeps = False
            self._failed(rows, error)
        else:
            self._keeps = True
            self._sweep(rows)

    def _remove(self, rows: Rows, name: bytes) -> None:
        try:
            rows.remove(name)
        except (Hindered, Broken) as error:
            self._failed(rows, error)

    def _sweep(self, rows: Rows) -> None:
        if self._clock() < self._sweep_at or not self._sweeping.acquire(blocking=False):
            return
        try:
            self._sweep_at = self._clock() + _SWEEP_EVERY
            self._files.sweep(rows.files, self._wall_clock(), _GRACE)
        except (Hindered, Broken) as error:
            self._failed(rows, error)
        finally:
            self._sweeping.release()

    def _failed(self, rows: Rows, error: Hindered | Broken) -> None:
        self._count("errors")
        if isinstance(error, Locked):
            # Each further try would cost its whole time-out.
            self._unwritten_until = self._clock() + _PAUSE
        if isinstance(error, Broken):
            self._drop(rows, damage=error)
        elif not rows.in_place():
            self._drop(rows)

    def _drop(self, rows: Rows, damage: Broken | None = None) -> None:
        """Open anew at the next use. Connections of other threads close when these are done with them."""
        with self._opening:
            if self._rows is rows:
                self._rows = None
            if damage is None:
                return
            try:
                with self._turn():
                    # Else another process has done it.
                    if rows.in_place():
                        self._set_aside(damage)
            except (Hindered, OSError) as error:
                self._shut(error)

    def _opened(self) -> Rows | None:
        rows = self._rows
        if rows is not None:
            return rows
        with self._opening:
            if self._rows is None and self._clock() >= self._closed_until:
                try:
                    self._rows = self._open()
                except (Hindered, Broken, OSError) as error:
                    self._count("errors")
                    self._shut(error)
                else:
                    self._sweep_at = -math.inf
            rows = self._rows
        if rows is not None:
            self._sweep(rows)
        return rows

    def _open(self) -> Rows:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._turn():
            try:
                return self._new_rows()
            except Broken as damage:
                self._set_aside(damage)
                return self._new_rows()

    def _new_rows(self) -> Rows:
        return Rows(
            self._folder,
            self._files,
            size_limit=self._size_limit,
            file_limit=self._file_limit,
            evicted=lambda count: self._count("evicted", count),
        )

    def _shut(self, error: Exception) -> None:
        log.warning("the cache %s is out of order, its requests are answered without it: %s", self._folder, error)
        self._closed_until = self._clock() + _PAUSE

    def _set_aside(self, damage: Broken) -> None:
        log.warning("the database of the cache %s is set aside and a new one begun: %s", self._folder, damage)
        path, aside = self._folder / DATABASE, self._folder / "damaged.db"
        for suffix in ("-wal", "-shm"):
            path.with_name(DATABASE + suffix).unlink(missing_ok=True)
        path.replace(aside)
        if aside.stat().st_size > _ASIDE:
            os.truncate(aside, _ASIDE)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """One process at a time opens the database or sets it aside."""
        token = None
        with suppress(OSError):  # without locks it may go wrong, and is done again
            for _ in range(_OPENING_POLLS):
                token = self._locks.take(b"")
                if token is not None:
                    break
                time.sleep(_OPENING_POLL)
            else:
                raise Hindered("another process doesn't get done with opening it")
        try:
            yield
        finally:
            if token is not None:
                self._locks.free(token)

    def _count(self, what: str, count: int = 1) -> None:
        with self._mutex:
            self._counts[what] += count


def _name(key: str) -> bytes:
    return key.encode("utf-8", "surrogatepass")


_caches: WeakSet[Cache] = WeakSet()


def _before_fork() -> None:
    # SQLite's connections must not be carried over. Python clears those of other threads in the child.
    for cache in list(_caches):
        cache.close()


def _after_fork_in_child() -> None:
    for cache in list(_caches):
        cache._start_in_fork()


os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)
