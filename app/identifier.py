"""What stands for an image in an address: ``{reference_id}``, or ``files:{bucket}:{file_id}`` for one in a bucket.
``;page=3`` and a signature may follow.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from app.fileimages import IDENTIFIER as FILE
from app.lookup import check_id
from app.problems import bad_field

PARTS: Final = re.compile(
    r"(?P<id>[^;]+)(?:;page=(?P<page>[1-9][0-9]{0,8}))?"
    r"(?:;until=(?P<until>[0-9]{1,12});signature=(?P<signature>[0-9a-f]{64}))?"
)


@dataclass(frozen=True)
class Identifier:
    reference_id: str
    page: int = 1
    until: int | None = None
    """Seconds since 1970 at which the signature runs out."""
    signature: str | None = None

    @property
    def text(self) -> str:
        """The one form of it that addresses are given in."""
        page = f";page={self.page}" if self.page > 1 else ""
        tail = f";until={self.until};signature={self.signature}" if self.signature else ""
        return self.reference_id + page + tail


@lru_cache(maxsize=4096)
def parse(text: str) -> Identifier:
    """The identifier that a segment of a path is. A Problem, 400."""
    match = PARTS.fullmatch(text)
    if match is None:
        raise bad_field("identifier", "expected a reference's id, then ;page=, then ;until= and ;signature=, if any")
    until = None if match["until"] is None else int(match["until"])
    name = match["id"]
    return Identifier(
        name if FILE.fullmatch(name) else check_id(name), int(match["page"] or 1), until, match["signature"]
    )
