"""The size parameter of the IIIF Image API 2.1 (section 4.2) and 3.0, without enlarging.

``max`` · ``full`` · ``w,`` · ``,h`` · ``w,h`` · ``!w,h`` · ``pct:n``. Arithmetic is rational from the text to the
pixel; a half is rounded up and no side falls below one pixel.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Protocol

from imaging.errors import BadRequest

LONGEST: Final = 48
"""Characters that are looked at; the longest sensible size, a percentage printed from a double, has under 30."""
HIGHEST: Final = 2**31 - 1
MAX_SIDE: Final = 65_500
"""libjpeg's own bound for a side; the format's is 65,535."""

_SIZE: Final = re.compile(
    r"(?P<word>max|full)|pct:(?P<percent>[0-9]{1,10}(?:\.[0-9]{1,24})?)"
    r"|(?P<within>!)?(?P<width>[0-9]{1,10})?,(?P<height>[0-9]{1,10})?"
)


class Size(Protocol):
    """A size as asked for; ``fit`` turns it into pixels of a given source."""

    def fit(self, width: int, height: int, most: int = MAX_SIDE**2) -> tuple[int, int]:
        """Width and height in pixels of the rendition of a source of these dimensions, of at most ``most`` pixels.

        ``max`` and ``!w,h`` mean the largest there is and are reduced to ``most`` (IIIF 3.0, 4.2); everything else
        says exactly what is wanted: beyond the source or ``most`` it is a BadRequest.
        """
        ...


def parse(text: str) -> Size:
    """The size that ``text`` (percent-decoded) asks for. BadRequest."""
    match = _SIZE.fullmatch(text) if len(text) <= LONGEST else None
    if match is None:
        hint = " (enlarging is not offered)" if text.startswith("^") else ""
        raise BadRequest(f"size: expected max, full, w, or ,h or w,h or !w,h or pct:n{hint}")
    if match["word"]:
        return Max() if match["word"] == "max" else Full()
    if match["percent"]:
        percent = Fraction(match["percent"])
        if not 0 < percent <= 100:
            raise BadRequest("size: a percentage must be above 0 and at most 100")
        return Percent(percent)
    width, height = _pixels(match["width"]), _pixels(match["height"])
    if width and height:
        return Within(width, height) if match["within"] else Exact(width, height)
    if match["within"] or not (width or height):
        raise BadRequest("size: a width or a height is missing")
    return Width(width) if width else Height(height)


def _pixels(digits: str | None) -> int:
    """The number, 0 for none."""
    if digits is None:
        return 0
    number = int(digits)
    if not 0 < number <= HIGHEST:
        raise BadRequest(f"size: width and height must be from 1 to {HIGHEST}")
    return number


def _round(number: Fraction) -> int:
    return max(1, (2 * number.numerator + number.denominator) // (2 * number.denominator))


def _confined(width: int, height: int, most: int) -> tuple[int, int]:
    """The largest size of this shape within ``most`` pixels and the format's longest side."""
    side = max(width, height)
    scale = min(Fraction(1), Fraction(MAX_SIDE, side))
    wanted, pixels = width * height * scale * scale, Fraction(most)
    if wanted <= pixels:
        return _round(width * scale), _round(height * scale)
    # the scale's exact square root is irrational: search the longer side for the largest that still fits
    low, high = 1, int(side * scale)
    while low < high:
        middle = (low + high + 1) // 2
        short = _round(Fraction(min(width, height) * middle, side))
        low, high = (middle, high) if middle * short <= most else (low, middle - 1)
    fitted = Fraction(low, side)
    return _round(width * fitted), _round(height * fitted)


def _stated(width: int, height: int, source: tuple[int, int], most: int) -> tuple[int, int]:
    if width > source[0] or height > source[1]:
        raise BadRequest(f"size: {width},{height} is beyond the image's {source[0]},{source[1]}")
    if width * height > most or max(width, height) > MAX_SIDE:
        raise BadRequest(f"size: {width},{height} is beyond the limit of {most} pixels, {MAX_SIDE} a side")
    return width, height


@dataclass(frozen=True)
class Max:
    def fit(self, width: int, height: int, most: int = MAX_SIDE**2) -> tuple[int, int]:
        return _confined(width, height, most)


@dataclass(frozen=True)
class Full:
    def fit(self, width: int, height: int, most: int = MAX_SIDE**2) -> tuple[int, int]:
        return _stated(width, height, (width, height), most)


@dataclass(frozen=True)
class Width:
    width: int

    def fit(self, width: int, height: int, most: int = MAX_SIDE**2) -> tuple[int, int]:
        return _stated(self.width, _round(Fraction(height * self.width, width)), (width, height), most)


@dataclass(frozen=True)
class Height:
    height: int

    def fit(self, width: int, height: int, most: int = MAX_SIDE**2) -> tuple[int, int]:
        return _stated(_round(Fraction(width * self.height, height)), self.height, (width, height), most)


@dataclass(frozen=True)
class Exact:
    width: int
    height: int

    def fit(self, width: int, height: int, most: int = MAX_SIDE**2) -> tuple[int, int]:
        return _stated(self.width, self.height, (width, height), most)


@dataclass(frozen=True)
class Within:
    """``!w,h``; a box around the source gives the source's own size."""

    width: int
    height: int

    def fit(self, width: int, height: int, most: int = MAX_SIDE**2) -> tuple[int, int]:
        scale = min(Fraction(1), Fraction(self.width, width), Fraction(self.height, height))
        return _confined(_round(width * scale), _round(height * scale), most)


@dataclass(frozen=True)
class Percent:
    percent: Fraction

    def fit(self, width: int, height: int, most: int = MAX_SIDE**2) -> tuple[int, int]:
        scale = self.percent / 100
        return _stated(_round(width * scale), _round(height * scale), (width, height), most)
