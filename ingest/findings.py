"""What a check finds: what is wrong, and what is only litter that a sweep will take."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

KEPT = 1000


class Wrong(StrEnum):
    """Kinds of what must not be."""

    DAMAGED = "damaged"  # parts of an original are missing or not what was stored
    SCALED = "scaled"  # a prepared image isn't what was stored; dropped, and rendered when asked for
    DANGLING = "dangling"  # a live reference without its original; detached
    INDEX = "index"  # an index row was missing; put back
    QUEUE = "queue"  # an original that waits for work was in no queue; put back


@dataclass(frozen=True)
class Finding:
    kind: Wrong
    text: str


@dataclass
class Findings:
    """Counts of one check. ``findings`` holds the first thousand, ``wrong`` counts all.

    Litter: ``unreferenced`` originals, ``dead`` references and ``unnamed`` blobs are left to the sweep, which was told
    of each (``announced``: only now); ``stale`` index rows were deleted.
    """

    originals: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    bytes: int = 0
    references: int = 0
    unreferenced: int = 0
    dead: int = 0
    unnamed: int = 0
    stale: int = 0
    announced: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    @property
    def is_sound(self) -> bool:
        return not self.wrong

    def add(self, kind: Wrong, text: str) -> None:
        self.wrong[kind.value] += 1
        if len(self.findings) < KEPT:
            self.findings.append(Finding(kind, text))
