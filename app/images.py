"""Where the bytes of a IIIF image come from: a box or a tile made at ingest, the cache, a level of the pyramid, or the
original."""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import BinaryIO, cast

import xxhash

from app.boxes import Boxes
from app.fileimages import SHELF, FileImages
from app.grants import Grant, Grants
from app.identifier import Identifier
from app.library import Library
from app.lookup import Lookup
from app.media import picture_of
from app.metrics import Metrics
from app.pyramids import Pyramids
from imaging import request as requests
from imaging.errors import BrokenImage, ImageError
from imaging.request import Order
from imaging.size import Bounds
from imaging.watermark import Mark
from ingest.records import Original
from storage.blobs import Blob
from storage.errors import BlobError

Segments = tuple[int, str, str, str, str]
"""Version, region, size, rotation, quality and format."""

log = logging.getLogger("magazin.http")
parsed = lru_cache(maxsize=4096)(requests.parse)


class Images:
    def __init__(
        self,
        library: Library,
        lookup: Lookup,
        grants: Grants,
        metrics: Metrics,
        boxes: Boxes,
        pyramids: Pyramids,
    ) -> None:
        self._blobs, self._renditions, self._limits = library.blobs, library.renditions, library.limits
        self._lookup, self._metrics, self._boxes = lookup, metrics, boxes
        self._pyramids, self._grants = pyramids, grants
        self._files = FileImages(library.buckets, library.limits)
        # by its text: exact arithmetic takes its time, and so does a hash of fractions
        self.order = lru_cache(maxsize=4096)(self._order)

    def find(self, name: Identifier) -> tuple[Original, Grant]:
        """Problems: 403, 404, 503."""
        if name.reference_id.startswith(f"{SHELF}:"):
            reference, original = self._files.find(name.reference_id)
        else:
            reference, original = self._lookup.found_image(name.reference_id)
        return original, self._grants.of(name, reference)

    def bounds(self, picture: tuple[int, int]) -> Bounds:
        """What no rendition of a picture goes beyond, whoever asks."""
        return self._limits.bounds(*picture)

    def _order(self, segments: Segments, picture: tuple[int, int], public: int) -> Order:
        """What a request comes to for a picture of which so much is public. BadRequest."""
        request = parsed(*segments)
        crop = request.region.crop(*picture)
        bounds = Grant(public).bounds(self.bounds(picture), picture, (crop.width, crop.height))
        return request.resolve(*picture, bounds)

    def dimensions(self, original: Original, page: int) -> tuple[int, int]:
        """Width and height of a page in pixels, as displayed. NoSuchPage."""
        if page == 1:
            return picture_of(original)
        return self._renditions.dimensions(blob_of(original).sha256, page, lambda: self._open(original))

    def page_sizes(self, original: Original, pages: int) -> list[tuple[int, int] | None]:
        """``dimensions`` of the first pages; None for one that can't be shown."""
        first = picture_of(original)
        if pages == 1:
            return [first]
        try:
            found = self._renditions.page_sizes(blob_of(original).sha256, pages, lambda: self._open(original))
        except ImageError as error:
            log.warning("the pages of original %s: %s", original.original_id, error)
            found = []
        return [first, *found[1:]]

    def key(self, original: Original, order: Order, page: int, mark: Mark | None) -> str:
        """Names the bytes before they are there."""
        return self._renditions.key_of(original.checksum or "", order, page, mark)

    def data(self, original: Original, order: Order, page: int, mark: Mark | None) -> bytes:
        """The bytes of the rendition. The errors of ``Renditions.image``."""
        if mark is None and order.plain and order.whole and page == 1 and not self._files.hold(original):
            box = self._boxes.get(original, order.size)
            if box is not None:
                return box
        tiles = self._pyramids.of(original) if page == 1 else None
        if tiles is not None and mark is None:
            try:
                tile = self._pyramids.tile(original, tiles, order)
            except BrokenImage as error:
                log.warning("the pyramid of original %s: %s", original.original_id, error)
                tile = tiles = None
            if tile is not None:
                return tile
        sha256 = blob_of(original).sha256
        return self._renditions.image(sha256, order, page, lambda: self._counted(original), tiles, mark)

    def _counted(self, original: Original) -> BinaryIO:
        self._metrics.rendered()
        return self._open(original)

    def _open(self, original: Original) -> BinaryIO:
        if self._files.hold(original):
            return cast(BinaryIO, self._files.open(original))
        return cast(BinaryIO, self._blobs.open(blob_of(original)))


@lru_cache(maxsize=4096)
def tag_of(key: str) -> str:
    """The tag of the bytes that a key names."""
    return str(xxhash.xxh3_128_hexdigest(key.encode()))


def blob_of(original: Original) -> Blob:
    blob = original.blob
    if blob is None:
        raise BlobError(f"original {original.original_id} is OK and names no bytes")
    return blob
