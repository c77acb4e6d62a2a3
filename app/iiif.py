"""The IIIF Image API 2.1 and 3.0: ``/iiif/2/{identifier}/…`` and ``/iiif/3/{identifier}/…``."""

from __future__ import annotations

import json
from functools import lru_cache
from http import HTTPStatus
from typing import Final

import xxhash
from falcon import Request, Response

from app import identifier as identifiers
from app.address import base_address
from app.conditional import Validators, not_modified
from app.disposition import disposition
from app.grants import Grant
from app.identifier import Identifier
from app.images import Images, tag_of
from app.media import HARMLESS, freshness, validators_of
from app.options import Options
from app.problems import bad_field
from imaging import request as requests
from imaging.info import PROFILES, service
from imaging.outputs import outputs
from imaging.request import Order
from imaging.size import Bounds
from ingest.records import Original

LD_JSON: Final = "application/ld+json"
CONTEXTS: Final = {2: "http://iiif.io/api/image/2/context.json", 3: "http://iiif.io/api/image/3/context.json"}
JSON_LD: Final = 'rel="http://www.w3.org/ns/json-ld#context"; type="application/ld+json"'

Segments = tuple[int, str, str, str, str]
"""Version, region, size, rotation, quality and format."""

parsed = lru_cache(maxsize=4096)(requests.parse)


@lru_cache(maxsize=4096)
def ordered(segments: Segments, picture: tuple[int, int], most: Bounds, public: int) -> Order:
    """What a request comes to. Kept by its text: exact arithmetic takes its time, and so does a hash of fractions."""
    request = parsed(*segments)
    crop = request.region.crop(*picture)
    return request.resolve(*picture, Grant(public).bounds(most, picture, (crop.width, crop.height)))


class Base:
    """``/iiif/{version}/{identifier}``: leads to the document."""

    def __init__(self, version: int, options: Options) -> None:
        self._version, self._base_url = version, options.base_url

    def on_get(self, req: Request, resp: Response, identifier: str) -> None:
        name = identifiers.parse(identifier)
        resp.status = HTTPStatus.SEE_OTHER
        resp.set_header("Location", f"{address(req, self._base_url, self._version, name)}/info.json")

    on_head = on_get


class Info:
    """``/iiif/{version}/{identifier}/info.json``."""

    def __init__(self, version: int, images: Images, options: Options) -> None:
        self._version, self._images = version, images
        self._base_url, self._max_age, self._rights = options.base_url, options.max_age, options.rights

    def on_get(self, req: Request, resp: Response, identifier: str) -> None:
        name = identifiers.parse(identifier)
        original, grant = self._images.find(name)
        picture = self._images.dimensions(original, name.page)
        most = grant.bounds(self._images.bounds(picture), picture, picture)
        where = address(req, self._base_url, self._version, name)
        rights = original.rights or self._rights or None
        data, tag = written(self._version, where, picture, most, rights, grant.finest(picture))
        validators = Validators(tag, validators_of(original).modified)
        resp.set_headers(freshness(validators, age(self._max_age, grant)))
        resp.set_header("Vary", "Accept")
        if not_modified(req, validators):
            resp.status = HTTPStatus.NOT_MODIFIED
            return
        resp.set_headers(HARMLESS)
        resp.append_header("Link", f'<{PROFILES[self._version]}>;rel="profile"')
        if LD_JSON in req.accept:
            resp.content_type = LD_JSON if self._version == 2 else f'{LD_JSON};profile="{CONTEXTS[3]}"'
        else:
            resp.content_type = "application/json"
            resp.append_header("Link", f"<{CONTEXTS[self._version]}>; {JSON_LD}")
        resp.data = data

    on_head = on_get


class Image:
    """``/iiif/{version}/{identifier}/{region}/{size}/{rotation}/{file}``."""

    def __init__(self, version: int, images: Images, options: Options) -> None:
        self._version, self._images = version, images
        self._base_url, self._max_age = options.base_url, options.max_age

    def on_get(
        self, req: Request, resp: Response, identifier: str, region: str, size: str, rotation: str, file: str
    ) -> None:
        name = identifiers.parse(identifier)
        # what is malformed needs no look at the store
        segments = (self._version, region, size, rotation, file)
        request = parsed(*segments)
        output = outputs().get(request.format)
        if output is None:
            raise bad_field("format", f"expected one of {', '.join(outputs())}")
        original, grant = self._images.find(name)
        picture = self._images.dimensions(original, name.page)
        order = ordered(segments, picture, self._images.bounds(picture), grant.public)
        max_age = age(self._max_age, grant)
        validators = Validators(
            tag_of(self._images.key(original, order, name.page, grant.mark)), validators_of(original).modified
        )
        if not_modified(req, validators):
            resp.status = HTTPStatus.NOT_MODIFIED
            resp.set_headers(freshness(validators, max_age))
            return
        resp.data = self._images.data(original, order, name.page, grant.mark)
        resp.set_headers(freshness(validators, max_age))
        resp.set_headers(HARMLESS)
        resp.content_type = output.mime
        canonical = f"{address(req, self._base_url, self._version, name)}/{order.canonical(self._version)}"
        resp.set_header("Link", f'<{canonical}>;rel="canonical",<{PROFILES[self._version]}>;rel="profile"')
        if "download" in req.params:
            resp.set_header("Content-Disposition", disposition("attachment", filename(original, order.format)))

    on_head = on_get


def address(req: Request, base_url: str, version: int, name: Identifier) -> str:
    return f"{base_address(req, base_url)}/iiif/{version}/{name.text}"


def age(max_age: int, grant: Grant) -> int:
    """Seconds for which caches may keep an answer: not beyond what was granted."""
    return max_age if grant.seconds is None else min(max_age, grant.seconds)


def filename(original: Original, suffix: str) -> str:
    name = original.filename or "image"
    stem, dot, _ = name.rpartition(".")
    return f"{stem if dot and stem else name}.{suffix}"


@lru_cache(maxsize=1024)
def written(
    version: int, where: str, picture: tuple[int, int], most: Bounds, rights: str | None, finest: int
) -> tuple[bytes, str]:
    """The document, and a tag for it."""
    data = json.dumps(service(version, where, *picture, most, rights, finest)).encode()
    return data, xxhash.xxh3_128_hexdigest(data)
