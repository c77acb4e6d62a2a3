"""The interface as an OpenAPI 3.1 document, kept by hand; a test compares it with the routes."""

from __future__ import annotations

import json
from typing import Any, Final

from falcon import Request, Response

Json = dict[str, Any]


def _parameter(name: str, place: str, text: str, **schema: Any) -> Json:
    return {"name": name, "in": place, "required": place == "path", "description": text, "schema": schema}


def _operation(summary: str, answers: dict[int, str], parameters: list[Json] | None = None, **more: Any) -> Json:
    responses = {str(status): {"description": text} for status, text in answers.items()}
    problem = {"description": "A problem document.", "content": {"application/problem+json": {"schema": PROBLEM}}}
    return {
        "summary": summary,
        "parameters": parameters or [],
        "responses": responses | {"default": problem},
    } | more


def _listed(operation: Json) -> Json:
    return operation | {"security": [{"token": []}, {}]}


def _written(operation: Json) -> Json:
    return operation | {"security": [{"token": []}]}


PROBLEM: Final[Json] = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "request_id"],
    "properties": {
        "type": {"const": "about:blank"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "request_id": {"type": "string"},
        "field": {"type": "string", "description": "What in the request is wrong."},
        "original_status": {"enum": ["PROCESSING", "OK", "ERROR", "RETRY"]},
        "outcome": {"type": "string"},
    },
}
ENTRY: Final[Json] = {
    "type": "object",
    "required": ["reference_id", "original_id", "url", "status"],
    "properties": {
        "reference_id": {"type": "string"},
        "original_id": {"type": "string"},
        "context": {"type": "string"},
        "url": {"type": "string"},
        "status": {"enum": ["PROCESSING", "OK", "ERROR", "RETRY"]},
        "outcome": {"type": "string"},
        "error": {"type": "string"},
    },
}
SUBMISSION: Final[Json] = {
    "type": "object",
    "required": ["url", "context"],
    "additionalProperties": False,
    "properties": {
        "url": {"type": "string", "description": "Absolute, http or https, without user information."},
        "context": {"type": "string", "pattern": "^[A-Za-z0-9._:~-]{1,255}$"},
        "mime": {"type": "string", "description": "A hint, for sources that don't say."},
    },
}

FILE: Final[Json] = {
    "type": "object",
    "required": ["id", "filename", "length", "chunkSizeBytes", "sha256", "status"],
    "properties": {
        "id": {"type": "string"},
        "filename": {"type": "string"},
        "length": {"type": ["integer", "null"]},
        "chunkSizeBytes": {"type": "integer"},
        "sha256": {"type": ["string", "null"], "pattern": "^[0-9a-f]{64}$"},
        "status": {"enum": ["Incomplete", "Complete", "Deleted"]},
        "startedAt": {"type": "string", "format": "date-time"},
        "finishedAt": {"type": ["string", "null"], "format": "date-time"},
        "deletedAt": {"type": ["string", "null"], "format": "date-time"},
        "metadata": {"description": "Any JSON value."},
    },
}

CONTEXT: Final = _parameter("context", "path", "A batch label.", type="string", pattern="^[A-Za-z0-9._:~-]{1,255}$")
REFERENCE: Final = _parameter("reference_id", "path", "From PUT.", type="string", pattern="^[A-Za-z0-9-]{1,64}$")
NAME: Final = REFERENCE | {"description": "From PUT; a dot and an extension may follow.", "schema": {"type": "string"}}
PAGING: Final = [
    _parameter("limit", "query", "Items a page.", type="integer", minimum=1, maximum=1000, default=100),
    _parameter("after", "query", "From the link of the page before.", type="string"),
]
SCALED: Final = [
    REFERENCE,
    _parameter("region", "path", "Only whole images are offered.", const="full"),
    _parameter("size", "path", "max, full, w, or ,h or w,h or !w,h or pct:n, never enlarged.", type="string"),
]
ROTATION: Final = [
    _parameter("rotation", "path", "None is offered.", const="0"),
    _parameter("file", "path", "Only JPEG is offered.", const="default.jpg"),
]

IDENTIFIER: Final = _parameter("identifier", "path", "A reference's id; ;page= and a number may follow.", type="string")
IIIF: Final = [
    IDENTIFIER,
    _parameter("region", "path", "full, square, x,y,w,h or pct:x,y,w,h.", type="string"),
    _parameter(
        "size", "path", "max, w, or ,h or w,h or !w,h or pct:n; in 3 with ^ to enlarge; in 2 full.", type="string"
    ),
    _parameter("rotation", "path", "Degrees clockwise, mirrored before with !.", type="string"),
    _parameter("file", "path", "default, color, gray or bitonal, a dot and a format.", type="string"),
    _parameter("download", "query", "Given, the image is an attachment.", type="string"),
]

