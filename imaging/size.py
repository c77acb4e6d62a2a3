"""The size parameter of the IIIF Image API 2.1 and 3.0 (section 4.2 of both).

``max`` · ``full`` · ``w,`` · ``,h`` · ``w,h`` · ``!w,h`` · ``pct:n``, and in 3.0 ``^`` before any of them but ``full``.
Arithmetic is rational from the text to the pixel; a half is rounded up and no side falls below one pixel.
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


@dataclass(frozen=True)
class Bounds:
    """What no rendition goes beyond: pixels in all, and of each side (maxArea, maxWidth, maxHeight)."""

    area: int = MAX_SIDE**2
    width: int = MAX_SIDE
    height: int = MAX_SIDE
    stated: bool = False
    """info.json tells them. ``^max`` goes up to what is stated; where nothing is, it is ``max`` (IIIF 3.0, 4.2)."""


WIDEST: Final = Bounds()


class Size(Protocol):
    """A size as asked for; ``fit`` turns it into pixels of a given source, which is an image or a region of one."""

    def fit(self, width: int, height: int, most: Bounds = WIDEST) -> tuple[int, int]:
        """Width and height in pixels of the rendition of a source of these dimensions.

        ``max`` and ``!w,h`` mean the largest there is and are reduced to ``most`` (IIIF 3.0, 4.2); everything else
        says exactly what is wanted: beyond the source or ``most`` it is a BadRequest.
        """
        ...


def parse(text: str) -> Size:
    """The size that ``text`` (percent-decoded) asks for in 2.1. BadRequest."""
    match = _SIZE.fullmatch(text) if len(text) <= LONGEST else None
    if match is None:
        hint = " (enlarging is not offered)" if text.startswith("^") else ""
        raise BadRequest(f"size: expected max, full, w, or ,h or w,h or !w,h or pct:n{hint}")
    size = _of(match)
    if isinstance(size, Percent) and size.percent > 100:
        raise BadRequest("size: a percentage must be at most 100")
    return size


def parse_v3(text: str) -> Size:
    """The size that ``text`` (percent-decoded) asks for in 3.0. BadRequest."""
    match = _SIZE.fullmatch(text.removeprefix("^")) if len(text) <= LONGEST else None
    if match is None or match["word"] == "full":
        raise BadRequest("size: expected max, w, or ,h or w,h or !w,h or pct:n, with ^ before it to enlarge")
    size = _of(match)
    if text.startswith("^"):
        return Enlarged(size)
    if isinstance(size, Percent) and size.percent > 100:
        raise BadRequest("size: a percentage above 100 needs ^ before it")
    return Inside(size.width, size.height) if isinstance(size, Within) else size


def _of(match: re.Match[str]) -> Max | Full | Width | Height | Exact | Within | Percent:
    if match["word"]:
        return Max() if match["word"] == "max" else Full()
    if match["percent"]:
        percent = Fraction(match["percent"])
        if percent <= 0:
            raise BadRequest("size: a percentage must be above 0")
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


def _confined(width: int, height: int, most: Bounds, largest: Fraction | None) -> tuple[int, int]:
    """The largest size of this shape within ``most`` and at most ``largest`` times this one."""
    scale = min(Fraction(most.width, width), Fraction(most.height, height))
    if largest is not None:
        scale = min(scale, largest)
    fitted = _round(width * scale), _round(height * scale)
    if fitted[0] * fitted[1] <= most.area:
        return fitted
    # the scale's exact square root is irrational: search the longer side for the largest that still fits
    long, short = max(width, height), min(width, height)
    low, high = 1, max(1, int(long * scale))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (
            (middle, high) if middle * _round(Fraction(short * middle, long)) <= most.area else (low, middle - 1)
        )
    scale = Fraction(low, long)
    return _round(width * scale), _round(height * scale)


def _stated(size: tuple[int, int], source: tuple[int, int], most: Bounds) -> tuple[int, int]:
    width, height = size
    if width > source[0] or height > source[1]:
        raise BadRequest(f"size: {width},{height} is beyond the {source[0]},{source[1]} there are")
    return _allowed(size, most)


def _allowed(size: tuple[int, int], most: Bounds) -> tuple[int, int]:
    width, height = size
    if width * height > most.area or width > most.width or height > most.height:
        limit = f"{most.area} pixels, {most.width} wide, {most.height} high"
        raise BadRequest(f"size: {width},{height} is beyond the limit of {limit}")
    return size


@dataclass(frozen=True)
class Max:
    def fit(self, width: int, height: int, most: Bounds = WIDEST) -> tuple[int, int]:
        return _confined(width, height, most, Fraction(1))

    def enlarged(self, width: int, height: int, most: Bounds) -> tuple[int, int]:
        return _confined(width, height, most, None if most.stated else Fraction(1))


@dataclass(frozen=True)
class Within:
    """``!w,h``; a box around the source gives the source's own size."""

    width: int
    height: int

    def fit(self, width: int, height: int, most: Bounds = WIDEST) -> tuple[int, int]:
        scale = min(Fraction(1), Fraction(self.width, width), Fraction(self.height, height))
        return _confined(_round(width * scale), _round(height * scale), most, Fraction(1))

    def enlarged(self, width: int, height: int, most: Bounds) -> tuple[int, int]:
        box = Bounds(most.area, min(most.width, self.width), min(most.height, self.height))
        return _confined(width, height, box, None)


@dataclass(frozen=True)
class Inside:
    """``!w,h`` of 3.0. A box that is larger than the source on both sides asks for more than there is, and both public
    validators want that refused, as it is for ``w,h``."""

    width: int
    height: int

    def fit(self, width: int, height: int, most: Bounds = WIDEST) -> tuple[int, int]:
        if self.width > width and self.height > height:
            raise BadRequest(f"size: !{self.width},{self.height} is beyond the {width},{height} there are without ^")
        return Within(self.width, self.height).fit(width, height, most)


class _Stating:
    """Sizes that say exactly what is wanted."""

    def pixels(self, width: int, height: int) -> tuple[int, int]:
        raise NotImplementedError

    def fit(self, width: int, height: int, most: Bounds = WIDEST) -> tuple[int, int]:
        return _stated(self.pixels(width, height), (width, height), most)

    def enlarged(self, width: int, height: int, most: Bounds) -> tuple[int, int]:
        return _allowed(self.pixels(width, height), most)


@dataclass(frozen=True)
class Full(_Stating):
    def pixels(self, width: int, height: int) -> tuple[int, int]:
        return width, height


@dataclass(frozen=True)
class Width(_Stating):
    width: int

    def pixels(self, width: int, height: int) -> tuple[int, int]:
        return self.width, _round(Fraction(height * self.width, width))


@dataclass(frozen=True)
class Height(_Stating):
    height: int

    def pixels(self, width: int, height: int) -> tuple[int, int]:
        return _round(Fraction(width * self.height, height)), self.height


@dataclass(frozen=True)
class Exact(_Stating):
    width: int
    height: int

    def pixels(self, width: int, height: int) -> tuple[int, int]:
        return self.width, self.height


@dataclass(frozen=True)
class Percent(_Stating):
    percent: Fraction

    def pixels(self, width: int, height: int) -> tuple[int, int]:
        scale = self.percent / 100
        return _round(width * scale), _round(height * scale)


@dataclass(frozen=True)
class Enlarged:
    """``^`` before a size: the same, also beyond the source (IIIF 3.0, 4.2)."""

    size: Max | Full | Width | Height | Exact | Within | Percent

    def fit(self, width: int, height: int, most: Bounds = WIDEST) -> tuple[int, int]:
        return self.size.enlarged(width, height, most)
