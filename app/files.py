"""The files of buckets over HTTP: put, read, list, rename, delete. Delivery is open, the rest as for /binaries."""

from __future__ import annotations

import base64
import json
import re
from http import HTTPStatus
from typing import Any, Final, NoReturn
from urllib.parse import quote

from falcon import Request, Response

from app import sending, upload
from app.access import Access
from app.body import whole
from app.conditional import not_modified, range_applies
from app.filemedia import freshness, headers_of, validators_of
from app.library import Library
from app.metrics import Metrics
from app.options import Options
from app.paging import Page
from app.problems import LATER, NO_STORE, App, Problem, bad_field, log
from app.ranges import wanted
from storage.bucket import Bucket
from storage.bucket_errors import CorruptFile, FileExists, FileNotReady, FileStoreError, NoBucket, NoFile, NoRevision
from storage.bucket_record import FileRecord, check_filename, check_id, check_metadata
from storage.bucket_states import check_complete
from storage.buckets import Buckets

REVISION: Final = re.compile(r"-?[0-9]{1,9}")
CURSOR: Final = re.compile(r"[A-Za-z0-9_-]{1,8000}={0,2}")
LONGEST: Final = 128 * 1024  # bytes of a change's JSON
FLAGS: Final = {"true": True, "false": False}


def add_routes(app: App, library: Library, access: Access, metrics: Metrics, options: Options) -> None:
    delivery = Delivery(metrics)
    by_id = FileById(library.buckets, access, delivery, options.max_age)
    app.add_route("/files/{bucket}", Files(library.buckets, access))
    app.add_route("/files/{bucket}/{filename:path}", FileByName(library.buckets, access, delivery))
    app.add_route("/files/{bucket}/id/{file_id}", by_id)
    app.add_route("/files/{bucket}/id/{file_id}/record", Record(library.buckets, access))
    app.add_error_handler(FileStoreError, _of_a_bucket)