_IMAGE = _operation("A scaled image, always JPEG", {200: "The image.", 304: "Unchanged.", 503: "Not here yet."}, SCALED)
_TURNED = _IMAGE | {"parameters": [*SCALED, *ROTATION]}
_ORIGINAL = _operation(
    "The bytes of an original",
    {200: "All of them.", 206: "A range.", 304: "Unchanged.", 416: "Beyond the end.", 503: "Not here yet."},
    [NAME, _parameter("Range", "header", "One range of bytes.", type="string")],
)
_PUT = _operation(
    "Attach a reference to a URL; fetched in the background",
    {200: "The original is here.", 202: "It is queued.", 422: "The URL can't or may not be fetched."},
    [
        _parameter("Prefer", "header", "wait=N: answer when the first try is over, or after N seconds.", type="string"),
        *(_parameter(name, "query", "Instead of a body.", type="string") for name in SUBMISSION["properties"]),
    ],
    requestBody={
        "content": {kind: {"schema": SUBMISSION} for kind in ("application/json", "application/x-www-form-urlencoded")}
    },
)

BUCKET: Final = _parameter("bucket", "path", "Made by `magazin files init`.", type="string")
FILENAME: Final = _parameter("filename", "path", "May have slashes.", type="string")
FILE_ID: Final = _parameter("file_id", "path", "From PUT.", type="string", pattern="^[A-Za-z0-9-]{1,64}$")
REVISION: Final = _parameter(
    "revision", "query", "0 the oldest, 1 the next; -1 the newest, -2 the one before.", type="integer", default=-1
)
HARD: Final = _parameter("hard", "query", "Remove it for ever, not only from sight.", type="boolean", default=False)
CHANGE: Final[Json] = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": False,
    "properties": {"filename": {"type": "string"}, "metadata": {"description": "Any JSON value."}},
}


def _file(operation: Json) -> Json:
    """With a file's record in its answers."""
    for status in ("200", "201"):
        if status in operation["responses"]:
            operation["responses"][status]["content"] = {"application/json": {"schema": FILE}}
    return operation


def _read_file(*parameters: Json) -> Json:
    answers = {200: "All of it.", 206: "A range.", 304: "Unchanged.", 416: "Beyond the end."}
    ranged = _parameter("Range", "header", "One range of bytes.", type="string")
    return _operation("The bytes of a file", answers, [BUCKET, *parameters, ranged])


def _change_file(*parameters: Json) -> Json:
    body = {"content": {"application/json": {"schema": CHANGE}}}
    answers = {200: "The file's record."}
    changed = _operation("Rename, or replace the metadata", answers, [BUCKET, *parameters], requestBody=body)
    return _written(_file(changed))


_PUT_FILE = _written(
    _file(
        _operation(
            "Store the body as a new revision of a name",
            {201: "The file's record.", 412: "A precondition fails."},
            [
                BUCKET,
                FILENAME,
                _parameter("metadata", "query", "Any JSON value.", type="string"),
                _parameter("If-None-Match", "header", "*: only if the name has no revision yet.", type="string"),
                _parameter("Content-Digest", "header", "Verified (RFC 9530; also Repr-Digest, Digest).", type="string"),
            ],
            requestBody={"content": {"*/*": {}}},
        )
    )
)
FILE_PATHS: Final[dict[str, Json]] = {
    "/files/{bucket}": {
        "get": _listed(
            _operation(
                "The files of a bucket, by name, newest first within a name",
                {200: "A page."},
                [
                    BUCKET,
                    _parameter("prefix", "query", "How the names begin.", type="string"),
                    _parameter("pattern", "query", "What the names contain: RE2. A full scan.", type="string"),
                    _parameter("filename", "query", "The revisions of one name.", type="string"),
                    *PAGING,
                ],
            )
        )
    },
    "/files/{bucket}/{filename}": {
        "get": _read_file(FILENAME, REVISION),
        "put": _PUT_FILE,
        "post": _PUT_FILE,
        "patch": _change_file(FILENAME, REVISION),
        "delete": _written(
            _operation(
                "Delete one revision, or without one named all", {204: "Done."}, [BUCKET, FILENAME, REVISION, HARD]
            )
        ),
    },
    "/files/{bucket}/id/{file_id}": {
        "get": _read_file(FILE_ID),
        "patch": _change_file(FILE_ID),
        "delete": _written(_operation("Delete a file", {204: "Done."}, [BUCKET, FILE_ID, HARD])),
    },
    "/files/{bucket}/id/{file_id}/record": {
        "get": _listed(_file(_operation("What is known of a file", {200: "The record."}, [BUCKET, FILE_ID])))
    },
}

