"""The IIIF Image API 2.1 and 3.0: ``/iiif/2/{identifier}/…`` and ``/iiif/3/{identifier}/…``."""

from __future__ import annotations

import json
from functools import lru_cache
from http import HTTPStatus
from itertools import product
from typing import Final

import xxhash
from falcon import Request, Response

from app import identifier as identifiers
from app.address import base_address
from app.conditional import Validators, not_modified
from app.disposition import disposition
from app.grants import Grant
from app.identifier import Identifier
from app.images import Images, parsed, tag_of
from app.media import HARMLESS, freshness, validators_of
from app.options import Options
from app.problems import bad_field
from imaging.info import level_of, profile_address, service
from imaging.outputs import outputs
from ingest.records import Original

LD_JSON: Final = "application/ld+json"
CONTEXTS: Final = {2: "http://iiif.io/api/image/2/context.json", 3: "http://iiif.io/api/image/3/context.json"}
JSON_LD: Final = 'rel="http://www.w3.org/ns/json-ld#context"; type="application/ld+json"'
VARY: Final = ("Vary", "Accept")


def _described(version: int, level: int, linked: bool) -> list[tuple[str, str]]:
    """Headers of the document; ``linked``: as JSON-LD, which the client asked for."""
    link = f'<{profile_address(version, level)}>;rel="profile"'
    kind = LD_JSON if version == 2 else f'{LD_JSON};profile="{CONTEXTS[3]}"'
    if not linked:
        link, kind = f"{link}, <{CONTEXTS[version]}>; {JSON_LD}", "application/json"
    return [("Content-Type", kind), ("Link", link), VARY, *HARMLESS]


DESCRIBED: Final = {case: _described(*case) for case in product(CONTEXTS, (0, 2), (False, True))}


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
        self._written = lru_cache(maxsize=1024)(self._write)

    def on_get(self, req: Request, resp: Response, identifier: str) -> None:
        name = identifiers.parse(identifier)
        original, grant = self._images.find(name)
        picture = self._images.dimensions(original, name.page)
        where = address(req, self._base_url, self._version, name)
        data, tag = self._written(where, picture, original.rights or self._rights or None, grant.public)
        validators = Validators(tag, validators_of(original).modified)
        fresh = freshness(validators, age(self._max_age, grant))
        if not_modified(req, validators):
            resp.status = HTTPStatus.NOT_MODIFIED
            resp.set_headers([*fresh, VARY])
            return
        linked = "HTTP_ACCEPT" in req.env and LD_JSON in req.accept
        resp.set_headers([*fresh, *DESCRIBED[self._version, level_of(grant.finest(picture)), linked]])
        resp.data = data

    on_head = on_get

    def _write(self, where: str, picture: tuple[int, int], rights: str | None, public: int) -> tuple[bytes, str]:
        """The document, and a tag for it."""
        grant = Grant(public)
        most = grant.bounds(self._images.bounds(picture), picture, picture)
        data = json.dumps(service(self._version, where, *picture, most, rights, grant.finest(picture))).encode()
        return data, xxhash.xxh3_128_hexdigest(data)


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
        order = self._images.order(segments, picture, grant.public)
        max_age = age(self._max_age, grant)
        validators = Validators(
            tag_of(self._images.key(original, order, name.page, grant.mark)), validators_of(original).modified
        )
        if not_modified(req, validators):
            resp.status = HTTPStatus.NOT_MODIFIED
            resp.set_headers(freshness(validators, max_age))
            return
        resp.data = self._images.data(original, order, name.page, grant.mark)
        canonical = f"{address(req, self._base_url, self._version, name)}/{order.canonical(self._version)}"
        level = level_of(grant.finest(picture))
        resp.set_headers(headers(self._version, level, canonical, output.mime, validators, max_age))
        if "download" in req.params:
            resp.set_header("Content-Disposition", disposition("attachment", filename(original, order.format)))

    on_head = on_get


@lru_cache(maxsize=4096)
def headers(
    version: int, level: int, canonical: str, mime: str, validators: Validators, max_age: int
) -> list[tuple[str, str]]:
    """All headers of an image but its length."""
    link = f'<{canonical}>;rel="canonical",<{profile_address(version, level)}>;rel="profile"'
    return [("Content-Type", mime), ("Link", link), *freshness(validators, max_age), *HARMLESS]


def address(req: Request, base_url: str, version: int, name: Identifier) -> str:
    return f"{base_address(req, base_url)}/iiif/{version}/{name.text}"


def age(max_age: int, grant: Grant) -> int:
    """Seconds for which caches may keep an answer: not beyond what was granted."""
    return max_age if grant.seconds is None else min(max_age, grant.seconds)


def filename(original: Original, suffix: str) -> str:
    name = original.filename or "image"
    stem, dot, _ = name.rpartition(".")
    return f"{stem if dot and stem else name}.{suffix}"
