"""What a TIFF's directories tell about the cost of decoding it. libvips doesn't, or only after reading all of them.

A TIFF may have a directory for each of a million pages, spread over the file, and may keep its pixels in pieces of any
size; both are counted here before a decoder sees the file. Source: TIFF 6.0, sections 2 and 15; BigTIFF.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from imaging.errors import BrokenImage, NotReadHere, TooLargeImage
from imaging.feed import Feed
from imaging.ycbcr import BT601, FULL_RANGE, YCbCr

_WIDTH, _HEIGHT, _BITS, _COMPRESSION, _PHOTOMETRIC, _ORIENTATION = 256, 257, 258, 259, 262, 274
_STRIP_ROWS, _PLANAR, _TILE_ROWS = 278, 284, 323
_QUARTER_TURNS: Final = range(5, 9)
_COEFFICIENTS, _SUBSAMPLING, _REFERENCE = 529, 530, 532
_SEPARATE: Final = 2
_MOST_BITS: Final = 32
"""Of a sample, in libvips."""
_YCBCR: Final = 6
_RATIONAL: Final = 5
_JPEG: Final = (6, 7)
"""Compressions, the old one and the new one, in which libtiff makes RGB of YCbCr."""
_ENTRIES: Final = 1000
"""A directory with more isn't looked at: about fifty tags are in use."""
_ROW_BY_ROW: Final = 128
"""Strips above this many rows are decoded row by row (libvips, tiff2vips.c: read_scanlinewise)."""


@dataclass(frozen=True)
class Layout:
    pages: int
    tiled: bool
    rows: int
    """Of one page, decoded and held together."""
    ycbcr: YCbCr | None = None
    """What libvips leaves to be done to its colours."""


@dataclass(frozen=True)
class _Variant:
    """Classic or big, in one byte order."""

    order: str
    big: bool

    def number(self, data: bytes) -> int:
        return int.from_bytes(data, "little" if self.order == "<" else "big")


def layout(feed: Feed, most_pages: int, page: int = 1) -> Layout:
    """Read the directories; what is told of one is of ``page``, or of the first where there is no such page.

    BrokenImage; NotReadHere; TooLargeImage when there are more than ``most_pages``.
    """
    variant, at = _start(feed)
    pages = 0
    tags: dict[int, int] = {}
    chosen = b""
    for entries in _directories(feed, variant, at, most_pages):
        pages += 1
        if not tags or pages == page:
            tags, chosen = dict(_values(variant, entries)), entries
    if not tags:
        raise BrokenImage("a TIFF without a page")
    if tags.get(_BITS, 1) > _MOST_BITS:
        raise NotReadHere(f"a TIFF with {tags[_BITS]} bits a sample")
    colours = _ycbcr(feed, variant, chosen, tags) if tags.get(_PHOTOMETRIC) == _YCBCR else None
    return Layout(pages, _TILE_ROWS in tags, _rows(tags), colours)


def sizes(feed: Feed, most_pages: int) -> Iterator[tuple[int, int]]:
    """Width and height of each page in pixels, as displayed. Errors as ``layout``."""
    variant, at = _start(feed)
    for entries in _directories(feed, variant, at, most_pages):
        tags = dict(_values(variant, entries))
        width, height = tags.get(_WIDTH, 0), tags.get(_HEIGHT, 0)
        yield (height, width) if tags.get(_ORIENTATION, 1) in _QUARTER_TURNS else (width, height)


def _start(feed: Feed) -> tuple[_Variant, int]:
    """The variant, and the offset of the first directory."""
    head = feed.read(0, 16)
    variant = _Variant("<" if head[:2] == b"II" else ">", 43 in head[2:4])
    return variant, variant.number(head[8:16] if variant.big else head[4:8])


