"""How the bytes of a reader reach libvips, and how the reader's errors come back.

libvips asks a custom source for a few KB at a time, for a tiled TIFF with a seek before each, and what a handler
raises there is printed and forgotten: libvips sees an end of file and paints the rest grey. So reads go through a few
cached blocks, and the first error is kept and raised again in place of whatever libvips made of it.
"""

from __future__ import annotations

import io
from collections import OrderedDict
from types import TracebackType
from typing import Any, BinaryIO, Final, Self

import pyvips

from imaging.errors import BrokenImage

BLOCK: Final = 128 * 1024
BLOCKS_KEPT: Final = 24
BLOCKS_AHEAD: Final = 4
"""Blocks in one read once the reading has been sequential for a while."""
WHOLE: Final = 16 * 1024 * 1024
"""Sources up to this size are read in one go for decoding: a callback for every 4 KB costs a JPEG a tenth more CPU."""


class Feed:
    """A seekable reader's bytes, for one image; a context manager around everything that libvips does with them.

    Leaving it raises the reader's own error if there was one, and BrokenImage for an error of libvips. The reader is
    used from its very start, wherever it stood, and is not closed.
    """

    def __init__(self, reader: BinaryIO) -> None:
        self._reader = reader
        self._blocks: OrderedDict[int, bytes] = OrderedDict()
        self._next, self._ahead = 0, 1
        self._error: BaseException | None = None
        self._whole: bytes | None = None
        self.size = reader.seek(0, io.SEEK_END)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        if self._error is not None:
            raise self._error
        if isinstance(error, pyvips.Error):
            raise BrokenImage(_reason(error)) from error

    def read(self, start: int, count: int) -> bytes:
        """Bytes from ``start``; fewer than ``count`` only at the end of the source."""
        if self._whole is not None:
            return self._whole[start : start + count]
        pieces, at, stop = [], start, min(start + count, self.size)
        while at < stop:
            index, offset = divmod(at, BLOCK)
            piece = self._block(index)[offset : offset + stop - at]
            if not piece:
                break
            pieces.append(piece)
            at += len(piece)
        return b"".join(pieces)

    def replace(self, data: bytes) -> None:
        """From now on the feed is this instead of the reader's bytes."""
        self._whole, self.size = data, len(data)
        self._blocks.clear()

    def source(self) -> pyvips.Source:
        """A source for a look at the header: read in blocks."""
        return self._custom() if self._whole is None else pyvips.Source.new_from_memory(self._whole)

    def source_whole(self) -> pyvips.Source:
        """A source for decoding: small ones are read in one go."""
        if self._whole is None and self.size <= WHOLE:
            self.replace(self._fetch(0, self.size))
        return self.source()

    def _custom(self) -> pyvips.Source:
        source, position = pyvips.SourceCustom(), 0

        def read(buffer: Any) -> int:
            nonlocal position
            try:
                data = self.read(position, len(buffer))
            except BaseException as error:
                self._error = self._error or error
                return -1
            buffer[: len(data)] = data
            position += len(data)
            return len(data)

        def seek(offset: int, whence: int) -> int:
            nonlocal position
            wanted = offset + {io.SEEK_SET: 0, io.SEEK_CUR: position, io.SEEK_END: self.size}[whence]
            if wanted < 0:
                return -1
            position = wanted
            return position

        # the signal itself, not SourceCustom.on_read: that one has no way to say that reading failed
        source.signal_connect("read", read)
        source.signal_connect("seek", seek)
        return source

    def _block(self, index: int) -> bytes:
        if index in self._blocks:
            self._blocks.move_to_end(index)
            return self._blocks[index]
        self._ahead = min(2 * self._ahead, BLOCKS_AHEAD) if index == self._next else 1
        data = self._fetch(index * BLOCK, self._ahead * BLOCK)
        self._next = index + self._ahead
        for position in reversed(range(self._ahead)):
            self._blocks[index + position] = data[position * BLOCK : (position + 1) * BLOCK]
            self._blocks.move_to_end(index + position)
        while len(self._blocks) > BLOCKS_KEPT:
            self._blocks.popitem(last=False)
        return self._blocks[index]

    def _fetch(self, start: int, count: int) -> bytes:
        """From the reader itself, which may give less at a time than it was asked for."""
        self._reader.seek(start)
        pieces: list[bytes] = []
        while count > 0 and (piece := self._reader.read(count)):
            pieces.append(piece)
            count -= len(piece)
        return b"".join(pieces)


def _reason(error: pyvips.Error) -> str:
    """libvips' messages pile up, one to a line; the first is the cause."""
    lines = [line.strip() for line in str(error.detail or error.message).splitlines()]
    return next((line for line in lines if line), "can't be decoded")
