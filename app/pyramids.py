"""Pyramids that were asked for lately: their indexes, how they are read, and their hottest tiles."""

from __future__ import annotations

import logging
import os
import threading
from collections import OrderedDict
from pathlib import Path
from typing import BinaryIO, Final, cast

from app.media import picture_of
from imaging.errors import BrokenImage
from imaging.pyramid import Pyramid, Read, Tiles
from imaging.request import Order
from ingest.records import Original
from storage.blobs import Blob, BlobStore
from storage.errors import BlobError, Damaged

MOST: Final = 1_000_000
"""Tiles whose places are remembered by one process: about 16 MB."""
HOT: Final = 16 << 20
"""Bytes of tiles that one process keeps."""

log = logging.getLogger("magazin.http")


class Pyramids:
    def __init__(self, blobs: BlobStore, most: int = MOST, hot: int = HOT) -> None:
        self._blobs, self._most = blobs, most
        self._hot = _Hot(hot)
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str], Tiles] = OrderedDict()
        self._tiles = 0

    def of(self, original: Original) -> Tiles | None:
        """The pyramid of an original, None where there is none or where it is damaged. What is damaged is computed from
        the original instead."""
        blob = original.pyramid
        if blob is None:
            return None
        key = blob.owner, blob.attempt
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        try:
            with self._blobs.open(blob) as source:
                index = Pyramid(cast(BinaryIO, source), *picture_of(original))
        except (BrokenImage, BlobError) as error:
            log.warning("the pyramid of original %s: %s", original.original_id, error)
            return None
        tiles = Tiles(index, self._read(blob))
        with self._lock:
            if key not in self._kept:
                self._kept[key] = tiles
                self._tiles += index.tiles
            while self._tiles > self._most and len(self._kept) > 1:
                self._tiles -= self._kept.popitem(last=False)[1].index.tiles
        return tiles

    def tile(self, original: Original, tiles: Tiles, order: Order) -> bytes | None:
        """The tile of its pyramid that is just what is asked for, as it is stored; None when no tile is. BrokenImage
        for a damaged one."""
        place = tiles.index.tile(order)
        if place is None:
            return None
        key = original.attempt, *place
        data = self._hot.get(key)
        if data is None:
            data = tiles.index.data(tiles.read, *place)
            self._hot.keep(key, data)
        return data

    def _read(self, blob: Blob) -> Read:
        """Tiles have checksums of their own, so they may come from a plain file without a look at its parts."""
        path = self._blobs.path(blob)

        def read(start: int, stop: int) -> bytes:
            stop = min(stop, blob.size)
            found = _from_file(path, start, stop) if path is not None else None
            if found is not None:
                return found
            try:
                return b"".join(self._blobs.parts(blob, start, stop))
            except Damaged as error:
                raise BrokenImage(str(error)) from error

        return read


def _from_file(path: Path, start: int, stop: int) -> bytes | None:
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        return os.pread(file, stop - start, start)
    finally:
        os.close(file)


class _Hot:
    """Tiles that were asked for last, verified, by their pyramid and their place."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, threading.Lock()
        self._kept: OrderedDict[object, bytes] = OrderedDict()
        self._size = 0

    def get(self, key: object) -> bytes | None:
        with self._lock:
            data = self._kept.get(key)
            if data is not None:
                self._kept.move_to_end(key)
            return data

    def keep(self, key: object, data: bytes) -> None:
        with self._lock:
            if key not in self._kept:
                self._kept[key] = data
                self._size += len(data)
            while self._size > self._most:
                self._size -= len(self._kept.popitem(last=False)[1])
