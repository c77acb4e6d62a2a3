"""A look at the path as it was sent, before any decoding hides what was in it.

Servers decode the path once and Falcon splits it after that: ``%2F`` becomes a separator, invalid UTF-8 a replacement
character, and NUL passes. gunicorn gives the path as sent in RAW_URI. A server that doesn't (granian) leaves the
decoded bytes in PATH_INFO; all but ``%2F`` is still seen there.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Final
from urllib.parse import quote_from_bytes, unquote_to_bytes

from falcon import Request, Response

from app.problems import Problem, bad_field

LONGEST: Final = 2048
PLAIN: Final = re.compile(r"/[A-Za-z0-9_~!$&'()*+,;=:@/.-]*")
DOTS: Final = re.compile(r"(?:^|/)\.\.?(?:/|$)")
ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
UNWANTED: Final = re.compile(r"[\x00-\x1f\x7f\\]")


class RawPath:
    """Middleware: 400 or 414 for a path that no client of good faith sends."""

    def process_request(self, req: Request, resp: Response) -> None:
        uri = req.env.get("RAW_URI")
        if uri is None:
            uri = quote_from_bytes(req.env["PATH_INFO"].encode("latin-1"))
        check(uri.partition("?")[0])


def check(path: str) -> None:
    """Raise a Problem unless the path, percent-encoded as on the wire, is one that could name something."""
    if len(path) > LONGEST:
        raise Problem(HTTPStatus.REQUEST_URI_TOO_LONG, f"path: longer than {LONGEST} characters", field="path")
    if PLAIN.fullmatch(path) and "/." not in path:
        return
    if "://" in path:  # the absolute form of RFC 9112, 3.2.2
        path = "/" + path.partition("://")[2].partition("/")[2]
    if ESCAPE.search(path):
        raise bad_field("path", "a percent sign without two hex digits")
    try:
        decoded = unquote_to_bytes(path).decode("utf-8")
    except UnicodeDecodeError:
        raise bad_field("path", "not UTF-8") from None
    if decoded.count("/") != path.count("/"):
        raise bad_field("path", "an escaped slash")
    if UNWANTED.search(decoded):
        raise bad_field("path", "a control character or a backslash")
    if DOTS.search(decoded):
        raise bad_field("path", "a segment of dots")
