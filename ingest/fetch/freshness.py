"""For how long an answer may be taken as unchanged without asking, and when to come again.

RFC 9111 4.2, seen from a private cache. Werkzeug's parser misreads ``MAX-AGE=7`` and the libraries that know better
are whole caches.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, TypeAlias

Headers: TypeAlias = Callable[[str], Sequence[str]]
"""All values of a header, by its name in any case."""

LIFETIME_LIMIT: Final = 365 * 24 * 3600  # seconds; what claims more is looked at once a year all the same
_SECOND: Final = 1_000_000
_DIRECTIVE: Final = re.compile(r'([^\s=,"]+)\s*(?:=\s*("(?:[^"\\]|\\.)*"|[^\s,"]*))?[^,]*(?:,|$)')
_SECONDS: Final = re.compile(r"[0-9]+")


def fresh_until(headers: Headers, now: int) -> int | None:
    """The microsecond until which the answer received at ``now`` is fresh; None when it never is.

    max-age comes before Expires − Date, Age is taken off. no-cache, no-store, a malformed max-age or Expires, and
    Vary: * mean stale. Of several max-age the first counts. Nothing is guessed from Last-Modified.
    """
    lifetime = _lifetime(headers, now)
    if lifetime is None:
        return None
    age = _seconds(_first(headers, "Age") or "0") or 0
    left = min(lifetime, LIFETIME_LIMIT) - age
    return now + left * _SECOND if left > 0 else None


def retry_after(value: str | None, now: int, cap: float) -> float | None:
    """Seconds to wait by a Retry-After header, which counts them or names a date (RFC 9110 10.2.3), at most ``cap``.
    None when there is none or it can't be read."""
    if value is None:
        return None
    seconds = _seconds(value)
    if seconds is None:
        moment = http_date(value)
        if moment is None:
            return None
        seconds = max(0, (moment - now) // _SECOND)
    return float(min(seconds, cap))


def http_date(value: str) -> int | None:
    """A date of HTTP in microseconds since 1970, or None for what isn't one (``0``, ``-1``, ``never``)."""
    try:
        moment = parsedate_to_datetime(value.strip())
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()) * _SECOND


def _lifetime(headers: Headers, now: int) -> int | None:
    directives: dict[str, str] = {}
    for name, value in _DIRECTIVE.findall(", ".join(headers("Cache-Control"))):
        directives.setdefault(name.lower(), value.strip('"'))
    if "no-cache" in directives or "no-store" in directives or "*" in ", ".join(headers("Vary")):
        return None
    if "max-age" in directives:
        return _seconds(directives["max-age"])
    expires = _first(headers, "Expires")
    if expires is None:
        return None
    end, start = http_date(expires), http_date(_first(headers, "Date") or "")
    return None if end is None else (end - (now if start is None else start)) // _SECOND


def _seconds(text: str) -> int | None:
    text = text.strip()
    return int(text[:12]) if _SECONDS.fullmatch(text) else None


def _first(headers: Headers, name: str) -> str | None:
    return next(iter(headers(name)), None)
