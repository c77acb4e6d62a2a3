"""Pyramids: an image in tiles at every scale of 1, 1/2, 1/4 …, each a JPEG as viewers ask for it.

A pyramid is a ZIP as libvips' ``dzsave`` writes it, Deep Zoom's layout, nothing compressed: every entry is one whole
JPEG, those at the edges cut to size, and the directory at its end is the index. (A TIFF would need its tables put in
front of each tile, and keeps whole tiles at the edges.)
"""

from __future__ import annotations

import re
import zipfile
import zlib
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

import pyvips

from imaging.colour import Image, ordinary, to_srgb
from imaging.deadline import Deadline
from imaging.encoding import Encoding
from imaging.errors import BrokenImage
from imaging.feed import Feed
from imaging.limits import Limits
from imaging.opening import open_pixels
from imaging.picture import look
from imaging.reduction import choose, reduced
from imaging.region import Rect
from imaging.request import Order

TILE: Final = 512
_NAME: Final = re.compile(r"p_files/(\d{1,2})/(\d{1,6})_(\d{1,6})\.jpg")
_LOCAL: Final = 30
"""Bytes of an entry's own header, before its name (APPNOTE.TXT, 4.3.7)."""
_EXTRA: Final = 64
"""Bytes of extra fields that are expected there."""

Read = Callable[[int, int], bytes]
"""The pyramid's bytes from one offset to another."""


def build(reader: BinaryIO, limits: Limits, encoding: Encoding, write: Callable[[bytes], int]) -> bool:
    """Write the pyramid of the picture that ``reader`` holds, in one pass; False, and nothing written, for one with
    transparency, which JPEG has none of.

    Errors of ``render``; what ``write`` raises passes to the caller.
    """
    errors: list[BaseException] = []

    def pass_on(data: Any) -> int:
        try:
            return write(bytes(data))
        except BaseException as error:  # pyvips would print and swallow it
            errors.append(error)
            return -1

    with Feed(reader) as feed, Deadline(limits.seconds) as deadline:
        picture = look(feed, limits)
        image = ordinary(open_pixels(feed, picture, 1, deadline))
        if image.hasalpha():
            return False
        image = to_srgb(image)
        if picture.orientation > 1:
            # rows in another order: through a file, which a small machine has more room for than memory
            turned = pyvips.Image.new_temp_file("%s.v")
            image.write(turned)
            image = turned.autorot()
        target = pyvips.TargetCustom()
        target.on_write(pass_on)
        try:
            image.dzsave_target(
                target,
                layout="dz",
                container="zip",
                compression=0,
                imagename="p",
                tile_size=TILE,
                overlap=0,
                depth="onetile",
                suffix=f".jpg[Q={encoding.quality},subsample_mode=on,optimize_coding=false]",
                keep="none",
            )
        except pyvips.Error:
            if errors:
                raise errors[0] from None
            raise
    if errors:
        raise errors[0]
    return True


@dataclass(frozen=True)
class _Level:
    width: int
    height: int
    starts: array[int]
    sizes: array[int]
    sums: array[int]

    @property
    def across(self) -> int:
        return -(-self.width // TILE)

    @property
    def down(self) -> int:
        return -(-self.height // TILE)


class Pyramid:
    """The index of one pyramid: where each tile is. About 16 bytes a tile."""

    def __init__(self, source: BinaryIO, width: int, height: int) -> None:
        """From its bytes, and the dimensions of the picture as displayed. BrokenImage when they don't fit together."""
        try:
            with zipfile.ZipFile(source) as file:
                entries = file.infolist()
        except zipfile.BadZipFile as error:
            raise BrokenImage(f"a pyramid without a directory: {error}") from error
        found = {}
        for entry in entries:
            if match := _NAME.fullmatch(entry.filename):
                found[tuple(int(part) for part in match.groups())] = entry
        deepest = max((key[0] for key in found), default=-1)
        self.picture = width, height
        self.tiles = len(found)
        self._levels = [_level(found, deepest, by, width, height) for by in range(deepest + 1)]
        if sum(len(level.starts) for level in self._levels) != len(found) or not found:
            raise BrokenImage("a pyramid of another picture")

    def tile(self, order: Order) -> tuple[int, int] | None:
        """Level and number of the tile that is just what is asked for, None when no tile is."""
        rect = order.region
        if not order.plain or rect.x % TILE or rect.y % TILE:
            return None
        for by, level in enumerate(self._levels):
            side = TILE << by
            if rect.x % side or rect.y % side:
                return None
            column, row = rect.x // side, rect.y // side
            wide, high = min(TILE, level.width - column * TILE), min(TILE, level.height - row * TILE)
            right, below = min(side, self.picture[0] - rect.x), min(side, self.picture[1] - rect.y)
            if (rect.width, rect.height) == (right, below) and order.size == (wide, high):
                return by, row * level.across + column
        return None

    def data(self, read: Read, by: int, number: int) -> bytes:
        """The JPEG of a tile. BrokenImage when it isn't what was written."""
        level = self._levels[by]
        start, size = level.starts[number], level.sizes[number]
        found = read(start, start + _LOCAL + _EXTRA + size + _EXTRA)
        begin = _LOCAL + int.from_bytes(found[26:28], "little") + int.from_bytes(found[28:30], "little")
        data = found[begin : begin + size]
        if found[:4] != b"PK\x03\x04" or zlib.crc32(data) != level.sums[number]:
            raise BrokenImage("a damaged tile")
        return data

    def region(self, read: Read, order: Order) -> Image:
        """The region's pixels, sRGB or gray, from the smallest level that suffices."""
        by = choose(order.region, order.size, self.picture, (1 << power for power in range(len(self._levels))))
        power = by.bit_length() - 1
        level = self._levels[power]
        rect = reduced(order.region, by, level.width, level.height, self.picture)
        columns = range(rect.x // TILE, (rect.right - 1) // TILE + 1)
        rows = range(rect.y // TILE, (rect.bottom - 1) // TILE + 1)
        tiles = [
            pyvips.Image.jpegload_buffer(self.data(read, power, row * level.across + column))
            for row in rows
            for column in columns
        ]
        image = tiles[0]
        if len(tiles) > 1:
            image = pyvips.Image.arrayjoin(tiles, across=len(columns), hspacing=TILE, vspacing=TILE)
        part = Rect(rect.x - columns[0] * TILE, rect.y - rows[0] * TILE, rect.width, rect.height)
        return image.extract_area(part.x, part.y, part.width, part.height)


@dataclass(frozen=True)
class Tiles:
    """A pyramid's index, and what reads its bytes."""

    index: Pyramid
    read: Read


def _level(found: dict[Any, zipfile.ZipInfo], deepest: int, by: int, width: int, height: int) -> _Level:
    level = _Level(-(-width // (1 << by)), -(-height // (1 << by)), array("Q"), array("I"), array("I"))
    for row in range(level.down):
        for column in range(level.across):
            entry = found.get((deepest - by, column, row))
            if entry is None or entry.compress_type != zipfile.ZIP_STORED:
                raise BrokenImage("a pyramid without some of its tiles")
            level.starts.append(entry.header_offset)
            level.sizes.append(entry.file_size)
            level.sums.append(entry.CRC)
    return level
