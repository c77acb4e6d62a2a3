"""A file's record, as its row holds it and as it is shown; and what a caller may put into one."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from storage.blobs import Blob
from storage.table import VALUE_LIMIT, Row

CHUNK_SIZE: Final = 255 * 1024
"""Bytes; the seed's default."""
LONGEST_NAME: Final = 1024  # bytes in UTF-8
LARGEST_METADATA: Final = 64 * 1024  # bytes as JSON
DEEPEST_METADATA: Final = 100  # lists and objects within each other; far from what json's recursion can read anywhere
ID: Final = re.compile(r"[A-Za-z0-9-]{1,64}")


class Status(StrEnum):
    """Incomplete → Complete → Deleted, or Incomplete → removed; nothing else."""

    INCOMPLETE = "Incomplete"
    COMPLETE = "Complete"
    DELETED = "Deleted"


LISTED: Final = (Status.COMPLETE, Status.DELETED)
"""What the indexes know; an upload under way is in none."""


@dataclass(frozen=True)
class FileRecord:
    """ReGrid's «Files record», and what its row holds besides. Times are microseconds since 1970, sizes bytes."""

    id: str
    filename: str
    status: Status
    chunk_size_bytes: int
    started_at: int
    length: int | None = None
    """Known, like the next two, once it is Complete."""
    sha256: str | None = None
    """Lower-case hex."""
    finished_at: int | None = None
    deleted_at: int | None = None
    metadata: Any = None
    """Any JSON value."""
    attempt: str = ""
    naming: str = ""
    alive: int = 0
    erasing: int | None = None
    rev: str = ""

    @property
    def blob(self) -> Blob:
        """The bytes, as the chunk reader knows them. Of finished files only."""
        assert self.length is not None and self.sha256 is not None
        return Blob(self.id, self.attempt, self.length, self.chunk_size_bytes, self.sha256)

    @property
    def is_listed(self) -> bool:
        """Whether index rows show it."""
        return self.status in LISTED and self.erasing is None

    def row(self) -> Row:
        return {
            "id": self.id,
            "filename": self.filename,
            "status": self.status.value,
            "length": self.length,
            "chunkSizeBytes": self.chunk_size_bytes,
            "sha256": self.sha256,
            "startedAt": self.started_at,
            "finishedAt": self.finished_at,
            "deletedAt": self.deleted_at,
            "metadata": None if self.metadata is None else as_json(self.metadata),
            "attempt": self.attempt,
            "naming": self.naming,
            "alive": self.alive,
            "erasing": self.erasing,
        }

    @classmethod
    def of(cls, row: Row) -> FileRecord:
        return cls(
            id=row["id"],
            filename=row["filename"],
            status=Status(row["status"]),
            chunk_size_bytes=row["chunkSizeBytes"],
            started_at=row["startedAt"],
            length=row["length"],
            sha256=row["sha256"],
            finished_at=row["finishedAt"],
            deleted_at=row["deletedAt"],
            metadata=None if row["metadata"] is None else json.loads(row["metadata"]),
            attempt=row["attempt"],
            naming=row["naming"] or "",
            alive=row["alive"],
            erasing=row["erasing"],
            rev=row["rev"],
        )

    def shown(self) -> dict[str, Any]:
        """With the seed's names, for JSON; times as RFC 3339 in UTC."""
        return {
            "id": self.id,
            "filename": self.filename,
            "length": self.length,
            "chunkSizeBytes": self.chunk_size_bytes,
            "sha256": self.sha256,
            "status": self.status.value,
            "startedAt": _moment(self.started_at),
            "finishedAt": _moment(self.finished_at),
            "deletedAt": _moment(self.deleted_at),
            "metadata": self.metadata,
        }


def check_filename(name: str) -> str:
    """1 to 1024 bytes in UTF-8, without control characters. Raises ValueError."""
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise ValueError("filename: has half a surrogate pair") from None
    if not 1 <= size <= LONGEST_NAME:
        raise ValueError(f"filename: has {size} bytes; 1 to {LONGEST_NAME} are taken")
    if any(unicodedata.category(letter) == "Cc" for letter in name):
        raise ValueError("filename: has control characters")
    return name


def check_id(file_id: str) -> str:
    if not ID.fullmatch(file_id):
        raise ValueError(f"file id {file_id[:80]!r}: expected 1 to 64 of A-Z a-z 0-9 -")
    return file_id


def check_chunk_size(size: int) -> int:
    if not 1 <= size <= VALUE_LIMIT:
        raise ValueError(f"a chunk size of {size} bytes; 1 to {VALUE_LIMIT} are taken")
    return size


def check_metadata(metadata: Any) -> Any:
    """The value as it will be read back. Raises ValueError for what isn't JSON, above 64 KiB of it, or nested more than
    100 deep."""
    if metadata is None:
        return None
    text = as_json(metadata)
    if len(text.encode()) > LARGEST_METADATA:
        raise ValueError(f"metadata: more than {LARGEST_METADATA} bytes of JSON")
    within = [metadata]
    for _ in range(DEEPEST_METADATA):
        within = [child for one in within for child in _children(one)]
    if any(isinstance(one, dict | list | tuple) for one in within):
        raise ValueError(f"metadata: nested more than {DEEPEST_METADATA} deep")
    return json.loads(text)


def as_json(metadata: Any) -> str:
    try:
        text = json.dumps(metadata, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:  # UnicodeEncodeError is a ValueError
        raise ValueError(f"metadata: not JSON: {error}") from None
    return text


def _children(value: Any) -> Collection[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()


def _moment(microseconds: int | None) -> str | None:
    if microseconds is None:
        return None
    seconds, rest = divmod(microseconds, 1_000_000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest).isoformat(timespec="microseconds")[:-6] + "Z"
