"""``/iiif/presentation/3/{context}/manifest``: the images of a context as one thing to open in a viewer.

It is read in bounded parts: what goes beyond ``[delivery] canvases`` is in further manifests, which ``Link`` leads to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from http import HTTPStatus
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote, urlencode

import xxhash
from falcon import Request, Response

from app.access import Access
from app.address import base_address
from app.conditional import is_held
from app.grants import Grants
from app.identifier import Identifier
from app.images import Images
from app.library import Library
from app.lookup import known_context
from app.media import HARMLESS
from app.options import Options
from app.problems import NO_STORE, Problem, bad_field
from imaging.info import level_of
from imaging.size import Max, Within
from ingest.records import REFERENCE_ID, Original, Reference

if TYPE_CHECKING:
    from app.manifest import Leaf

LD_JSON: Final = "application/ld+json"
PROFILE: Final = f'{LD_JSON};profile="http://iiif.io/api/presentation/3/context.json"'
THUMBNAIL: Final = (440, 330)  # one of the boxes that are made at ingest
BATCH: Final = 500  # references read at once
SPARSE: Final = 10  # references that are looked at for each canvas, at most, where few are images
DIGITS: Final = re.compile(r"([0-9]+)")

Found = tuple[Reference, Original]


class Manifest:
    def __init__(self, library: Library, images: Images, grants: Grants, access: Access, options: Options) -> None:
        self._references, self._images, self._grants, self._access = library.references, images, grants, access
        self._canvases, self._base_url, self._rights = options.canvases, options.base_url, options.rights
        self._private = not (options.open_lists or options.open_manifests)

    def on_get(self, req: Request, resp: Response, context: str) -> None:
        self._access.check_manifest(req)
        known_context(context)
        after = _cursor(req)
        if find_spec("iiif_prezi3") is None:
            raise Problem(HTTPStatus.NOT_IMPLEMENTED, "Manifests need an extra: pip install 'magazin[images]'")
        found, last = self._part(context, after)
        query, more = _query(after), _query(last)
        if last is not None:
            resp.append_header("Link", f'<{quote(req.path)}{more}>; rel="next"')
        leaves = tuple(leaf for pair in found for leaf in self._leaves(*pair))[: self._canvases]
        if not leaves:
            raise Problem(HTTPStatus.NOT_FOUND, "No image of this context is here.", headers=NO_STORE)
        data, tag = _written(base_address(req, self._base_url), context, query, leaves, more)
        resp.set_headers(
            [
                ("ETag", f'"{tag}"'),
                ("Cache-Control", "private, no-cache" if self._private else "public, no-cache"),
                ("Vary", "Accept"),
            ]
        )
        if is_held(req, tag):
            resp.status = HTTPStatus.NOT_MODIFIED
            return
        resp.set_headers(HARMLESS)
        plain = "application/json" in req.accept and LD_JSON not in req.accept
        resp.content_type = "application/json" if plain else PROFILE
        resp.data = data

    on_head = on_get

    def _part(self, context: str, after: str | None) -> tuple[list[Found], str | None]:
        """Images for one manifest, and the id of the last reference looked at, if there are more."""
        found: list[Found] = []
        canvases = seen = 0
        for reference, original in self._all(context, after):
            pages = (original.pages or 1) if original.is_image else 0
            if seen == self._canvases * SPARSE or (found and pages and canvases + pages > self._canvases):
                return _in_order(found), after
            if pages:
                found.append((reference, original))
            canvases, seen, after = canvases + pages, seen + 1, reference.reference_id
        return _in_order(found), None

    def _all(self, context: str, after: str | None) -> Iterator[Found]:
        while batch := self._references.page(context, after=after, limit=BATCH):
            yield from batch
            after = batch[-1][0].reference_id

    def _leaves(self, reference: Reference, original: Original) -> Iterator[Leaf]:
        from app.manifest import Leaf

        name = original.filename or reference.reference_id
        grant = self._grants.of(Identifier(reference.reference_id), reference)
        pages = min(original.pages or 1, self._canvases)
        for page, size in enumerate(self._images.page_sizes(original, pages), 1):
            if size is None:
                continue
            most = grant.bounds(self._images.bounds(size), size, size)
            yield Leaf(
                Identifier(reference.reference_id, page).text,
                name if pages == 1 else f"{name}, {page}",
                size,
                Max().fit(*size, most),
                Within(*THUMBNAIL).fit(*size, most),
                original.rights or self._rights or None,
                level_of(grant.finest(size)),
            )


def _cursor(req: Request) -> str | None:
    after = req.params.get("after")
    if after is not None and not (isinstance(after, str) and REFERENCE_ID.fullmatch(after)):
        raise bad_field("after", "expected what a link of rel=next had")
    return after


def _query(after: str | None) -> str:
    return "" if after is None else f"?{urlencode({'after': after})}"


def _in_order(found: list[Found]) -> list[Found]:
    """By the addresses they came from, with numbers as numbers: the pages of a book come in their order."""
    return sorted(found, key=lambda pair: (_reading(pair[0].url), pair[0].reference_id))


def _reading(address: str) -> list[tuple[str, int, str]]:
    """Text and number by turns, each number by its length first: no int is made of what a client sent."""
    parts = DIGITS.split(unquote(address))
    numbers = [number.lstrip("0") for number in parts[1::2]] + [""]
    return [(text.casefold(), len(number), number) for text, number in zip(parts[::2], numbers, strict=True)]


@lru_cache(maxsize=4)
def _written(base: str, context: str, query: str, leaves: tuple[Leaf, ...], more: str) -> tuple[bytes, str]:
    """The document, and a tag for it. The last ones are kept: a thousand canvases take most of a second to check."""
    from app.manifest import written

    data = written(base, context, query, leaves, more)
    return data, xxhash.xxh3_128_hexdigest(data)
