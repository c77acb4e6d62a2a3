"""A seekable reader seen through cached blocks: few large reads in place of many small ones."""

from __future__ import annotations

import io
from collections import OrderedDict
from typing import BinaryIO, Final

BLOCK: Final = 128 * 1024
KEPT: Final = 24
AHEAD: Final = 4
"""Blocks in one read once the reading has been sequential for a while."""


class Blocks:
    """The reader's bytes by their offsets, wherever it stands. Its errors pass to the caller. It isn't closed."""

    def __init__(self, reader: BinaryIO) -> None:
        self._reader = reader
        self._kept: OrderedDict[int, bytes] = OrderedDict()
        self._next, self._ahead = -1, 1
        self.size = reader.seek(0, io.SEEK_END)

    def read(self, start: int, count: int) -> bytes:
        """Bytes from ``start``; fewer than ``count`` only at the end."""
        pieces, at, stop = [], start, min(start + count, self.size)
        while at < stop:
            index, offset = divmod(at, BLOCK)
            piece = self._block(index)[offset : offset + stop - at]
            if not piece:
                break
            pieces.append(piece)
            at += len(piece)
        return b"".join(pieces)

    def read_all(self) -> bytes:
        """Everything in one go, past the cache."""
        return self._fetch(0, self.size)

    def _block(self, index: int) -> bytes:
        if index in self._kept:
            self._kept.move_to_end(index)
            return self._kept[index]
        self._ahead = min(2 * self._ahead, AHEAD) if index == self._next else 1
        data = self._fetch(index * BLOCK, self._ahead * BLOCK)
        self._next = index + self._ahead
        for offset in range(self._ahead):
            self._kept[index + offset] = data[offset * BLOCK : (offset + 1) * BLOCK]
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return self._kept[index]

    def _fetch(self, start: int, count: int) -> bytes:
        """From the reader itself, which may give less at a time than it was asked for."""
        self._reader.seek(start)
        pieces: list[bytes] = []
        while count > 0 and (piece := self._reader.read(count)):
            pieces.append(piece)
            count -= len(piece)
        return b"".join(pieces)
