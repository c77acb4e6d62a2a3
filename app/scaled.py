"""Scaled images: ``/binary/{reference_id}/full/{size}/default.jpg``, with and without a rotation of 0, always JPEG."""

from __future__ import annotations

import re
from functools import lru_cache
from http import HTTPStatus
from typing import BinaryIO, Final, cast

import xxhash
from falcon import Request, Response

from app.boxes import Boxes
from app.conditional import Validators, not_modified
from app.grants import Grants
from app.library import Library
from app.lookup import Lookup
from app.media import HARMLESS, freshness, picture_of, validators_of
from app.metrics import Metrics
from app.problems import Problem, bad_field
from imaging.size import Bounds, Exact, parse
from ingest.records import Original
from storage.errors import BlobError

REGION: Final = re.compile(r"full|square|(?:pct:)?[0-9]{1,10}(?:\.[0-9]{1,10})?(?:,[0-9]{1,10}(?:\.[0-9]{1,10})?){3}")
ROTATION: Final = re.compile(r"!?(?:360|(?:[0-9]|[1-9][0-9]|[12][0-9]{2}|3[0-5][0-9])(?:\.[0-9]{1,10})?)")
FILE: Final = re.compile(r"(?:default|color|gray|bitonal)\.(?:jpg|tif|png|gif|jp2|pdf|webp|avif)")

JPEG: Final = [("Content-Type", "image/jpeg"), *HARMLESS]


class Scaled:
    def __init__(
        self, library: Library, lookup: Lookup, grants: Grants, metrics: Metrics, boxes: Boxes, max_age: int
    ) -> None:
        self._blobs, self._boxes, self._grants = library.blobs, boxes, grants
        self._renditions, self._limits = library.renditions, library.limits
        self._lookup, self._metrics, self._max_age = lookup, metrics, max_age

    def on_get(
        self,
        req: Request,
        resp: Response,
        reference_id: str,
        region: str,
        size: str,
        rotation: str = "0",
        file: str = "default.jpg",
    ) -> None:
        check_offered(region, rotation, file)
        parse(size)  # what is malformed needs no look at the store
        reference, original = self._lookup.found_image(reference_id)
        pixels = pixels_of(size, picture_of(original), self._limits.bounds(*picture_of(original)))
        self._grants.check_whole(reference, original, pixels)
        validators = self._validators(original, pixels)
        if not_modified(req, validators):
            resp.status = HTTPStatus.NOT_MODIFIED
            resp.set_headers(freshness(validators, self._max_age))
            return
        resp.data = self._boxes.get(original, pixels) or self._rendered(original, pixels)
        resp.set_headers(JPEG)
        resp.set_headers(freshness(validators, self._max_age))

    on_head = on_get

    def _validators(self, original: Original, pixels: tuple[int, int]) -> Validators:
        """Known before anything is decoded: the original's hash, the pixels wanted, and how they are encoded."""
        key = self._renditions.key(original.checksum or "", *pixels)
        return Validators(xxhash.xxh3_128_hexdigest(key.encode()), validators_of(original).modified)

    def _rendered(self, original: Original, pixels: tuple[int, int]) -> bytes:
        blob = original.blob
        if blob is None:
            raise BlobError(f"original {original.original_id} is OK and names no bytes")

        def reader() -> BinaryIO:
            self._metrics.rendered()
            return cast(BinaryIO, self._blobs.open(blob))

        return self._renditions.jpeg(blob.sha256, picture_of(original), Exact(*pixels), reader)


@lru_cache(maxsize=4096)
def pixels_of(size: str, picture: tuple[int, int], most: Bounds) -> tuple[int, int]:
    """What a size comes to for a picture: the canonical request. Kept, for exact arithmetic takes its time."""
    return parse(size).fit(*picture, most)


def check_offered(region: str, rotation: str, file: str) -> None:
    """Raise 400 for what is no IIIF request (Image API 2.1, 4), 501 for one that isn't offered here."""
    forms = (("region", region, REGION), ("rotation", rotation, ROTATION), ("quality and format", file, FILE))
    for field, text, form in forms:
        if not form.fullmatch(text):
            raise bad_field(field, "malformed")
    if (region, rotation, file) != ("full", "0", "default.jpg"):
        detail = "Only whole images are offered: full/{size}/0/default.jpg."
        raise Problem(HTTPStatus.NOT_IMPLEMENTED, detail)
