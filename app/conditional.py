"""Preconditions (RFC 9110, 13), in the order that 13.2.2 gives them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import NamedTuple

import falcon
from falcon import Request

from app.problems import Problem


class Validators(NamedTuple):
    """What tells one state of a resource from another."""

    tag: str
    """The opaque tag of a strong ETag, without its quotes."""
    modified: int
    """Seconds since 1970."""

    @property
    def etag(self) -> str:
        return f'"{self.tag}"'

    @property
    def last_modified(self) -> str:
        return http_date(self.modified)


@lru_cache(maxsize=4096)
def http_date(seconds: int) -> str:
    return formatdate(seconds, usegmt=True)


def not_modified(req: Request, validators: Validators) -> bool:
    """Whether the client's copy is still right (304). Raises a 412 when what it insists on isn't so.

    If-None-Match beats If-Modified-Since, If-Match beats If-Unmodified-Since; a date that can't be read is no date.
    """
    env = req.env
    if "HTTP_IF_MATCH" in env:
        wanted = req.if_match or []
        if not any(tag == "*" or (tag == validators.tag and not _weak(tag)) for tag in wanted):
            raise Problem(HTTPStatus.PRECONDITION_FAILED, "If-Match: names another state.", field="If-Match")
    elif "HTTP_IF_UNMODIFIED_SINCE" in env:
        since = _date(lambda: req.if_unmodified_since)
        if since is not None and validators.modified > since:
            detail = "If-Unmodified-Since: modified after that."
            raise Problem(HTTPStatus.PRECONDITION_FAILED, detail, field="If-Unmodified-Since")
    if "HTTP_IF_NONE_MATCH" in env:
        return any(tag in ("*", validators.tag) for tag in req.if_none_match or [])
    if "HTTP_IF_MODIFIED_SINCE" in env:
        since = _date(lambda: req.if_modified_since)
        return since is not None and validators.modified <= since
    return False


def is_held(req: Request, tag: str) -> bool:
    """Whether the client's copy is still right, of what has an ETag and no date."""
    return "HTTP_IF_NONE_MATCH" in req.env and any(one in ("*", tag) for one in req.if_none_match or [])


def range_applies(req: Request, validators: Validators) -> bool:
    """Whether a Range may be honoured: no If-Range, or one that names this very state (RFC 9110, 13.1.5)."""
    wanted = req.env.get("HTTP_IF_RANGE")
    if wanted is None:
        return True
    if '"' in wanted:
        return bool(wanted.strip() == validators.etag)
    try:
        return bool(falcon.http_date_to_dt(wanted).replace(tzinfo=UTC).timestamp() == validators.modified)
    except ValueError:
        return False


def _weak(tag: object) -> bool:
    return isinstance(tag, falcon.ETag) and tag.is_weak


def _date(header: Callable[[], datetime | None]) -> float | None:
    try:
        moment = header()
    except falcon.HTTPInvalidHeader:
        return None
    return None if moment is None else moment.timestamp()
