"""Problem documents (RFC 9457): the one form of every error, Falcon's own and unexpected ones included.

``field`` names what in the request is wrong, ``request_id`` is that of the log line. Nothing of the server's inside
(paths, traces, queries) goes out.
"""

from __future__ import annotations

import json
import logging
from http import HTTPStatus
from typing import Any, NoReturn

import falcon
from falcon import Request, Response

from imaging import errors as imaging
from storage import errors as storage
from storage.cache import Busy

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER = "5"  # seconds
NO_STORE = {"Cache-Control": "no-store"}
LATER = {"Retry-After": RETRY_AFTER}
MUCH_LATER = {"Retry-After": "60"}
BRIEFLY = {"Cache-Control": "public, max-age=60"}
OF_A_REPRESENTATION = (
    "Accept-Ranges",
    "Content-Disposition",
    "Content-Length",
    "Content-Range",
    "ETag",
    "Last-Modified",
    "X-Accel-Redirect",
)

App = falcon.App[Request, Response]

log = logging.getLogger("magazin.http")


class Problem(falcon.HTTPError):
    """An error with its members beyond those of RFC 9457, such as ``field``."""

    def __init__(
        self, status: HTTPStatus, detail: str, *, headers: dict[str, str] | None = None, **members: Any
    ) -> None:
        super().__init__(status, description=detail, headers=headers)
        self.members = members


def bad_field(field: str, detail: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> Problem:
    return Problem(status, f"{field}: {detail}", field=field)


def not_found(detail: str, **members: Any) -> Problem:
    return Problem(HTTPStatus.NOT_FOUND, detail, **members)


def not_ready(detail: str, retry_after: int, **members: Any) -> Problem:
    return Problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, headers={"Retry-After": str(retry_after)}, **members)


def document(error: falcon.HTTPError, **members: Any) -> bytes:
    status = HTTPStatus(error.status_code)
    if isinstance(error, Problem):
        members = error.members | members
    detail = error.description or status.description or status.phrase
    whole = {"type": "about:blank", "title": status.phrase, "status": int(status), "detail": detail}
    return json.dumps(whole | members, ensure_ascii=False).encode()


def serialise(req: Request, resp: Response, error: falcon.HTTPError) -> None:
    for name in OF_A_REPRESENTATION:
        resp.delete_header(name)  # set before the error came
    resp.set_headers(BRIEFLY if error.status_code == HTTPStatus.NOT_FOUND else NO_STORE)
    resp.set_headers(error.headers or {})
    resp.stream = None
    page = getattr(req.context, "problem_page", None)  # of a resource that answers a browser
    if page is not None:
        resp.content_type = "text/html; charset=utf-8"
        resp.data = page(error)
        return
    resp.content_type = MEDIA_TYPE
    resp.data = document(error, request_id=req.context.request_id)


def register(app: App) -> None:
    """Make problem documents of whatever any responder or middleware of ``app`` raises."""
    app.set_error_serializer(serialise)
    app.add_error_handler(Exception, _unexpected)
    app.add_error_handler((storage.StoreError, storage.BlobError), _of_the_store)
    app.add_error_handler(imaging.ImageError, _of_an_image)
    app.add_error_handler(Busy, _busy)


def _unexpected(req: Request, resp: Response, error: Exception, params: dict[str, Any]) -> NoReturn:
    log.error("request %s failed", req.context.request_id, exc_info=error)
    raise Problem(HTTPStatus.INTERNAL_SERVER_ERROR, "An unexpected failure; the log has it under this request_id.")


def _of_the_store(req: Request, resp: Response, error: Exception, params: dict[str, Any]) -> NoReturn:
    log.error("request %s: %s: %s", req.context.request_id, type(error).__name__, error)
    if isinstance(error, storage.Unavailable | storage.Unknown):
        detail = "The store can't be reached or is too busy."
        raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, headers=LATER)
    if isinstance(error, storage.Full):
        raise Problem(HTTPStatus.INSUFFICIENT_STORAGE, "The store has no room left.")
    if isinstance(error, storage.Damaged):
        raise Problem(HTTPStatus.INTERNAL_SERVER_ERROR, "The stored bytes are damaged; `magazin check` names them.")
    raise Problem(HTTPStatus.INTERNAL_SERVER_ERROR, "The store failed; the log has it under this request_id.")


def _of_an_image(req: Request, resp: Response, error: Exception, params: dict[str, Any]) -> NoReturn:
    if isinstance(error, imaging.BadRequest):
        raise Problem(HTTPStatus.BAD_REQUEST, str(error), field=str(error).partition(":")[0])
    if isinstance(error, imaging.NoSuchPage):
        raise not_found(f"There is no such page: {error}.")
    if isinstance(error, imaging.NotAnImage | imaging.NotReadHere | imaging.TooLargeImage):
        raise not_found(f"There are no scaled images of this original: {error}.")
    if isinstance(error, imaging.TookTooLong):
        log.warning("request %s: an image %s", req.context.request_id, error)
        raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, f"This image {error} to be made.", headers=MUCH_LATER)
    log.error("request %s: an image that was sound at ingest: %s", req.context.request_id, error)
    raise Problem(HTTPStatus.INTERNAL_SERVER_ERROR, "The image can't be decoded.")


def _busy(req: Request, resp: Response, error: Exception, params: dict[str, Any]) -> NoReturn:
    raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, "Too many wait for this image to be made.", headers=LATER)
