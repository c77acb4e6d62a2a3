"""Dimensions from the headers of JPEG 2000 and JPEG XL, whose decoders only tell them after decoding.

Sources: ISO/IEC 15444-1, A.5.1 (SIZ) and I.5.3.1 (image header box); ISO/IEC 18181-1, D.2 (SizeHeader), and -2, 9.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from imaging.errors import BrokenImage
from imaging.feed import Feed

_BOXES: Final = 64
"""Boxes that are looked through for the one with the header."""
_RATIOS: Final = ((1, 1), (12, 10), (4, 3), (3, 2), (16, 9), (5, 4), (2, 1))
"""Of width to height, JPEG XL's 1 to 7."""


@dataclass(frozen=True)
class Dimensions:
    width: int
    height: int
    pages: int = 1


def jp2(feed: Feed) -> Dimensions:
    """Of a JP2 file or a bare codestream. BrokenImage."""
    if feed.read(0, 4) == b"\xff\x4f\xff\x51":
        return _siz(feed.read(0, 64))
    for kind, start, size in _boxes(feed, 0, feed.size):
        if kind == b"jp2h":
            for inner, at, _ in _boxes(feed, start, start + size):
                if inner == b"ihdr":
                    head = feed.read(at, 8)
                    return _checked(int.from_bytes(head[4:8], "big"), int.from_bytes(head[:4], "big"))
        elif kind == b"jp2c":
            return _siz(feed.read(start, 64))
    raise BrokenImage("a JPEG 2000 file without a header")


def jxl(feed: Feed) -> Dimensions:
    """Of a JPEG XL file or a bare codestream, as its decoder turns it. BrokenImage."""
    head = feed.read(0, 32)
    if head[:2] != b"\xff\x0a":
        for kind, start, _ in _boxes(feed, 0, feed.size):
            if kind in (b"jxlc", b"jxlp"):
                head = feed.read(start + (4 if kind == b"jxlp" else 0), 32)
                break
    if head[:2] != b"\xff\x0a":
        raise BrokenImage("a JPEG XL file without a codestream")
    bits = _Bits(head[2:])
    small = bits.take(1)
    height = _side(bits, small)
    ratio = bits.take(3)
    if ratio:
        wide, high = _RATIOS[ratio - 1]
        width = height * wide // high
    else:
        width = _side(bits, small)
    # unless all is default, and with fields beyond the usual ones, an orientation follows, less one (D.3)
    if not bits.take(1) and bits.take(1) and bits.take(3) >= 4:
        width, height = height, width
    return _checked(width, height)


def _side(bits: _Bits, small: int) -> int:
    if small:
        return 8 * (bits.take(5) + 1)
    return bits.take((9, 13, 18, 30)[bits.take(2)]) + 1


def _siz(head: bytes) -> Dimensions:
    """Of the marker segment that follows the start of a codestream."""
    right, bottom, left, top = (int.from_bytes(head[at : at + 4], "big") for at in (8, 12, 16, 20))
    return _checked(right - left, bottom - top)


def _checked(width: int, height: int) -> Dimensions:
    if width < 1 or height < 1:
        raise BrokenImage("without an area")
    return Dimensions(width, height)


def _boxes(feed: Feed, at: int, stop: int) -> Iterator[tuple[bytes, int, int]]:
    """Kind, start and size of the contents of boxes one behind the other (ISO/IEC 14496-12, 4.2)."""
    for _ in range(_BOXES):
        head = feed.read(at, 16)
        size, kind, length = int.from_bytes(head[:4], "big"), head[4:8], 8
        if size == 1:
            size, length = int.from_bytes(head[8:16], "big"), 16
        elif size == 0:
            size = stop - at
        if len(head) < 8 or size < length or at + length > stop:
            return
        yield kind, at + length, size - length
        at += size


class _Bits:
    """Bits of a byte string, the lowest of each byte first."""

    def __init__(self, data: bytes) -> None:
        self._value, self._left = int.from_bytes(data, "little"), 8 * len(data)

    def take(self, count: int) -> int:
        if count > self._left:
            raise BrokenImage("ends within its header")
        taken = self._value & ((1 << count) - 1)
        self._value >>= count
        self._left -= count
        return taken
