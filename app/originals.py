"""The bytes of an original: ``/binary/{reference_id}``, also with an extension that some clients want to see."""

from __future__ import annotations

from http import HTTPStatus

from falcon import Request, Response

from app.conditional import not_modified, range_applies
from app.grants import Grants
from app.lookup import Lookup
from app.media import freshness, headers_of, validators_of
from app.problems import bad_field
from app.ranges import wanted
from app.sending import Sending
from ingest.records import Original
from storage.blobs import Blob
from storage.errors import BlobError


class Originals:
    def __init__(self, lookup: Lookup, sending: Sending, grants: Grants, max_age: int) -> None:
        self._lookup, self._sending, self._grants, self._max_age = lookup, sending, grants, max_age

    def on_get(self, req: Request, resp: Response, reference_id: str) -> None:
        original = self._find(reference_id)
        if not_modified(req, validators_of(original)):
            self._unchanged(resp, original)
            return
        blob = _blob(original)
        header = req.env.get("HTTP_RANGE")
        span = wanted(header, blob.size) if header and range_applies(req, validators_of(original)) else None
        if span is not None:
            resp.status = HTTPStatus.PARTIAL_CONTENT
        start, stop = span or (0, blob.size)
        self._sending.send(req, resp, blob, start, stop)
        resp.set_headers(headers_of(original, self._max_age))
        if span is not None:
            resp.set_header("Content-Range", f"bytes {start}-{stop - 1}/{blob.size}")

    def on_head(self, req: Request, resp: Response, reference_id: str) -> None:
        original = self._find(reference_id)
        if not_modified(req, validators_of(original)):
            self._unchanged(resp, original)
            return
        resp.set_headers(headers_of(original, self._max_age))
        resp.content_length = _blob(original).size

    def _find(self, name: str) -> Original:
        reference_id, dot, extension = name.partition(".")
        if dot and not (extension.isascii() and extension.isalnum() and len(extension) <= 10):
            raise bad_field("reference_id", "its extension isn't 1 to 10 letters and digits")
        reference, original = self._lookup.found(reference_id)
        self._grants.check_whole(reference, original)
        return original

    def _unchanged(self, resp: Response, original: Original) -> None:
        resp.status = HTTPStatus.NOT_MODIFIED
        resp.set_headers(freshness(validators_of(original), self._max_age))


def _blob(original: Original) -> Blob:
    if original.blob is None:
        raise BlobError(f"original {original.original_id} is OK and names no bytes")
    return original.blob