PATHS: Final[dict[str, Json]] = {
    "/": {"get": _operation("What this is, and a gallery", {200: "HTML."})},
    "/binaries": {"put": _written(_PUT)},
    "/binaries/{context}": {
        "get": _listed(_operation("The references of a context", {200: "A page."}, [CONTEXT, *PAGING]))
    },
    "/binaries/context/{context}": {
        "delete": _written(_operation("Take a context down", {204: "Done, or nothing was there."}, [CONTEXT]))
    },
    "/binaries/reference/{reference_id}": {
        "delete": _written(_operation("Take a reference down", {204: "Done, or nothing was there."}, [REFERENCE]))
    },
    "/binary/{reference_id}": {"get": _ORIGINAL},
    "/binary/{reference_id}/info.json": {
        "get": _operation("IIIF Image API 2.1 information", {200: "JSON.", 304: "Unchanged."}, [REFERENCE])
    },
    "/binary/{reference_id}/{region}/{size}/default.jpg": {"get": _IMAGE},
    "/binary/{reference_id}/{region}/{size}/{rotation}/{file}": {"get": _TURNED},
    **{
        path: operation
        for version in (2, 3)
        for path, operation in {
            f"/iiif/{version}/{{identifier}}": {
                "get": _operation("Leads to info.json", {303: "See there."}, [IDENTIFIER])
            },
            f"/iiif/{version}/{{identifier}}/info.json": {
                "get": _operation(
                    f"IIIF Image API {version} information", {200: "JSON.", 304: "Unchanged."}, [IDENTIFIER]
                )
            },
            f"/iiif/{version}/{{identifier}}/{{region}}/{{size}}/{{rotation}}/{{file}}": {
                "get": _operation(
                    f"An image (IIIF Image API {version})",
                    {200: "The image.", 304: "Unchanged.", 503: "Not here yet."},
                    IIIF,
                )
            },
        }.items()
    },
    "/iiif/presentation/3/{context}/manifest": {
        "get": _listed(
            _operation(
                "A context's images as a IIIF manifest (Presentation API 3.0)",
                {200: "JSON-LD.", 304: "Unchanged.", 404: "None of its images is here.", 501: "Needs an extra."},
                [CONTEXT, _parameter("after", "query", "From the link of the part before.", type="string")],
            )
        )
    },
    "/view/{identifier}": {
        "get": _operation("A page to look at an image", {200: "HTML.", 304: "Unchanged."}, [IDENTIFIER])
    },
    "/viewer/{file}": {
        "get": _operation(
            "A script or style of that page",
            {200: "The file.", 304: "Unchanged."},
            [_parameter("file", "path", "As the page names it.", type="string")],
        )
    },
    "/binary/logs/{context}": {
        "get": _listed(_operation("What happened to a context's references", {200: "A page."}, [CONTEXT, *PAGING]))
    },
    **FILE_PATHS,
    "/health/live": {"get": _operation("This process answers", {200: "It does."})},
    "/health/ready": {"get": _operation("The store answers", {200: "It does.", 503: "It doesn't."})},
    "/metrics": {"get": _listed(_operation("Counts for Prometheus", {200: "Text."}))},
    "/openapi.json": {"get": _operation("This document", {200: "JSON."})},
}
for _operations in PATHS.values():
    if "get" in _operations:
        _operations["head"] = _operations["get"]

DOCUMENT: Final[Json] = {
    "openapi": "3.1.0",
    "info": {"title": "Magazin", "version": "1", "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"}},
    "paths": PATHS,
    "components": {
        "schemas": {"Problem": PROBLEM, "Entry": ENTRY, "File": FILE, "Submission": SUBMISSION},
        "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
    },
}


class OpenApi:
    """``/openapi.json``."""

    def __init__(self) -> None:
        self._data = json.dumps(DOCUMENT).encode()

    def on_get(self, req: Request, resp: Response) -> None:
        resp.content_type = "application/json"
        resp.set_header("Cache-Control", "public, max-age=3600")
        resp.data = self._data

    on_head = on_get
