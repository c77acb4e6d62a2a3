"""How an original is labelled: the type it goes out with, and whether a browser may show it.

Bytes come from anywhere. Raster images, audio, video, PDF and plain text are shown; everything else is a download, so
that no script in it (SVG, HTML, XML) ever runs under this server's name. The sandbox takes what is left.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from app.conditional import Validators
from app.disposition import disposition
from ingest.records import Original

TYPE: Final = re.compile(r"[a-z0-9!#$&^_.+-]{1,80}/[a-z0-9!#$&^_.+-]{1,80}")
UNKNOWN: Final = "application/octet-stream"
SHOWN: Final = re.compile(r"image/(?!svg)(?!.*\+xml).+|audio/.+|video/.+|application/pdf|text/plain")

HARMLESS: Final = [
    ("X-Content-Type-Options", "nosniff"),
    ("Content-Security-Policy", "sandbox"),
    ("Cross-Origin-Resource-Policy", "cross-origin"),
]


def media_type(mime: str | None) -> str:
    mime = (mime or "").partition(";")[0].strip().lower()
    return mime if TYPE.fullmatch(mime) else UNKNOWN


def validators_of(original: Original) -> Validators:
    """Bytes never change under an original's id: the hash, and when they were stored."""
    return Validators(original.checksum or original.original_id, _seconds(original.created))


def headers_of(original: Original, max_age: int) -> list[tuple[str, str]]:
    """All headers of an original but its lengths and ranges."""
    return _headers(original.mime, original.filename, validators_of(original), max_age)


@lru_cache(maxsize=4096)
def _headers(mime: str | None, filename: str | None, validators: Validators, max_age: int) -> list[tuple[str, str]]:
    kind = media_type(mime)
    return [
        ("Content-Type", kind),
        ("Content-Disposition", disposition("inline" if SHOWN.fullmatch(kind) else "attachment", filename)),
        ("Accept-Ranges", "bytes"),
        *freshness(validators, max_age),
        *HARMLESS,
    ]


def picture_of(original: Original) -> tuple[int, int]:
    """Width and height in pixels, as displayed."""
    return original.width or 1, original.height or 1


def freshness(validators: Validators, max_age: int) -> list[tuple[str, str]]:
    """What a 304 repeats of the 200 (RFC 9110, 15.4.5)."""
    return [
        ("ETag", validators.etag),
        ("Last-Modified", validators.last_modified),
        ("Cache-Control", f"public, max-age={max_age}"),
    ]


def _seconds(created: int | None) -> int:
    return (created or 0) // 1_000_000
