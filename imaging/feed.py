"""How the bytes of a reader reach libvips, and how the reader's errors come back.

libvips asks a custom source for a few KB at a time, for a tiled TIFF with a seek before each, and what a handler
raises there is printed and forgotten: libvips sees an end of file and paints the rest grey. So reads go through a few
cached blocks, and the first error is kept and raised again in place of whatever libvips made of it.
"""

from __future__ import annotations

import io
from types import TracebackType
from typing import Any, BinaryIO, Final, Self

import pyvips

from imaging.blocks import Blocks
from imaging.errors import BrokenImage

WHOLE: Final = 16 * 1024 * 1024
"""Sources up to this size are read in one go for decoding: a callback for every 4 KB costs a JPEG a tenth more CPU."""


class Feed:
    """A seekable reader's bytes, for one image; a context manager around everything that libvips does with them.

    Leaving it raises the reader's own error if there was one, and BrokenImage for an error of libvips. The reader is
    used from its very start, wherever it stands, and isn't closed.
    """

    def __init__(self, reader: BinaryIO) -> None:
        self._blocks = Blocks(reader)
        self._whole: bytes | None = None
        # libvips calls back into a source for as long as an image of it is computed, and pyvips doesn't keep it alive
        self._sources: list[pyvips.Source] = []
        self._errors: list[BaseException] = []
        self.size = self._blocks.size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        if self._errors:
            raise self._errors[0]
        if isinstance(error, pyvips.Error):
            raise BrokenImage(_reason(error)) from error

    def read(self, start: int, count: int) -> bytes:
        """Bytes from ``start``; fewer than ``count`` only at the end."""
        return self._blocks.read(start, count) if self._whole is None else self._whole[start : start + count]

    def attempt(self, start: int, count: int) -> bytes:
        """``read`` for libraries that swallow what a reader raises: the error is kept, and raised again at the end."""
        try:
            return self.read(start, count)
        except BaseException as error:
            self._errors.append(error)
            raise

    def replace(self, data: bytes) -> None:
        """From now on the feed is this instead of the reader's bytes."""
        self._whole, self.size = data, len(data)

    def source(self) -> pyvips.Source:
        """A source for a look at the header: read in blocks."""
        if self._whole is None:
            source = _custom(self._blocks, self._errors)
        else:
            source = pyvips.Source.new_from_memory(self._whole)
        self._sources.append(source)
        return source

    def source_whole(self) -> pyvips.Source:
        """A source for decoding: a small one is read in one go."""
        if self._whole is None and self.size <= WHOLE:
            self.replace(self._blocks.read_all())
        return self.source()


def _custom(blocks: Blocks, errors: list[BaseException]) -> pyvips.SourceCustom:
    """A source over the blocks that puts what goes wrong into ``errors``."""
    source, position = pyvips.SourceCustom(), 0

    def read(buffer: Any) -> int:
        nonlocal position
        try:
            data = blocks.read(position, len(buffer))
        except BaseException as error:
            errors.append(error)
            return -1
        buffer[: len(data)] = data
        position += len(data)
        return len(data)

    def seek(offset: int, whence: int) -> int:
        nonlocal position
        wanted = offset + {io.SEEK_SET: 0, io.SEEK_CUR: position, io.SEEK_END: blocks.size}[whence]
        if wanted < 0:
            return -1
        position = wanted
        return position

    # the signals themselves: SourceCustom.on_read has no way to say that reading failed
    source.signal_connect("read", read)
    source.signal_connect("seek", seek)
    return source


def _reason(error: pyvips.Error) -> str:
    """libvips' messages pile up, one to a line; the first is the cause. They pile up in one place for all threads: it
    may be another's, or another may have taken it."""
    lines = [line.strip() for line in str(error.detail).splitlines()]
    return next((line for line in lines if line), "the decoder gave no reason")
