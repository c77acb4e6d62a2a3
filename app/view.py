"""``/view/{identifier}``: a page on which an image and its pages are looked at, from the whole to the last pixel."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus

import falcon
import xxhash
from falcon import Request, Response

from app import identifier as identifiers
from app import viewpage
from app.conditional import is_held
from app.grants import Grant
from app.identifier import Identifier
from app.images import Images
from app.media import picture_of
from app.viewpage import Links, Shown

HEADERS = [
    ("Content-Security-Policy", viewpage.CONTENT_SECURITY_POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Vary", "Accept"),
]


class View:
    def __init__(self, images: Images, links: Links) -> None:
        self._images, self._links = images, links

    def on_get(self, req: Request, resp: Response, identifier: str) -> None:
        resp.set_headers(HEADERS)
        if "text/html" in req.accept:
            req.context.problem_page = self._problem
        data = viewpage.page(self._shown(identifiers.parse(identifier)), self._links)
        tag = xxhash.xxh3_128_hexdigest(data)
        # asked for each time: it names files of this version of Magazin
        resp.set_headers([("ETag", f'"{tag}"'), ("Cache-Control", "no-cache")])
        if is_held(req, tag):
            resp.status = HTTPStatus.NOT_MODIFIED
            return
        resp.content_type = "text/html; charset=utf-8"
        resp.data = data

    on_head = on_get

    def _shown(self, name: Identifier) -> Shown:
        """Problems: 400, 403, 404, 503."""
        original, grant = self._images.find(name)
        width, height = self._images.dimensions(original, name.page)
        everyone = replace(name, page=1, until=None, signature=None)
        if name.signature is not None:
            grant = self._images.find(everyone)[1]
        return Shown(
            identifier=name.reference_id,
            tail=replace(name, page=1).text.removeprefix(name.reference_id),
            page=name.page,
            pages=original.pages or 1,
            name=original.filename or "Image",
            width=width,
            height=height,
            size=original.size or 0,
            original=_original(name.reference_id) if _is_open(grant, picture_of(original)) else None,
        )

    def _problem(self, error: falcon.HTTPError) -> bytes:
        status = HTTPStatus(error.status_code)
        return viewpage.problem(int(status), status.phrase, error.description or status.description, self._links)


def _is_open(grant: Grant, picture: tuple[int, int]) -> bool:
    """Whether everyone may have the original, going by what everyone may have of the image."""
    return grant.mark is None and (not grant.public or max(picture) <= grant.public)


def _original(reference_id: str) -> str:
    if ":" in reference_id:
        shelf, bucket, file_id = reference_id.split(":")
        return f"../{shelf}/{bucket}/id/{file_id}"
    return f"../binary/{reference_id}"
