"""What a TIFF's directories tell about the cost of decoding it. libvips doesn't, or only after reading all of them.

A TIFF may have a directory for each of a million pages, spread over the file, and may keep its pixels in pieces of any
size; both are counted here before a decoder sees the file. Source: TIFF 6.0, sections 2 and 15; BigTIFF.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from imaging.errors import BrokenImage, TooLargeImage
from imaging.feed import Feed

_HEIGHT, _PHOTOMETRIC, _STRIP_ROWS, _PLANAR, _TILE_ROWS = 257, 262, 278, 284, 323
_SEPARATE: Final = 2
_YCBCR: Final = 6
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


@dataclass(frozen=True)
class _Variant:
    """Classic or big, in one byte order."""

    order: str
    big: bool

    def number(self, data: bytes) -> int:
        return int.from_bytes(data, "little" if self.order == "<" else "big")


def layout(feed: Feed, most_pages: int, page: int = 1) -> Layout:
    """Read the directories; ``tiled`` and ``rows`` are those of ``page``, or of the first where there is no such page.

    BrokenImage; TooLargeImage when there are more than ``most_pages``.
    """
    head = feed.read(0, 16)
    order = "<" if head[:2] == b"II" else ">"
    variant = _Variant(order, 43 in head[2:4])
    at = variant.number(head[8:16] if variant.big else head[4:8])
    seen: set[int] = set()
    tags: dict[int, int] = {}
    while at and at not in seen:
        if len(seen) == most_pages:
            raise TooLargeImage(f"more than {most_pages} pages")
        seen.add(at)
        entries, following = _directory(feed, variant, at)
        if not tags or len(seen) == page:
            tags = dict(_values(variant, entries))
        at = following
    if not tags:
        raise BrokenImage("a TIFF without a page")
    return Layout(len(seen), _TILE_ROWS in tags, _rows(tags))


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
    """Tags and values, of those that are one short, long or long8."""
    entry = struct.Struct(variant.order + ("HHQ8s" if variant.big else "HHI4s"))
    for tag, kind, count, value in entry.iter_unpack(entries):
        size = {3: 2, 4: 4, 16: 8}.get(kind)
        if count == 1 and size is not None:
            yield tag, variant.number(value[:size])


def _rows(tags: dict[int, int]) -> int:
    """Rows that are held together: two of tiles, or the part of a strip that one read decodes."""
    height = tags.get(_HEIGHT, 0)
    if _TILE_ROWS in tags:
        return min(height, 2 * tags[_TILE_ROWS])
    strip = min(height, tags.get(_STRIP_ROWS, height))
    at_once = tags.get(_PLANAR) == _SEPARATE or tags.get(_PHOTOMETRIC) == _YCBCR
    return strip if at_once else min(strip, _ROW_BY_ROW)
