"""Pages of a list: ``?limit=`` and ``?after=`` in, ``Link: rel="next"`` out (RFC 8288)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlencode

from falcon import Request, Response

from app.problems import bad_field

LARGEST: Final = 1000
DEFAULT: Final = 100
CURSOR: Final = re.compile(r"[A-Za-z0-9.-]{1,128}")


@dataclass(frozen=True)
class Page:
    limit: int
    after: str | None

    @classmethod
    def of(cls, req: Request, cursor: re.Pattern[str] = CURSOR) -> Page:
        """400 for a limit that isn't a number from 1 to 1000, and for a cursor that was never handed out."""
        text, after = req.params.get("limit", str(DEFAULT)), req.params.get("after")
        if not isinstance(text, str) or not re.fullmatch(r"[0-9]{1,4}", text) or not 1 <= int(text) <= LARGEST:
            raise bad_field("limit", f"expected a number from 1 to {LARGEST}")
        if after is not None and not (isinstance(after, str) and cursor.fullmatch(after)):
            raise bad_field("after", "expected what a link of rel=next had")
        return cls(int(text), after)

    def link_next(self, req: Request, resp: Response, after: str, **more: str) -> None:
        """Relative, so that it is right behind any proxy. ``more``: what else was asked for."""
        query = urlencode({**more, "limit": self.limit, "after": after})
        resp.append_header("Link", f'<{quote(req.path)}?{query}>; rel="next"')
