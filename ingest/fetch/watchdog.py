"""Ends one fetch at its total deadline, or when it is told to stop, whatever it waits for.

Socket timeouts begin anew with every byte, so they don't bound a trickle. A thread watches the clock and shuts the
connection down; whoever reads from it then sees an error or what looks like a proper end, and must :meth:`check`.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Final, TypeVar

from ingest.fetch.failure import Failure, transient
from ingest.fetch.outcome import Outcome

T = TypeVar("T")

PERIOD: Final = 0.1  # seconds between two looks at the clock and the stop event


class Watchdog:
    """A context manager; the fetch happens within it, in one thread.

    ``seconds`` is the total deadline by ``monotonic``, which counts in seconds.
    """

    def __init__(self, seconds: float, stop: threading.Event | None, monotonic: Callable[[], float]) -> None:
        self._seconds, self._stop, self._monotonic = seconds, stop, monotonic
        self._end = monotonic() + seconds
        self._lock, self._over = threading.Lock(), threading.Event()
        self._cut: Failure | None = None
        self._watched: socket.socket | None = None
        self._wake: Callable[[], object] = lambda: None
        self._thread = threading.Thread(target=self._run, name="fetch-watchdog", daemon=True)

    def __enter__(self) -> Watchdog:
        self._look()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        self.watch(None)

    def check(self) -> None:
        """Raises the Failure for which the fetch was cut, if it was."""
        if self._cut is not None:
            raise self._cut

    def watch(self, sock: socket.socket | None) -> None:
        """Shut this connection when the time comes, and no longer the one before it.

        A duplicate is kept: the socket's own number may be closed and given to another file at any moment, and TLS
        takes it away from the socket object.
        """
        duplicate = sock.dup() if sock is not None else None
        with self._lock:
            before, self._watched = self._watched, duplicate
            if self._cut is not None:
                _shut(duplicate)
        if before is not None:
            before.close()
        if sock is not None:
            self.check()

    def call(self, function: Callable[[], T]) -> T:
        """What the function returns or raises, or the cut, if that comes first. For what can't be interrupted, as
        looking a name up: it then goes on in its thread, unheard."""
        done, results, errors = threading.Event(), [], []

        def run() -> None:
            try:
                results.append(function())
            except BaseException as error:
                errors.append(error)
            done.set()

        with self._lock:
            self._wake = done.set
        self.check()
        threading.Thread(target=run, name="fetch-lookup", daemon=True).start()
        done.wait()
        self.check()
        if errors:
            raise errors[0]
        return results[0]

    def _run(self) -> None:
        while self._cut is None and not self._over.wait(min(PERIOD, max(0.0, self._end - self._monotonic()))):
            self._look()

    def _look(self) -> None:
        if self._stop is not None and self._stop.is_set():
            why = Failure(
                Outcome.SYSTEM_ERROR, "wasn't fetched to its end: it was told to stop", transient=True, counted=False
            )
        elif self._monotonic() >= self._end:
            why = transient(Outcome.TIMEOUT, f"took longer than {self._seconds:g} s in all")
        else:
            return
        with self._lock:
            self._cut = why
            _shut(self._watched)
            self._wake()


def _shut(sock: socket.socket | None) -> None:
    if sock is not None:
        with suppress(OSError):  # not connected yet, or no longer
            sock.shutdown(socket.SHUT_RDWR)