class Delivery:
    """Sends a file, or the part of it that is wanted, verified chunk by chunk."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def send(self, req: Request, resp: Response, bucket: Bucket, record: FileRecord, max_age: int | None) -> None:
        """``max_age``: seconds for which caches may keep it; None: none without asking."""
        validators = validators_of(record)
        if not_modified(req, validators):
            resp.status = HTTPStatus.NOT_MODIFIED
            resp.set_headers(freshness(record, max_age))
            return
        size, span = record.blob.size, None
        if req.method == "HEAD":
            resp.content_length = size
        else:
            header = req.env.get("HTTP_RANGE")
            span = wanted(header, size) if header and range_applies(req, validators) else None
            start, stop = span or (0, size)
            sending.stream(req, resp, bucket.pieces(record, start, stop), stop - start, self._metrics)
        resp.set_headers(headers_of(record, max_age))
        if span is not None:
            resp.status = HTTPStatus.PARTIAL_CONTENT
            resp.set_header("Content-Range", f"bytes {span[0]}-{span[1] - 1}/{size}")


class Files:
    """``/files/{bucket}``: GET lists files, by name, newest first within a name."""

    def __init__(self, buckets: Buckets, access: Access) -> None:
        self._buckets, self._access = buckets, access

    def on_get(self, req: Request, resp: Response, bucket: str) -> None:
        self._access.check_list(req)
        conditions = {name: _text(req, name) for name in ("prefix", "pattern", "filename") if name in req.params}
        page = Page.of(req, CURSOR)
        try:
            found = self._buckets.open(bucket).page(
                filename=conditions.get("filename"),
                prefix=conditions.get("prefix", ""),
                pattern=conditions.get("pattern"),
                after=None if page.after is None else _place(page.after),
                limit=page.limit,
            )
        except ValueError as error:
            raise _named(error) from None
        if found.after is not None:
            page.link_next(req, resp, _cursor(found.after), **conditions)
        _answer(resp, [record.shown() for record in found.files])

    on_head = on_get


class FileByName:
    """``/files/{bucket}/{filename}``: PUT and POST make a revision, GET gives one, by default the newest. PATCH renames
    all of them, and changes the metadata of one; DELETE takes one if it is named, else all."""

    def __init__(self, buckets: Buckets, access: Access, delivery: Delivery) -> None:
        self._buckets, self._access, self._delivery = buckets, access, delivery

    def on_get(self, req: Request, resp: Response, bucket: str, filename: str) -> None:
        files = self._buckets.open(bucket)
        record = files.get_by_name(_filename(filename), _revision(req))
        resp.set_header("Content-Location", _location(bucket, record))
        self._delivery.send(req, resp, files, record, None)

    on_head = on_get

    def on_put(self, req: Request, resp: Response, bucket: str, filename: str) -> None:
        self._access.check_write(req)
        record = upload.store(req, self._buckets.open(bucket), _filename(filename))
        resp.status = HTTPStatus.CREATED
        resp.set_header("Location", _location(bucket, record))
        _answer(resp, record.shown())

    on_post = on_put

    def on_patch(self, req: Request, resp: Response, bucket: str, filename: str) -> None:
        self._access.check_write(req)
        files, name = self._buckets.open(bucket), _filename(filename)
        record = files.get_by_name(name, _revision(req))
        upload.check_preconditions(req, record)
        change = _change(req)
        if "filename" in change and "revision" not in req.params:
            files.rename_by_name(name, change.pop("filename"))
        _answer(resp, _apply(files, record.id, change).shown())

    def on_delete(self, req: Request, resp: Response, bucket: str, filename: str) -> None:
        self._access.check_write(req)
        files, name, hard = self._buckets.open(bucket), _filename(filename), _flag(req, "hard")
        if "revision" in req.params or "HTTP_IF_MATCH" in req.env:
            record = files.get_by_name(name, _revision(req))
            upload.check_preconditions(req, record)
            files.delete(record.id, hard=hard)
        else:
            files.delete_by_name(name, hard=hard)
        resp.status = HTTPStatus.NO_CONTENT


class FileById:
    """``/files/{bucket}/id/{file_id}``."""

    def __init__(self, buckets: Buckets, access: Access, delivery: Delivery, max_age: int) -> None:
        self._buckets, self._access, self._delivery, self._max_age = buckets, access, delivery, max_age

    def on_get(self, req: Request, resp: Response, bucket: str, file_id: str) -> None:
        files = self._buckets.open(bucket)
        record = files.get(_id(file_id))
        check_complete(record)
        self._delivery.send(req, resp, files, record, self._max_age)

    on_head = on_get

    def on_patch(self, req: Request, resp: Response, bucket: str, file_id: str) -> None:
        self._access.check_write(req)
        files = self._buckets.open(bucket)
        record = files.get(_id(file_id))
        upload.check_preconditions(req, record)
        _answer(resp, _apply(files, record.id, _change(req)).shown())

    def on_delete(self, req: Request, resp: Response, bucket: str, file_id: str) -> None:
        self._access.check_write(req)
        files, hard = self._buckets.open(bucket), _flag(req, "hard")
        if "HTTP_IF_MATCH" in req.env:
            upload.check_preconditions(req, files.get(_id(file_id)))
        files.delete(_id(file_id), hard=hard)
        resp.status = HTTPStatus.NO_CONTENT


class Record:
    """``/files/{bucket}/id/{file_id}/record``: what is known of a file, whatever its status."""

    def __init__(self, buckets: Buckets, access: Access) -> None:
        self._buckets, self._access = buckets, access

    def on_get(self, req: Request, resp: Response, bucket: str, file_id: str) -> None:
        self._access.check_list(req)
        _answer(resp, self._buckets.open(bucket).get(_id(file_id)).shown())

    on_head = on_get


def _apply(files: Bucket, file_id: str, change: dict[str, Any]) -> FileRecord:
    record = None
    if "filename" in change:
        record = files.rename(file_id, change["filename"])
    if "metadata" in change:
        record = files.replace_metadata(file_id, change["metadata"])
    return record or files.get(file_id)


def _change(req: Request) -> dict[str, Any]:
    """The JSON object of a PATCH: ``filename``, ``metadata``, or both, each of them one that will be taken: a change
    that is refused changes nothing."""
    if (req.content_type or "application/json").partition(";")[0].strip().lower() != "application/json":
        raise Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Send application/json.", field="Content-Type")
    try:
        change = json.loads(whole(req, LONGEST))
    except (ValueError, RecursionError):
        raise Problem(HTTPStatus.BAD_REQUEST, "The body is not JSON.") from None
    if not isinstance(change, dict) or not change or not change.keys() <= {"filename", "metadata"}:
        raise Problem(HTTPStatus.BAD_REQUEST, "Send an object with filename, metadata, or both.")
    if "filename" in change:
        if not isinstance(change["filename"], str):
            raise bad_field("filename", "expected a text")
        _filename(change["filename"])
    _checked(lambda: check_metadata(change.get("metadata")))
    return change


def _checked(act: Any) -> Any:
    try:
        return act()
    except FileStoreError:
        raise
    except ValueError as error:
        raise _named(error) from None


def _named(error: ValueError) -> Problem:
    """The bucket's own words, which begin with the field."""
    field, colon, detail = str(error).partition(": ")
    return bad_field(field, detail) if colon else Problem(HTTPStatus.BAD_REQUEST, str(error))


