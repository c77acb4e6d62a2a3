"""Delivery is open to every origin, errors included; nothing else is, and nobody may write from another origin."""

from __future__ import annotations

import re
from typing import Final

from falcon import Request, Response

DELIVERY: Final = ("/binary/", "/iiif/")
LISTS: Final = "/binary/logs/"
FILES: Final = re.compile(r"/files/[^/]+/(?!id/[^/]+/record$).+")
METHODS: Final = "GET, HEAD, OPTIONS"
OPEN: Final = [("Access-Control-Allow-Origin", "*"), ("Access-Control-Expose-Headers", "*")]
PREFLIGHT: Final = [
    ("Allow", METHODS),
    ("Access-Control-Allow-Methods", METHODS),
    (
        "Access-Control-Allow-Headers",
        "If-Match, If-Modified-Since, If-None-Match, If-Range, If-Unmodified-Since, Range, X-Request-Id",
    ),
    ("Access-Control-Max-Age", "86400"),
]


def is_delivery(req: Request) -> bool:
    if FILES.match(req.path):
        return req.method in ("GET", "HEAD", "OPTIONS")
    return req.path.startswith(DELIVERY) and not req.path.startswith(LISTS)


class Cors:
    """Middleware. A constant ``*`` rather than an echoed Origin: an answer cached for one page is right for all."""

    def process_response(self, req: Request, resp: Response, resource: object, succeeded: bool) -> None:
        if not is_delivery(req):
            return
        resp.set_headers(OPEN)
        if req.method == "OPTIONS":
            resp.set_headers(PREFLIGHT)
