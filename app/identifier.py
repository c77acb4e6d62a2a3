"""What stands for an image in an address: ``{reference_id}``, or ``{reference_id};page=3``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from app.lookup import check_id
from app.problems import bad_field

PAGE: Final = re.compile(r"page=([1-9][0-9]{0,8})")


@dataclass(frozen=True)
class Identifier:
    reference_id: str
    page: int = 1

    @property
    def text(self) -> str:
        """The one form of it that addresses are given in."""
        return self.reference_id if self.page == 1 else f"{self.reference_id};page={self.page}"


@lru_cache(maxsize=4096)
def parse(text: str) -> Identifier:
    """The identifier that a segment of a path is. A Problem, 400."""
    reference_id, *more = text.split(";")
    check_id(reference_id)
    page = 1
    for part in more:
        match = PAGE.fullmatch(part)
        if match is None or len(more) > 1:
            raise bad_field("identifier", "expected a reference's id, which ;page= and a number may follow")
        page = int(match[1])
    return Identifier(reference_id, page)