def _filename(name: str) -> str:
    return str(_checked(lambda: check_filename(name)))


def _id(file_id: str) -> str:
    try:
        return check_id(file_id)
    except ValueError:
        raise bad_field("file_id", "expected 1 to 64 of A-Z a-z 0-9 -") from None


def _text(req: Request, name: str) -> str:
    value = req.params[name]
    if not isinstance(value, str):
        raise bad_field(name, "given twice")
    return value


def _revision(req: Request) -> int:
    text = _text(req, "revision") if "revision" in req.params else "-1"
    if not REVISION.fullmatch(text):
        raise bad_field("revision", "expected a number: 0 the oldest, -1 the newest")
    return int(text)


def _flag(req: Request, name: str) -> bool:
    text = _text(req, name) if name in req.params else "false"
    if text not in FLAGS:
        raise bad_field(name, "expected true or false")
    return FLAGS[text]


def _location(bucket: str, record: FileRecord) -> str:
    return f"/files/{quote(bucket)}/id/{record.id}"


def _cursor(place: tuple[str, int, str]) -> str:
    return base64.urlsafe_b64encode(json.dumps(place, ensure_ascii=False).encode()).decode()


def _place(cursor: str) -> tuple[str, int, str]:
    try:
        filename, finished, file_id = json.loads(base64.urlsafe_b64decode(cursor))
        if [type(filename), type(finished), type(file_id)] != [str, int, str] or abs(finished) >= 1 << 63:
            raise ValueError
        return check_filename(filename), finished, check_id(file_id)
    except (ValueError, TypeError, RecursionError):
        raise bad_field("after", "expected what a link of rel=next had") from None


def _answer(resp: Response, shown: Any) -> None:
    resp.content_type = "application/json"
    resp.set_header("Cache-Control", "no-store")
    resp.data = json.dumps(shown, ensure_ascii=False).encode()


def _of_a_bucket(req: Request, resp: Response, error: FileStoreError, params: dict[str, Any]) -> NoReturn:
    if isinstance(error, NoBucket | NoFile | NoRevision):
        raise Problem(HTTPStatus.NOT_FOUND, f"{error}.", headers=NO_STORE)  # it may be put at any time
    if isinstance(error, FileNotReady):
        raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, f"{error}.", headers=LATER)
    if isinstance(error, FileExists):
        raise Problem(HTTPStatus.CONFLICT, f"{error}.")
    log.error("request %s: %s: %s", req.context.request_id, type(error).__name__, error)
    if isinstance(error, CorruptFile):
        detail = "The stored bytes are damaged; `magazin files check` names them."
        raise Problem(HTTPStatus.INTERNAL_SERVER_ERROR, detail)
    raise Problem(HTTPStatus.INTERNAL_SERVER_ERROR, "The store failed; the log has it under this request_id.")
