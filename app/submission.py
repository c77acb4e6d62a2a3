"""What a PUT carries: a JSON object, a form, or the query, all three of them hostile until read."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qsl

from falcon import Request

from app.body import whole
from app.problems import Problem, bad_field

LONGEST: Final = 64 * 1024  # bytes of a body
FIELDS: Final = ("url", "context", "mime")
MIME: Final = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,80}/[A-Za-z0-9!#$&^_.+-]{1,80}")
CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True)
class Submission:
    url: str
    context: str
    mime: str | None


def read(req: Request) -> Submission:
    """Raises a Problem: 400 naming the field, 413, or 415 for a body of another type."""
    body = whole(req, LONGEST)
    kind = (req.content_type or "").partition(";")[0].strip().lower()
    if not body:
        return _checked(_form(req.query_string))
    if req.query_string:
        raise Problem(HTTPStatus.BAD_REQUEST, "Send the fields in the body or in the query, not in both.")
    if kind == "application/json":
        return _checked(_json(body))
    if kind == "application/x-www-form-urlencoded":
        return _checked(_form(_text(body)))
    raise Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Send application/json, or a form, or the fields in the query.")


def _text(body: bytes) -> str:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        raise Problem(HTTPStatus.BAD_REQUEST, "The body is not UTF-8.") from None


def _json(body: bytes) -> list[tuple[str, Any]]:
    pairs = None
    try:
        pairs = json.loads(_text(body), object_pairs_hook=_Pairs)
    except (ValueError, RecursionError) as error:
        raise Problem(HTTPStatus.BAD_REQUEST, f"The body is not JSON: {str(error)[:200]}") from None
    if not isinstance(pairs, _Pairs):
        raise Problem(HTTPStatus.BAD_REQUEST, "The body is not a JSON object.")
    return [(name, value) for name, value in pairs if value is not None or name not in FIELDS]


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with its names as they came, twice where they came twice."""


def _form(text: str) -> list[tuple[str, Any]]:
    try:
        return list(
            parse_qsl(text, keep_blank_values=True, strict_parsing=bool(text), errors="strict", max_num_fields=10)
        )
    except ValueError as error:
        raise Problem(HTTPStatus.BAD_REQUEST, f"The form can't be read: {str(error)[:200]}") from None


def _checked(pairs: list[tuple[str, Any]]) -> Submission:
    names = [name for name, _ in pairs]
    unknown = sorted({name for name in names if name not in FIELDS})
    if unknown:
        shown = ", ".join(name[:40] for name in unknown[:5])
        raise Problem(
            HTTPStatus.BAD_REQUEST, f"Unknown fields: {shown}. Known are {', '.join(FIELDS)}.", field=unknown[0][:40]
        )
    for name in FIELDS:
        if names.count(name) > 1:
            raise bad_field(name, "given twice")
    fields = {name: _clean(name, value) for name, value in pairs}
    for name in ("url", "context"):
        if not fields.get(name):
            raise bad_field(name, "missing")
    mime = fields.get("mime") or None
    if mime is not None and not MIME.fullmatch(mime):
        raise bad_field("mime", "expected type/subtype")
    return Submission(fields["url"], fields["context"], mime.lower() if mime else None)


def _clean(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise bad_field(name, "expected a text")
    text = value.strip()
    if CONTROL.search(text):
        raise bad_field(name, "has control characters")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise bad_field(name, "has half a surrogate pair") from None
    return text
