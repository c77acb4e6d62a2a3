"""The first frame of an animation, cut out as a file of its own.

libvips maps a whole GIF or WebP into memory and lists all of its frames before it decodes the first; with a hundred
bytes of bookkeeping for a frame of thirteen, a small file becomes a bomb. Only the first frame is shown, so nothing
behind it is given to the decoder. Sources: GIF89a specification; RFC 9649 (WebP), 2.7.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from imaging import formats
from imaging.errors import BrokenImage
from imaging.feed import Feed

_STEP: Final = 64 * 1024
_EXTENSION, _FRAME = 0x21, 0x2C
_TRAILER: Final = b"\x3b"
_ANIMATED: Final = 0x02
"""Flag of the VP8X chunk."""


class _Bytes:
    """Single bytes of a feed by their offset."""

    def __init__(self, feed: Feed) -> None:
        self._feed, self._start, self._piece = feed, 0, b""

    def __getitem__(self, at: int) -> int:
        offset = at - self._start
        if not 0 <= offset < len(self._piece):
            self._start, offset = at, 0
            self._piece = self._feed.read(at, _STEP)
            if not self._piece:
                raise BrokenImage("ends within a frame")
        return self._piece[offset]


def gif_frames(feed: Feed) -> Iterator[int]:
    """Where each frame of a GIF ends. BrokenImage at a frame that isn't whole, and when there is none at all."""
    data = _Bytes(feed)
    at, found = 13 + _colour_table(data[10]), False
    while at < feed.size:
        block = data[at]
        if block == _EXTENSION:
            at = _behind_blocks(data, at + 2)
        elif block == _FRAME:
            at += 10 + _colour_table(data[at + 9])
            at, found = _behind_blocks(data, at + 1), True  # the one byte is the code size
            yield at
        else:  # the trailer, or what viewers take for one
            break
    if not found:
        raise BrokenImage("a GIF without a frame")


def check_gif(feed: Feed) -> None:
    """Walk through all frames if this is a GIF. BrokenImage at one that isn't whole."""
    if formats.recognise(feed.read(0, formats.HEAD)) is formats.GIF:
        for _ in gif_frames(feed):
            pass


def first_of_gif(feed: Feed) -> bytes:
    """A GIF of the first frame alone. BrokenImage."""
    return feed.read(0, next(gif_frames(feed))) + _TRAILER


def _colour_table(packed: int) -> int:
    """Bytes of the table that these flags announce."""
    return 3 << ((packed & 7) + 1) if packed & 0x80 else 0


def _behind_blocks(data: _Bytes, at: int) -> int:
    """Where the sub-blocks that begin at ``at`` end."""
    while length := data[at]:
        at += length + 1
    return at + 1


def first_of_webp(feed: Feed) -> bytes | None:
    """A WebP of the first frame alone, None when it isn't animated. BrokenImage."""
    head = feed.read(0, 21)
    if len(head) < 21 or int.from_bytes(head[4:8], "little") + 8 > feed.size:
        raise BrokenImage("shorter than its header says")
    if head[12:16] != b"VP8X" or not head[20] & _ANIMATED:
        return None
    at = 12
    while len(chunk := feed.read(at, 8)) == 8:
        length = int.from_bytes(chunk[4:], "little")
        at += 8 + length + length % 2
        if chunk[:4] == b"ANMF":
            return b"RIFF" + (at - 8).to_bytes(4, "little") + feed.read(8, at - 8)
    raise BrokenImage("an animation without a frame")
