"""What one run of the sweep did, or would do."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass
class SweepReport:
    """Counts of one run. ``skipped`` is true when another sweep was running; ``bytes`` are those of ``originals``;
    ``blobs`` are unfinished tries that had left bytes."""

    skipped: bool = False
    dry_run: bool = False
    candidates: int = 0
    originals: int = 0
    bytes: int = 0
    blobs: int = 0
    contexts: int = 0
    references: int = 0
    referenced: int = 0
    young: int = 0
    buckets: int = 0

    @property
    def is_clean(self) -> bool:
        return not self.skipped
