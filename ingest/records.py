"""References and originals as values, to and from their rows."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import cache, cached_property
from typing import Any, Final, TypeVar
from uuid import NAMESPACE_URL, uuid5

from ingest.attempts import pyramid_of
from storage.blobs import Blob
from storage.table import Row

CONTEXT: Final = re.compile(r"[A-Za-z0-9._:~-]{1,255}")
"""A context is one segment of a path."""
REFERENCE_ID: Final = re.compile(r"[A-Za-z0-9-]{1,64}")


class Status(StrEnum):
    """The status of an original's download (seed: originals.status)."""

    PROCESSING = "PROCESSING"  # queued or being fetched: the lease tells them apart
    OK = "OK"
    ERROR = "ERROR"
    RETRY = "RETRY"


class BadContext(ValueError):
    """A context that isn't one path segment of ``[A-Za-z0-9._:~-]{1,255}``."""


def check_context(context: str) -> str:
    if not CONTEXT.fullmatch(context) or context in (".", ".."):
        raise BadContext(f"context {context[:80]!r} must be 1 to 255 of A-Z a-z 0-9 . _ : ~ -")
    return context


def reference_id_of(context: str, url: str) -> str:
    """A reference's id is derived, so that a repeated PUT of one (context, url) is the same reference."""
    return str(uuid5(NAMESPACE_URL, f"{context}\n{url}"))


@dataclass(frozen=True)
class Reference:
    """What a client holds: opens one original, belongs to one generation of one context."""

    reference_id: str
    original_id: str
    context: str
    generation: str
    url: str
    attached: str
    rev: str = ""

    @classmethod
    def of(cls, row: Row) -> Reference:
        return _record(cls, row)

    def row(self) -> Row:
        return _row(self)


@dataclass(frozen=True)
class Original:
    """One fetched file. The columns of :data:`storage.schema.ORIGINALS`; times in microseconds, sizes in bytes."""

    original_id: str
    status: str
    url: str
    host: str
    registered: int
    due: int | None = None
    last_modified: str | None = None
    e_tag: str | None = None
    mime: str | None = None
    created: int | None = None
    last_checked: int | None = None
    checksum: str | None = None
    size: int | None = None
    part_size: int | None = None
    attempt: str | None = None
    md5: str | None = None
    filename: str | None = None
    width: int | None = None
    height: int | None = None
    pages: int | None = None
    rights: str | None = None
    pyramid_size: int | None = None
    pyramid_checksum: str | None = None
    retired: int | None = None
    trying: str | None = None
    failures: int | None = None
    lost_leases: int | None = None
    lease_owner: str | None = None
    lease_until: int | None = None
    outcome: str | None = None
    reason: str | None = None
    http_status: int | None = None
    final_url: str | None = None
    last_success: int | None = None
    first_failure: int | None = None
    last_failure: int | None = None
    next_check_at: int | None = None
    mime_declared: str | None = None
    mime_received: str | None = None
    mime_sniffed: str | None = None
    length_declared: int | None = None
    expires: str | None = None
    cache_control: str | None = None
    fresh_until: int | None = None
    rev: str = ""

    @classmethod
    def of(cls, row: Row) -> Original:
        return _record(cls, row)

    def row(self) -> Row:
        return _row(self)

    @cached_property
    def blob(self) -> Blob | None:
        """Where the bytes are, once there are some."""
        if self.status != Status.OK or self.attempt is None:
            return None
        return Blob(self.original_id, self.attempt, self.size or 0, self.part_size or 1, self.checksum or "")

    @cached_property
    def pyramid(self) -> Blob | None:
        """Where the pyramid is, if there is one."""
        if self.blob is None or self.attempt is None or self.pyramid_size is None:
            return None
        attempt, checksum = pyramid_of(self.attempt), self.pyramid_checksum or ""
        return Blob(self.original_id, attempt, self.pyramid_size, self.part_size or 1, checksum)

    @property
    def stored(self) -> list[Blob]:
        """All that its attempt keeps as blobs."""
        return [blob for blob in (self.blob, self.pyramid) if blob is not None]

    def queued_again(self, now: int) -> Original:
        """As if nothing had been tried yet; due ``now`` (µs)."""
        return replace(self, status=Status.PROCESSING, due=now, failures=0, lost_leases=0, first_failure=None)

    @property
    def is_local(self) -> bool:
        """Whether it is a file of this machine, which no worker reads."""
        return self.url.startswith("file:")

    @property
    def is_image(self) -> bool:
        """Whether scaled images of it can be asked for."""
        return self.status == Status.OK and self.width is not None


Record = TypeVar("Record")


@cache
def _names(cls: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(cls))


def _record(cls: type[Record], row: Row) -> Record:
    """Past ``__init__``, which sets the forty fields of a frozen dataclass one call at a time: a fifth of the time that
    looking a reference up takes. Columns that the row doesn't have are at their defaults."""
    record = object.__new__(cls)
    vars(record).update(row)
    return record


def _row(record: Any) -> Row:
    return {name: getattr(record, name) for name in _names(record.__class__) if name != "rev"}
