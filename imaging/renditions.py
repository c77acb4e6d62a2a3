"""Renditions of originals, made once and kept in the cache."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import BinaryIO, Protocol

from imaging.encoding import STANDARD, Encoding
from imaging.errors import BrokenImage
from imaging.limits import Limits
from imaging.outputs import outputs
from imaging.pages import sizes_of_pages
from imaging.picture import inspect
from imaging.pyramid import Tiles
from imaging.render import render, render_tiles
from imaging.request import Order
from imaging.watermark import Mark

log = logging.getLogger(__name__)


class Cache(Protocol):
    def make(self, key: str, maker: Callable[[], bytes]) -> bytes:
        """The value kept under ``key``, else the maker's; one maker at a time for each key. Its errors pass, unkept."""
        ...


class Renditions:
    def __init__(self, cache: Cache, limits: Limits, encoding: Encoding = STANDARD) -> None:
        self._cache, self._limits, self._encoding = cache, limits, encoding

    def image(
        self,
        checksum: str,
        order: Order,
        page: int,
        open_reader: Callable[[], BinaryIO],
        tiles: Tiles | None = None,
        mark: Mark | None = None,
    ) -> bytes:
        """The rendition that ``order`` asks for, of a page; from ``tiles``, the first page's, for formats that lose
        something anyway.

        ``open_reader`` is called only for what isn't in the cache. The errors of ``render``; the cache's own (too many
        wait); whatever ``open_reader`` and its reader raise.
        """

        def make() -> bytes:
            if tiles is not None and not outputs()[order.format].lossless:
                try:
                    return render_tiles(tiles, order, self._limits, self._encoding, mark)
                except BrokenImage as error:
                    log.warning("a pyramid of %s: %s", checksum, error)
            with open_reader() as reader:
                return render(reader, order, self._limits, self._encoding, page=page, mark=mark)

        return self._cache.make(self.key_of(checksum, order, page, mark), make)

    def key_of(self, checksum: str, order: Order, page: int, mark: Mark | None = None) -> str:
        """The canonical request for a page of an original, under these settings."""
        marked = f"-{mark.name}" if mark else ""
        return f"{checksum};{page}/{order.key}?{self._encoding.version}{marked}"

    def dimensions(self, checksum: str, page: int, open_reader: Callable[[], BinaryIO]) -> tuple[int, int]:
        """Width and height in pixels of a page, as displayed. Errors of ``inspect``."""

        def make() -> bytes:
            with open_reader() as reader:
                picture = inspect(reader, self._limits, page)
            return f"{picture.width},{picture.height}".encode()

        width, height = self._cache.make(f"{checksum};{page}/dimensions", make).split(b",")
        return int(width), int(height)

    def page_sizes(
        self, checksum: str, pages: int, open_reader: Callable[[], BinaryIO]
    ) -> list[tuple[int, int] | None]:
        """``dimensions`` of the first pages, from one look at the file; None for a page that can't be shown."""

        def make() -> bytes:
            with open_reader() as reader:
                return json.dumps(sizes_of_pages(reader, self._limits, pages)).encode()

        held = json.loads(self._cache.make(f"{checksum}/{pages}/dimensions", make))
        return [None if size is None else (size[0], size[1]) for size in held]
