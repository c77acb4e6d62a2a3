"""How a file of a bucket is labelled when it goes out. By its id it never changes; by its name it may at any time."""

from __future__ import annotations

import mimetypes
from typing import Final

from app.conditional import Validators, http_date
from app.digests import repr_digest
from app.disposition import disposition
from app.media import HARMLESS, SHOWN, UNKNOWN, media_type
from storage.bucket_record import FileRecord

TYPES: Final = mimetypes.MimeTypes()
"""Those that Python brings, whatever the machine has."""


def validators_of(record: FileRecord) -> Validators:
    return Validators(record.sha256 or record.id, (record.finished_at or 0) // 1_000_000)


def type_of_name(filename: str) -> str:
    kind, coding = TYPES.guess_type(f"http://x/{filename.rpartition('/')[2]}")
    return media_type(kind) if kind and not coding else UNKNOWN


def type_of(record: FileRecord) -> str:
    """What its metadata say in ``contentType``, else what its name does."""
    metadata = record.metadata
    told = metadata.get("contentType") if isinstance(metadata, dict) else None
    return media_type(told) if isinstance(told, str) else type_of_name(record.filename)


def freshness(record: FileRecord, max_age: int | None) -> list[tuple[str, str]]:
    """What a 304 repeats of the 200. ``max_age`` None: caches must ask each time."""
    validators = validators_of(record)
    return [
        ("ETag", validators.etag),
        ("Last-Modified", http_date(validators.modified)),
        ("Cache-Control", "no-cache" if max_age is None else f"public, max-age={max_age}"),
    ]


def headers_of(record: FileRecord, max_age: int | None) -> list[tuple[str, str]]:
    """All headers of a file but its lengths and ranges."""
    kind = type_of(record)
    name = record.filename.rpartition("/")[2]
    return [
        ("Content-Type", kind),
        ("Content-Disposition", disposition("inline" if SHOWN.fullmatch(kind) else "attachment", name)),
        ("Accept-Ranges", "bytes"),
        ("Repr-Digest", repr_digest(record.sha256 or "")),
        *freshness(record, max_age),
        *HARMLESS,
    ]
