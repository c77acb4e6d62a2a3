"""``/binary/{reference_id}/info.json``: what can be asked of an image (IIIF Image API 2.1, level 0)."""

from __future__ import annotations

import json
from functools import lru_cache
from http import HTTPStatus

import xxhash
from falcon import Request, Response

from app.address import base_address
from app.conditional import Validators, not_modified
from app.library import Library
from app.lookup import Lookup, check_id
from app.media import HARMLESS, freshness, picture_of, validators_of
from app.options import Options
from imaging.info import document
from imaging.size import Bounds

LD_JSON = "application/ld+json"
CONTEXT = (
    "Link",
    '<http://iiif.io/api/image/2/context.json>; rel="http://www.w3.org/ns/json-ld#context"; type="application/ld+json"',
)


@lru_cache(maxsize=1024)
def written(address: str, picture: tuple[int, int], most: Bounds) -> tuple[bytes, str]:
    """The document, and a tag for it."""
    data = json.dumps(document(address, *picture, most)).encode()
    return data, xxhash.xxh3_128_hexdigest(data)


class Info:
    def __init__(self, library: Library, lookup: Lookup, options: Options) -> None:
        self._limits, self._lookup = library.limits, lookup
        self._base_url, self._max_age = options.base_url, options.max_age

    def on_get(self, req: Request, resp: Response, reference_id: str) -> None:
        original = self._lookup.image(reference_id)
        address = f"{base_address(req, self._base_url)}/binary/{check_id(reference_id)}"
        picture = picture_of(original)
        data, tag = written(address, picture, self._limits.bounds(*picture))
        validators = Validators(tag, validators_of(original).modified)
        resp.set_headers(freshness(validators, self._max_age))
        resp.set_header("Vary", "Accept")
        if not_modified(req, validators):
            resp.status = HTTPStatus.NOT_MODIFIED
            return
        resp.set_headers(HARMLESS)
        resp.content_type = "application/json"
        if LD_JSON in req.accept:
            resp.content_type = LD_JSON
        else:
            resp.append_header(*CONTEXT)
        resp.data = data

    on_head = on_get
