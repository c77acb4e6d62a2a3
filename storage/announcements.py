"""Candidates: whatever could become litter is announced here before it is made (storage protocols, «Principle»).

The bucket of a candidate is the hour of its announcement and one of 16 shards.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final
from zlib import crc32

from storage.schema import CANDIDATES
from storage.table import Row, Table

HOUR: Final = 3600 * 1_000_000
SHARDS: Final = 16


class Litter(StrEnum):
    """Kinds of candidates, and what their id is."""

    ORIGINAL = "original"  # original_id
    BLOB = "blob"  # original_id/attempt
    GENERATION = "generation"  # generation/context
    FILE = "file"  # bucket/file_id


def announcement(kind: Litter, name: str, now: int) -> tuple[Table, Row]:
    """The row that announces it, for ``put`` and ``put_many``."""
    shard = crc32(name.encode()) % SHARDS
    return CANDIDATES, {"hour": now // HOUR, "shard": shard, "kind": kind.value, "id": name}
