"""Ids: random ones for what must never be guessed or used again, time-ordered ones for what is kept in order."""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Callable
from typing import TypeAlias

Clock: TypeAlias = Callable[[], int]
"""Microseconds since 1970."""


def system_clock() -> int:
    return time.time_ns() // 1000


class Ids:
    """Makes ids. Clock and randomness come in, so that a test can replay a schedule."""

    def __init__(self, clock: Clock = system_clock, entropy: Callable[[int], bytes] = os.urandom) -> None:
        self._clock, self._entropy = clock, entropy
        self._lock, self._last = threading.Lock(), 0

    def random(self) -> str:
        """A version-4 UUID, lower case."""
        return str(uuid.UUID(bytes=self._entropy(16), version=4))

    def ordered(self) -> str:
        """32 hex digits: 16 of the microsecond, strictly increasing within this process, and 16 random ones.

        UUID version 7 would do but for its order within a millisecond, which is left to each implementation.
        """
        with self._lock:
            self._last = max(self._clock(), self._last + 1)
            moment = self._last
        return f"{moment:016x}{self._entropy(8).hex()}"


def moment_of(ordered: str) -> int:
    """The microsecond at which an ordered id was made."""
    return int(ordered[:16], 16)