def _directories(feed: Feed, variant: _Variant, at: int, most_pages: int) -> Iterator[bytes]:
    """The entries of each directory, from the one at this offset on."""
    seen: set[int] = set()
    while at and at not in seen:
        if len(seen) == most_pages:
            raise TooLargeImage(f"more than {most_pages} pages")
        seen.add(at)
        entries, at = _directory(feed, variant, at)
        yield entries


def _directory(feed: Feed, variant: _Variant, at: int) -> tuple[bytes, int]:
    """The entries of the directory at this offset, and the offset of the next directory."""
    count_size, entry_size, offset_size = (8, 20, 8) if variant.big else (2, 12, 4)
    count = variant.number(feed.read(at, count_size))
    if not 0 < count <= _ENTRIES:
        raise BrokenImage("a damaged TIFF directory")
    data = feed.read(at + count_size, count * entry_size + offset_size)
    if len(data) < count * entry_size:
        raise BrokenImage("ends within a TIFF directory")
    # writers have left out the last zero; libtiff takes that for the end, too
    return data[: count * entry_size], variant.number(data[count * entry_size :])


def _values(variant: _Variant, entries: bytes) -> Iterator[tuple[int, int]]:
    """Tags and values, of those that are one short, long or long8; how many pixels share a chroma."""
    for tag, kind, count, value in _fields(variant, entries):
        size = {3: 2, 4: 4, 16: 8}.get(kind)
        if count == 1 and size is not None:
            yield tag, variant.number(value[:size])
        elif tag == _SUBSAMPLING and (kind, count) == (3, 2):
            yield tag, variant.number(value[:2]) * variant.number(value[2:4])


def _fields(variant: _Variant, entries: bytes) -> Iterator[tuple[int, int, int, bytes]]:
    """Tag, type, count, and the value or where it is."""
    return struct.Struct(variant.order + ("HHQ8s" if variant.big else "HHI4s")).iter_unpack(entries)


def _ycbcr(feed: Feed, variant: _Variant, entries: bytes, tags: dict[int, int]) -> YCbCr | None:
    """How its colours become RGB where libvips doesn't make them so. NotReadHere where it mixes them up."""
    if tags.get(_COMPRESSION) in _JPEG:
        return None
    halved = tags.get(_SUBSAMPLING, 4) > 1
    if tags.get(_PLANAR) == _SEPARATE or (halved and _TILE_ROWS in tags):
        raise NotReadHere("a TIFF in YCbCr, not compressed as JPEG, in planes or in tiles with halved chroma")
    if halved:
        return None
    colours = YCbCr(
        _rationals(feed, variant, entries, _COEFFICIENTS, BT601),
        _rationals(feed, variant, entries, _REFERENCE, FULL_RANGE),
    )
    range_of = colours.reference
    if not colours.coefficients[1] or any(range_of[at] == range_of[at + 1] for at in (0, 2, 4)):
        raise BrokenImage("a TIFF in YCbCr without a range")
    return colours


def _rationals(
    feed: Feed, variant: _Variant, entries: bytes, tag: int, default: tuple[float, ...]
) -> tuple[float, ...]:
    """The values of a tag, the default where there aren't as many."""
    for found, kind, count, where in _fields(variant, entries):
        if (found, kind, count) == (tag, _RATIONAL, len(default)):
            data = feed.read(variant.number(where), 8 * count)
            pairs = list(struct.iter_unpack(variant.order + "II", data[: len(data) // 8 * 8]))
            if len(pairs) == count and all(under for _, under in pairs):
                return tuple(over / under for over, under in pairs)
    return default


def _rows(tags: dict[int, int]) -> int:
    """Rows that are held together: two of tiles, or the part of a strip that one read decodes."""
    height = tags.get(_HEIGHT, 0)
    if _TILE_ROWS in tags:
        return min(height, 2 * tags[_TILE_ROWS])
    strip = min(height, tags.get(_STRIP_ROWS, height))
    at_once = tags.get(_PLANAR) == _SEPARATE or tags.get(_PHOTOMETRIC) == _YCBCR
    return strip if at_once else min(strip, _ROW_BY_ROW)
