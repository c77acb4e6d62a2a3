"""The worker: threads that take turns at hosts, and the housekeeping beside them.

A thread that sits on a slow source doesn't count: another one is started for it, up to a bound, so that even hundreds
of slow hosts leave the quick ones their threads.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ingest.claims import Claim
from ingest.jobs import Jobs
from ingest.leases import LEASE
from ingest.queue import Queue, Turn
from storage.errors import StoreError

log = logging.getLogger(__name__)

SLOW_AFTER: Final = 10.0  # seconds in one job, after which its thread is no longer counted
SPARE: Final = 8  # threads there may be, for each one that was asked for
IDLE: Final = 0.25  # seconds between two looks at an empty queue
TIDY: Final = 600.0
CHORE: Final = 5.0  # seconds that a chore gets to end by itself
TROUBLE: Final = 2.0  # seconds of rest after the store failed


@dataclass
class _Desk:
    """What one thread is at."""

    since: float | None = None
    claim: Claim | None = None
    turn: Turn | None = None


class Worker:
    """``threads``: how many jobs at once, slow ones not counted. ``sweep``: called every ``sweep_interval`` seconds."""

    def __init__(
        self,
        queue: Queue,
        jobs: Jobs,
        *,
        threads: int,
        sweep: Callable[[], object],
        sweep_interval: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._queue, self._jobs, self._count, self._monotonic = queue, jobs, threads, monotonic
        self._sweep, self._sweep_interval = sweep, sweep_interval
        self._lock = threading.Lock()
        self._desks: dict[threading.Thread, _Desk] = {}

    def run(self, stop: threading.Event) -> None:
        """Work until ``stop`` is set; running jobs are given back to the queue where they can't end at once."""
        idle = threading.Event()  # until then leases are renewed: a job may go on for long after the stop
        chores = [
            threading.Thread(target=self._every, args=args, name=name, daemon=True)
            for name, args in (
                ("renew", (idle, LEASE / 3_000_000, self._renew)),
                ("tidy", (stop, TIDY, self._queue.tidy)),
                ("sweep", (stop, self._sweep_interval, self._sweep)),
            )
        ]
        for chore in chores:
            chore.start()
        while not stop.is_set():
            self._hire(stop)
            stop.wait(IDLE)
        for thread in list(self._desks):
            thread.join()
        idle.set()
        for chore in chores:
            chore.join(CHORE)  # a sweep may be cut at any step

    def drain(self, stop: threading.Event, done: Callable[[], bool]) -> None:
        """Work until ``done`` says so, looked at now and then, or ``stop`` is set."""
        ended = threading.Event()
        runner = threading.Thread(target=self.run, args=(ended,), name="drain")
        runner.start()
        while not stop.is_set() and not done():
            stop.wait(IDLE)
        ended.set()
        runner.join()

    def _hire(self, stop: threading.Event) -> None:
        with self._lock:
            self._desks = {thread: desk for thread, desk in self._desks.items() if thread.is_alive()}
            while self._quick() < self._count and len(self._desks) < self._count * SPARE:
                desk = _Desk()
                thread = threading.Thread(target=self._work, args=(desk, stop), name=f"worker-{len(self._desks)}")
                self._desks[thread] = desk
                thread.start()

    def _quick(self) -> int:
        now = self._monotonic()
        return sum(desk.since is None or now - desk.since < SLOW_AFTER for desk in self._desks.values())

    def _is_surplus(self) -> bool:
        with self._lock:
            return self._quick() > self._count

    def _work(self, desk: _Desk, stop: threading.Event) -> None:
        while not stop.is_set() and not self._is_surplus():
            try:
                with self._queue.turn() as turn:
                    if turn is not None:
                        self._take(turn, desk, stop)
                        continue
            except StoreError as error:
                log.warning("the store failed: %s", error)
                stop.wait(TROUBLE)
            stop.wait(IDLE)

    def _take(self, turn: Turn, desk: _Desk, stop: threading.Event) -> None:
        desk.turn = turn
        try:
            for claim in turn.claims():
                desk.claim, desk.since = claim, self._monotonic()
                self._jobs.run(claim, stop)
                desk.claim, desk.since = None, None
                if stop.is_set():
                    return
        finally:
            desk.claim = desk.since = desk.turn = None

    def _renew(self) -> None:
        with self._lock:
            desks = list(self._desks.values())
        for desk in desks:
            claim, turn = desk.claim, desk.turn
            try:
                if claim is not None:
                    claim.renew()
                if turn is not None:
                    turn.keep()
            except StoreError as error:  # the next ones may go through, and so may this one's next renewal
                log.warning("a lease could not be renewed: %s", error)

    def _every(self, stop: threading.Event, seconds: float, chore: Callable[[], object]) -> None:
        while not stop.is_set():
            try:
                chore()
            except StoreError as error:
                log.warning("%s: the store failed: %s", threading.current_thread().name, error)
            except Exception:
                log.exception("%s", threading.current_thread().name)
            stop.wait(seconds)
