"""``Prefer: wait`` (RFC 7240, 4.3), bounded so that waiting never takes all threads."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

SECONDS: Final = re.compile(r"[0-9]{1,9}")
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.5  # seconds between two looks


def preferred_wait(header: str | None) -> int | None:
    """The seconds of the first ``wait`` preference, None if there is none. What can't be read is no preference."""
    for part in (header or "").split(","):
        name, _, value = part.partition(";")[0].partition("=")
        if name.strip().lower() == "wait":
            seconds = value.strip().strip('"')
            return int(seconds) if SECONDS.fullmatch(seconds) else None
    return None


class Waiting:
    """``waiters``: how many may wait at once. ``longest``: seconds for each at most."""

    def __init__(
        self,
        waiters: int,
        longest: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._free = threading.BoundedSemaphore(waiters) if waiters > 0 else None
        self._longest, self._clock, self._sleep = longest, clock, sleep

    def until(self, look: Callable[[], T], done: Callable[[T], bool], seconds: float) -> T | None:
        """Look until what is seen is ``done`` or the time is over, and give what was seen last.

        None at once when too many wait already.
        """
        if self._free is None or not self._free.acquire(blocking=False):
            return None
        try:
            end, pause = self._clock() + min(seconds, self._longest), FIRST_PAUSE
            while True:
                seen = look()
                left = end - self._clock()
                if done(seen) or left <= 0:
                    return seen
                self._sleep(min(pause, left))
                pause = min(pause * 1.5, LONGEST_PAUSE)
        finally:
            self._free.release()
