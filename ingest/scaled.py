"""The seed's four boxes, made when an original comes in and kept in its scaled tables."""

from __future__ import annotations

from collections.abc import Mapping

import xxhash

from ingest.records import Original
from storage.interface import Store
from storage.schema import SCALED
from storage.table import VALUE_LIMIT, Row, Table


class DamagedBox(Exception):
    """A prepared image doesn't match its checksum."""


def scaled_rows(original_id: str, attempt: str, made: Mapping[tuple[int, int], bytes]) -> list[tuple[Table, Row]]:
    """The rows to put, before the outcome that names the attempt. One that is too large for a value is left out: it
    is rendered when it is asked for."""
    return [
        (
            SCALED[box],
            {"original_id": original_id, "attempt": attempt, "data": data, "crc": xxhash.xxh3_64_hexdigest(data)},
        )
        for box, data in made.items()
        if len(data) <= VALUE_LIMIT
    ]


def prepared(store: Store, original: Original, box: tuple[int, int]) -> bytes | None:
    """The JPEG of this box, None where there is none. Raises DamagedBox, Unavailable."""
    table = SCALED.get(box)
    if table is None or original.attempt is None:
        return None
    row = store.get(table, (original.original_id, original.attempt))
    if row is None:
        return None
    data: bytes = row["data"]
    if xxhash.xxh3_64_hexdigest(data) != row["crc"]:
        raise DamagedBox(f"{table.name} of original {original.original_id}")
    return data
