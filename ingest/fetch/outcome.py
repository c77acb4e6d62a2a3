"""What a fetch ends with, and what it is told of the copy that is held already."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """ARCHIVED: the body is whole and in the sink. NOT_CHANGED: the held copy is still what the source has. All
    others: nothing was got."""

    ARCHIVED = "ARCHIVED"
    NOT_CHANGED = "NOT_CHANGED"
    URL_INVALID = "URL_INVALID"
    URL_BLOCKED = "URL_BLOCKED"
    TLS_ERROR = "TLS_ERROR"
    HTTP_ERROR = "HTTP_ERROR"
    NETWORK_ERROR = "NETWORK_ERROR"
    TRUNCATED = "TRUNCATED"
    TIMEOUT = "TIMEOUT"
    TOO_LARGE = "TOO_LARGE"
    NOT_DATA = "NOT_DATA"
    EMPTY = "EMPTY"
    SYSTEM_ERROR = "SYSTEM_ERROR"


@dataclass(frozen=True)
class Known:
    """The copy that is held: its hashes, and the validators that came with it, verbatim.

    Without ``sha256`` there is no copy, and the request is unconditional. ``final_url`` is where the validators come
    from: only that URL is asked with them. ``fresh_until``: microseconds since 1970. ``length_decides``: an equal
    Content-Length counts as unchanged; that loses every edit that keeps the size.
    """

    sha256: str | None = None
    md5: str | None = None
    size: int | None = None
    e_tag: str | None = None
    last_modified: str | None = None
    expires: str | None = None
    cache_control: str | None = None
    fresh_until: int | None = None
    final_url: str | None = None
    length_decides: bool = False


@dataclass(frozen=True)
class Fetched:
    """How a fetch ended.

    ``reason`` is a sentence for people, its URL masked. ``transient``: trying again may help. ``counted``: it counts
    as a failure of the source (TOO_LARGE, NOT_DATA, EMPTY and a fetch that was stopped don't). ``retry_after``:
    seconds, as the source asked, within the cap. Sizes are bytes, hashes lower-case hex, ``fresh_until`` microseconds
    since 1970. ``mime`` is the verdict; ``mime_declared`` was the caller's, ``mime_received`` the header's,
    ``mime_sniffed`` what the first bytes show. Validators are verbatim; with NOT_CHANGED they are the renewed ones.
    ``size``, ``md5`` and ``sha256`` describe the stored bytes, with NOT_CHANGED those of the held copy.
    """

    outcome: Outcome
    reason: str
    transient: bool = False
    counted: bool = False
    http_status: int | None = None
    final_url: str | None = None
    retry_after: float | None = None
    size: int | None = None
    md5: str | None = None
    sha256: str | None = None
    mime: str | None = None
    mime_declared: str | None = None
    mime_received: str | None = None
    mime_sniffed: str | None = None
    filename: str | None = None
    e_tag: str | None = None
    last_modified: str | None = None
    expires: str | None = None
    cache_control: str | None = None
    fresh_until: int | None = None
    length_declared: int | None = None
