"""Ways to send the bytes of an original: verified part by part, or unverified by the kernel or by the proxy."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import BinaryIO, Protocol
from urllib.parse import quote

from falcon import Request, Response

from app.metrics import Metrics
from app.stream import Stream
from storage.blobs import Blob, BlobStore

log = logging.getLogger("magazin.http")


class Sending(Protocol):
    def send(self, req: Request, resp: Response, blob: Blob, start: int, stop: int) -> None:
        """Answer with the bytes [start, stop). Raises the errors of the blob store, and then nothing was set."""


class Verified:
    """Every part is checked before it is sent."""

    def __init__(self, blobs: BlobStore, metrics: Metrics) -> None:
        self._blobs, self._metrics = blobs, metrics

    def send(self, req: Request, resp: Response, blob: Blob, start: int, stop: int) -> None:
        stream(req, resp, self._blobs.parts(blob, start, stop), stop - start, self._metrics)


def stream(req: Request, resp: Response, parts: Iterator[bytes], length: int, metrics: Metrics) -> None:
    """Answer with these parts, ``length`` bytes in all. What the first one raises is raised, and nothing was set."""
    request_id = req.context.request_id

    def ended(how: str, error: Exception | None) -> None:
        metrics.stream_ended(how)
        if error is not None:
            log.error("request %s cut: %s: %s", request_id, type(error).__name__, error)

    try:
        resp.stream = Stream(parts, length, ended)
    except Exception:
        metrics.stream_ended("failed")
        raise
    resp.content_length = length


class ByKernel:
    """Plain files go out by sendfile (gunicorn's file wrapper), unverified; whatever isn't one goes out verified."""

    def __init__(self, blobs: BlobStore, verified: Sending) -> None:
        self._blobs, self._verified = blobs, verified

    def send(self, req: Request, resp: Response, blob: Blob, start: int, stop: int) -> None:
        file = self._file(blob) if "wsgi.file_wrapper" in req.env else None
        if file is None:
            self._verified.send(req, resp, blob, start, stop)
            return
        file.seek(start)
        resp.stream = file
        resp.content_length = stop - start  # which is where gunicorn stops

    def _file(self, blob: Blob) -> BinaryIO | None:
        """The plain file, opened, if it has at least the length that it should have."""
        path = self._blobs.path(blob)
        try:
            file = path.open("rb") if path is not None else None
        except OSError:
            return None
        if file is not None and os.fstat(file.fileno()).st_size != blob.size:
            file.close()
            return None
        return file


class ByProxy:
    """nginx sends the plain file that X-Accel-Redirect names, unverified. Ranges are sent from here, verified: nginx
    would answer them under validators of its own."""

    def __init__(self, blobs: BlobStore, verified: Sending, location: str, folder: Path) -> None:
        self._blobs, self._verified = blobs, verified
        self._location, self._folder = location, folder

    def send(self, req: Request, resp: Response, blob: Blob, start: int, stop: int) -> None:
        path = self._blobs.path(blob)
        if path is None or resp.status_code != HTTPStatus.OK:
            self._verified.send(req, resp, blob, start, stop)
            return
        inside = path.relative_to(self._folder).as_posix()
        resp.set_header("X-Accel-Redirect", quote(self._location + inside))
        resp.data = b""
