"""A pipe that tells children when their supervisor is gone, even by kill -9: the kernel closes its end.

The parent-death signal of Linux would do for direct children, but gunicorn's own workers are grandchildren, and the
signal is sent when the *thread* that forked ends. The end of a pipe reaches every process that holds the other end.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping

VARIABLE = "MAGAZIN_LIFELINE"


class Lifeline:
    """The supervisor's side. ``read_end`` is handed to children, the other end never leaves this process."""

    def __init__(self) -> None:
        self.read_end, self._write_end = os.pipe()  # neither is inherited unless passed on by name

    def close(self) -> None:
        os.close(self.read_end)
        os.close(self._write_end)


def watch(environ: Mapping[str, str] = os.environ) -> threading.Thread | None:
    """End this process at once when the supervisor named in the environment is gone. Threads don't survive a fork, so
    each process calls this for itself."""
    if VARIABLE not in environ:
        return None
    thread = threading.Thread(target=_wait, args=(int(environ[VARIABLE]),), name="lifeline", daemon=True)
    thread.start()
    return thread


def _wait(read_end: int) -> None:
    while os.read(read_end, 1):
        pass
    # Not a clean end: whoever killed the supervisor wanted none, and everything here stands being killed.
    os._exit(70)
