"""A request's body becomes a file: streamed, counted and compared with what was said of it before anything is kept."""

from __future__ import annotations

import json
import re
from http import HTTPStatus
from typing import Any, Final

from falcon import Request

from app.body import pieces
from app.conditional import not_modified
from app.digests import Digests
from app.filemedia import type_of_name, validators_of
from app.media import media_type
from app.problems import Problem, bad_field
from storage.bucket import Bucket
from storage.bucket_errors import FileExists, NoFile
from storage.bucket_record import FileRecord

UNTOLD: Final = re.compile(r"application/(octet-stream|x-www-form-urlencoded)?|")
"""Types that clients send when nobody told them one."""


def store(req: Request, bucket: Bucket, filename: str) -> FileRecord:
    """The file that the body was made into. Raises a Problem, or what the bucket raises; then nothing is kept."""
    only_first = req.get_header("If-None-Match", default="").strip() == "*"
    check_preconditions(req, newest(bucket, filename))
    _check_content(req)
    digests = Digests.of(req)
    metadata = _metadata(req, filename)
    try:
        stream = bucket.open_upload_stream(filename, metadata=metadata)
    except ValueError as error:
        field, _, detail = str(error).partition(": ")
        raise bad_field(field, detail) from None
    with stream:
        for piece in pieces(req):
            stream.write(piece)
            digests.update(piece)
        digests.check(stream.sha256)
        if only_first:
            try:
                stream.commit_first()
            except FileExists as error:
                raise _exists(str(error)) from None
    return stream.record


def newest(bucket: Bucket, filename: str) -> FileRecord | None:
    try:
        return bucket.get_by_name(filename)
    except NoFile:
        return None


def check_preconditions(req: Request, record: FileRecord | None) -> None:
    """412 when a change insists on another state than the present one (RFC 9110, 13.1)."""
    if record is None:
        if "HTTP_IF_MATCH" in req.env:
            raise Problem(HTTPStatus.PRECONDITION_FAILED, "If-Match: there is no such file.", field="If-Match")
    elif not_modified(req, validators_of(record)) and "HTTP_IF_NONE_MATCH" in req.env:
        raise _exists("the file is there")


def _exists(detail: str) -> Problem:
    return Problem(HTTPStatus.PRECONDITION_FAILED, f"If-None-Match: {detail}.", field="If-None-Match")


def _check_content(req: Request) -> None:
    if req.get_header("Content-Range") is not None:
        raise bad_field("Content-Range", "a part of a file can't be put (RFC 9110, 14.5)")
    if req.get_header("Content-Encoding", default="identity").lower() != "identity":
        detail = "Content-Encoding: files are stored as they are; send them without one."
        raise Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, detail, field="Content-Encoding")
    if (req.content_type or "").lower().startswith("multipart/"):
        detail = "Content-Type: send the file itself as the body, as `curl -T FILE` does, not a form."
        raise Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, detail, field="Content-Type")
    coding = req.get_header("Transfer-Encoding", default="").strip().lower()
    if coding not in ("", "chunked"):
        detail = "Transfer-Encoding: only chunked is undone here (RFC 9112, 6.1)."
        raise Problem(HTTPStatus.NOT_IMPLEMENTED, detail, field="Transfer-Encoding")
    chunked = req.env.get("wsgi.input_terminated") and coding
    if req.content_length is None and not chunked:
        raise Problem(HTTPStatus.LENGTH_REQUIRED, "Send Content-Length, 0 for an empty file, or a chunked body.")


def _metadata(req: Request, filename: str) -> Any:
    """What ``?metadata=`` says. A type that was sent and that the name doesn't tell is kept in it as contentType."""
    text = req.params.get("metadata", "null")
    if isinstance(text, list):
        raise bad_field("metadata", "there more than once")
    try:
        metadata = json.loads(text)
    except (ValueError, RecursionError):
        raise bad_field("metadata", "not JSON") from None
    sent = (req.content_type or "").partition(";")[0].strip().lower()
    told = not UNTOLD.fullmatch(sent) and media_type(sent) != type_of_name(filename)
    if told and (metadata is None or isinstance(metadata, dict)):
        return {"contentType": media_type(sent)} | (metadata or {})
    return metadata
