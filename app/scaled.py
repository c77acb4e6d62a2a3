"""Scaled images: ``/binary/{reference_id}/full/{size}/default.jpg``, with and without a rotation of 0, always JPEG."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Final

from falcon import Request, Response

from app.conditional import Validators, not_modified
from app.grants import Grants
from app.images import Images, tag_of
from app.lookup import Lookup
from app.media import HARMLESS, freshness, picture_of, validators_of
from app.problems import Problem, bad_field
from imaging.size import parse

REGION: Final = re.compile(r"full|square|(?:pct:)?[0-9]{1,10}(?:\.[0-9]{1,10})?(?:,[0-9]{1,10}(?:\.[0-9]{1,10})?){3}")
ROTATION: Final = re.compile(r"!?(?:360|(?:[0-9]|[1-9][0-9]|[12][0-9]{2}|3[0-5][0-9])(?:\.[0-9]{1,10})?)")
FILE: Final = re.compile(r"(?:default|color|gray|bitonal)\.(?:jpg|tif|png|gif|jp2|pdf|webp|avif)")

JPEG: Final = [("Content-Type", "image/jpeg"), *HARMLESS]


class Scaled:
    def __init__(self, images: Images, lookup: Lookup, grants: Grants, max_age: int) -> None:
        self._images, self._lookup, self._grants, self._max_age = images, lookup, grants, max_age

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
        picture = picture_of(original)
        order = self._images.order((2, "full", size, "0", "default.jpg"), picture, 0)
        self._grants.check_whole(reference, original, order.size)
        # known before anything is decoded: the original's hash, the pixels wanted, and how they are encoded
        validators = Validators(tag_of(self._images.key(original, order, 1, None)), validators_of(original).modified)
        if not_modified(req, validators):
            resp.status = HTTPStatus.NOT_MODIFIED
            resp.set_headers(freshness(validators, self._max_age))
            return
        resp.data = self._images.data(original, order, 1, None)
        resp.set_headers(JPEG)
        resp.set_headers(freshness(validators, self._max_age))

    on_head = on_get


def check_offered(region: str, rotation: str, file: str) -> None:
    """Raise 400 for what is no IIIF request (Image API 2.1, 4), 501 for one that isn't offered here."""
    forms = (("region", region, REGION), ("rotation", rotation, ROTATION), ("quality and format", file, FILE))
    for field, text, form in forms:
        if not form.fullmatch(text):
            raise bad_field(field, "malformed")
    if (region, rotation, file) != ("full", "0", "default.jpg"):
        detail = "Only whole images are offered: full/{size}/0/default.jpg."
        raise Problem(HTTPStatus.NOT_IMPLEMENTED, detail)
