"""``/``: what this is, and a gallery of the images in store."""

from __future__ import annotations

import re
from typing import Final

from falcon import Request, Response

from app import page
from app.access import Access
from app.address import base_address
from app.library import Library
from app.options import Options
from app.page import Picture
from app.problems import bad_field
from ingest.records import Original, Reference

PICTURES: Final = 48  # a page
CURSOR: Final = re.compile(r"([0-9]{1,18})\.([A-Za-z0-9-]{1,64})")


class Front:
    def __init__(self, library: Library, access: Access, options: Options) -> None:
        self._recent, self._access, self._base_url = library.recent, access, options.base_url

    def on_get(self, req: Request, resp: Response) -> None:
        gallery = self._gallery(req) if self._access.may_list(req) else page.closed()
        resp.content_type = "text/html; charset=utf-8"
        resp.set_headers(
            [
                ("Cache-Control", "no-store"),
                ("Content-Security-Policy", page.CONTENT_SECURITY_POLICY),
                ("X-Content-Type-Options", "nosniff"),
                ("Referrer-Policy", "no-referrer"),
            ]
        )
        resp.data = page.front(base_address(req, self._base_url), gallery)

    on_head = on_get

    def _gallery(self, req: Request) -> str:
        images = self._recent.newest(before=_cursor(req), limit=PICTURES)
        if not images.found and not images.older:
            return page.empty()
        older = f"{images.older[0]}.{images.older[1]}" if images.older else None
        return page.grid([_picture(reference, original) for reference, original in images.found], older)


def _cursor(req: Request) -> tuple[int, str] | None:
    text = req.params.get("before")
    if text is None:
        return None
    match = CURSOR.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise bad_field("before", "expected what the link to older images had")
    return int(match[1]), match[2]


def _picture(reference: Reference, original: Original) -> Picture:
    return Picture(
        reference.reference_id,
        original.filename or "resource",
        original.width or 0,
        original.height or 0,
        original.size or 0,
    )
