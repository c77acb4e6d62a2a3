"""An event that is set when this process is told to end."""

from __future__ import annotations

import queue
import signal
import threading


def stop_at(*numbers: int, once: bool = False) -> threading.Event:
    """An event that any of these signals sets. ``once``: a second one of the same ends the process.

    The handler itself may not set the event: it runs between any two steps of the main thread, which may just hold the
    event's lock, because it waits for the event or is in this very handler for an earlier signal (Ctrl-C, and then
    the supervisor's SIGTERM). It would wait for itself, for ever. A SimpleQueue is made for this.
    """
    stop = threading.Event()
    received: queue.SimpleQueue[int] = queue.SimpleQueue()

    def end(number: int, _frame: object) -> None:
        received.put(number)
        if once:
            signal.signal(number, signal.SIG_DFL)

    def wait() -> None:
        received.get()
        stop.set()

    for number in numbers:
        signal.signal(number, end)
    threading.Thread(target=wait, name="stop", daemon=True).start()
    return stop
