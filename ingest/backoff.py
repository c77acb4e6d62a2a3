"""When a failed fetch is tried again."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

SECOND: Final = 1_000_000


@dataclass(frozen=True)
class Backoff:
    """``delays``: seconds after the first, second, … failure, the last one for all further; ``jitter``: the share by
    which a delay is lengthened at most, at random; ``max_failures``: after that many, the next ends it."""

    delays: Sequence[float] = (60, 900, 14_400)
    jitter: float = 0.2
    max_failures: int = 3
    rng: random.Random = field(default_factory=random.Random, compare=False)

    def due(self, now: int, failures: int, retry_after: float | None = None) -> int | None:
        """The µs at which to try again after this many failures, None when that was the last."""
        if failures > self.max_failures:
            return None
        delay = retry_after if retry_after is not None else self.delays[min(max(failures, 1), len(self.delays)) - 1]
        return now + int(delay * (1 + self.jitter * self.rng.random()) * SECOND)
