"""The region parameter of the IIIF Image API 2.1 and 3.0 (section 4.1 of both): full, square, x,y,w,h, pct:x,y,w,h.

Arithmetic is rational; edges are rounded, not widths, so that regions that meet in percent meet in pixels.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Protocol

from imaging.errors import BadRequest
from imaging.size import HIGHEST

LONGEST: Final = 160
_NUMBER: Final = r"([0-9]{1,10}(?:\.[0-9]{1,24})?)"
_PIXELS: Final = re.compile(r"([0-9]{1,10}),([0-9]{1,10}),([0-9]{1,10}),([0-9]{1,10})")
_PERCENT: Final = re.compile(f"pct:{_NUMBER},{_NUMBER},{_NUMBER},{_NUMBER}")


@dataclass(frozen=True)
class Rect:
    """Pixels of an image as displayed; never empty, never beyond it."""

    x: int
    y: int
    width: int
    height: int

    @property
    def right(self) -> int:
        return self.x + self.width

    @property
    def bottom(self) -> int:
        return self.y + self.height


class Region(Protocol):
    """A region as asked for."""

    def crop(self, width: int, height: int) -> Rect:
        """What it is of an image of these dimensions. BadRequest where it lies outside."""
        ...


def parse(text: str) -> Region:
    """The region that ``text`` (percent-decoded) asks for. BadRequest."""
    if text == "full":
        return Full()
    if text == "square":
        return Square()
    if len(text) <= LONGEST:
        if match := _PIXELS.fullmatch(text):
            x, y, width, height = (int(digits) for digits in match.groups())
            if max(x, y, width, height) > HIGHEST:
                raise BadRequest(f"region: a number is beyond {HIGHEST}")
            return _filled(Pixels(x, y, width, height), width, height)
        if match := _PERCENT.fullmatch(text):
            left, top, wide, high = (Fraction(digits) for digits in match.groups())
            return _filled(Percent(left, top, wide, high), wide, high)
    raise BadRequest("region: expected full, square, x,y,w,h or pct:x,y,w,h")


def _filled(region: Region, width: int | Fraction, height: int | Fraction) -> Region:
    if width == 0 or height == 0:
        raise BadRequest("region: width and height must be above 0")
    return region


@dataclass(frozen=True)
class Full:
    def crop(self, width: int, height: int) -> Rect:
        return Rect(0, 0, width, height)


@dataclass(frozen=True)
class Square:
    """The shorter side's, in the middle."""

    def crop(self, width: int, height: int) -> Rect:
        side = min(width, height)
        return Rect((width - side) // 2, (height - side) // 2, side, side)


@dataclass(frozen=True)
class Pixels:
    x: int
    y: int
    width: int
    height: int

    def crop(self, width: int, height: int) -> Rect:
        if self.x >= width or self.y >= height:
            raise BadRequest(f"region: begins outside of the image of {width},{height}")
        return Rect(self.x, self.y, min(self.width, width - self.x), min(self.height, height - self.y))


@dataclass(frozen=True)
class Percent:
    x: Fraction
    y: Fraction
    width: Fraction
    height: Fraction

    def crop(self, width: int, height: int) -> Rect:
        if self.x >= 100 or self.y >= 100:
            raise BadRequest("region: begins outside of the image")
        left, right = _edges(self.x, self.width, width)
        top, bottom = _edges(self.y, self.height, height)
        return Rect(left, top, right - left, bottom - top)


def _edges(start: Fraction, length: Fraction, side: int) -> tuple[int, int]:
    """Pixels where a stretch in percent of ``side`` begins and ends; at least one lies between."""
    first = min(_nearest(start * side / 100), side - 1)
    return first, max(first + 1, min(side, _nearest((start + length) * side / 100)))


def _nearest(number: Fraction) -> int:
    return (2 * number.numerator + number.denominator) // (2 * number.denominator)
