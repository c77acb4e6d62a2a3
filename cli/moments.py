"""Times as people and scripts read them."""

from __future__ import annotations

from datetime import UTC, datetime


def moment(microseconds: int) -> str:
    """RFC 3339 in UTC, whole seconds."""
    return datetime.fromtimestamp(microseconds // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def age(microseconds: int) -> str:
    """A span in its largest unit: 5 s, 3 min, 2 h, 4 d."""
    seconds = microseconds // 1_000_000
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"
