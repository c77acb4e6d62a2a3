"""The rotation parameter of the IIIF Image API (section 4.3): ``n`` degrees clockwise, mirrored before with ``!``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from imaging.errors import BadRequest

_ROTATION: Final = re.compile(r"(!?)([0-9]{1,3})(?:\.([0-9]{1,10}))?")


@dataclass(frozen=True)
class Rotation:
    degrees: Fraction = Fraction(0)
    """Clockwise, at least 0 and below 360."""
    mirrored: bool = False
    """At the vertical axis, before it is turned."""

    @property
    def text(self) -> str:
        """The canonical form (IIIF 3.0, 4.7): no zeros at the end, one before a leading point."""
        whole, rest = divmod(self.degrees, 1)
        tail = f".{int(rest * 10**10):010}".rstrip("0") if rest else ""
        return f"{'!' if self.mirrored else ''}{whole}{tail}"


def parse(text: str) -> Rotation:
    """The rotation that ``text`` asks for. BadRequest."""
    match = _ROTATION.fullmatch(text)
    if match is not None:
        degrees = Fraction(f"{match[2]}.{match[3] or 0}")
        if degrees <= 360:
            return Rotation(degrees % 360, bool(match[1]))
    raise BadRequest("rotation: expected degrees from 0 to 360, with ! before them to mirror")
