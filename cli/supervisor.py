"""Keeps a few child processes alive in one process group, and ends them with itself."""

from __future__ import annotations

import logging
import queue
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cli.lifeline import VARIABLE, Lifeline

log = logging.getLogger("magazin.supervisor")

FIRST_DELAY, LAST_DELAY, SETTLED = 0.5, 30.0, 60.0  # seconds: back-off, and after how long a child counts as well


@dataclass(frozen=True)
class Child:
    """How to start one. ``fds`` are the file descriptors that it inherits."""

    name: str
    argv: Sequence[str]
    fds: tuple[int, ...] = ()


class Running:
    """One child: its process, or when to start the next."""

    def __init__(self, child: Child, now: float) -> None:
        self.child = child
        self.process: subprocess.Popen[bytes] | None = None
        self.due, self.started, self.delay = now, now, FIRST_DELAY

    def ended(self, now: float) -> float:
        """Note that the process is gone. Returns the seconds until the next; a settled child's back-off begins anew."""
        wait = FIRST_DELAY if now - self.started >= SETTLED else self.delay
        self.process, self.due, self.delay = None, now + wait, min(wait * 2, LAST_DELAY)
        return wait


class Supervisor:
    """Runs children until SIGTERM, SIGINT or SIGHUP, restarting what dies with a growing delay.

    ``stopping`` is called first when the end begins (to close a listening socket). Children get SIGTERM and ``grace``
    seconds to end, then SIGKILL. A second SIGINT makes them end quickly (SIGQUIT).
    """

    def __init__(
        self,
        children: Sequence[Child],
        *,
        environ: Mapping[str, str],
        grace: float,
        stopping: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._environ, self._grace, self._stopping, self._clock = dict(environ), grace, stopping, clock
        self._signals: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._running = [Running(child, clock()) for child in children]
        self._lifeline = Lifeline()

    def run(self) -> int:
        """Returns the exit status: 0 after a clean end, 1 when a child had to be killed."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, lambda received, _frame: self._signals.put(received))
        try:
            while self._next_signal(self._tend()) not in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                pass
            return self._stop()
        finally:
            self._lifeline.close()

    def _tend(self) -> float:
        """Reap, start what is due, and say how many seconds may pass until the next look."""
        now = self._clock()
        for one in self._running:
            if one.process is not None and one.process.poll() is not None:
                code, name = one.process.returncode, one.child.name
                log.warning("%s ended with %s; again in %g s", name, _meaning(code), one.ended(now))
            if one.process is None and one.due <= now:
                one.process, one.started = self._start(one.child), now
        return min([1.0, *(max(0.0, one.due - now) for one in self._running if one.process is None)])

    def _start(self, child: Child) -> subprocess.Popen[bytes]:
        environ = {**self._environ, VARIABLE: str(self._lifeline.read_end)}
        return subprocess.Popen(
            child.argv, env=environ, pass_fds=(self._lifeline.read_end, *child.fds), stdin=subprocess.DEVNULL
        )

    def _next_signal(self, seconds: float) -> int:
        try:
            return self._signals.get(timeout=seconds)
        except queue.Empty:
            return 0

    def _stop(self) -> int:
        self._stopping()
        left = [one.process for one in self._running if one.process is not None]
        _send(left, signal.SIGTERM)
        end = self._clock() + self._grace
        while (left := [process for process in left if process.poll() is None]) and self._clock() < end:
            if self._next_signal(min(1.0, max(0.0, end - self._clock()))) == signal.SIGINT:
                _send(left, signal.SIGQUIT)
        _send(left, signal.SIGKILL)
        for process in left:
            process.wait()
        return 1 if left else 0


def _send(processes: Sequence[subprocess.Popen[bytes]], number: int) -> None:
    for process in processes:
        process.send_signal(number)


def _meaning(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"status {code}"


def python(module: str, *arguments: str) -> list[str]:
    """The command line of a module of ours; never one that happens to lie in the current folder."""
    return [sys.executable, "-P", "-m", module, *arguments]
