"""Local files as sources: read by the ingest command itself, under ``file://`` and their absolute path.

The worker never reads a local file. Changed content is a new original, to which the URL moves; what can't be taken in
leaves the present one alone.
"""

from __future__ import annotations

import hashlib
import mimetypes
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.utils import formatdate
from io import BufferedReader
from pathlib import Path
from typing import Final
from urllib.parse import unquote_to_bytes

from ingest.claims import Claim, Claims
from ingest.fetch.filename import NAMELESS, clean
from ingest.fetch.media import HEAD, named, sniffed, verdict
from ingest.fetch.outcome import Fetched, Outcome
from ingest.fetch.visit import Sink
from ingest.jobs import Jobs
from ingest.leases import LEASE
from ingest.records import Original, Reference, Status
from ingest.references import References
from storage.errors import StoreError
from storage.interface import Store
from storage.schema import ORIGINALS, URLS

BLOCK: Final = 256 * 1024
HOST: Final = "localhost"  # of file URLs (RFC 8089); no queue is ever asked for it


class NotTaken(Exception):
    """A file that could not be taken in; the message says why."""


class Stopped(NotTaken):
    """A file that was not read to its end, because of the stop; nothing is wrong with it."""


def path_of(text: str) -> Path | None:
    """The path that a line of a list means: a file URL, or a path as it is; None for any other URL."""
    if text[:7].lower() == "file://":
        rest = text[7:].removeprefix("localhost")
        return Path(os.fsdecode(unquote_to_bytes(rest))) if rest.startswith("/") else None
    return None if "://" in text else Path(text)


def files(path: Path) -> Iterator[Path]:
    """The regular files of a folder and its folders, in order of their names, or the file itself; hidden ones and
    linked folders are passed over."""
    if not path.is_dir():
        yield path
        return
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(folder, name) for name in sorted(names) if not name.startswith("."))


def leads_out(folder: Path, file: Path) -> bool:
    """Whether a file found in a folder is a link to one elsewhere. Folders are unpacked archives at times, and an
    archive may bring a link to any file of this machine, which would then be served."""
    return file.is_symlink() and not file.resolve().is_relative_to(folder.resolve())


@dataclass(frozen=True)
class Taken:
    """A file's reference and original; ``is_new``: its bytes were stored now."""

    reference: Reference
    original: Original
    is_new: bool


class LocalFiles:
    """Takes local files in. Thread-safe."""

    def __init__(self, store: Store, references: References, claims: Claims, jobs: Jobs, max_bytes: int) -> None:
        self._store, self._references, self._claims, self._jobs = store, references, claims, jobs
        self._max_bytes = max_bytes

    def put(self, context: str, path: Path, mime: str | None, stop: threading.Event) -> Taken:
        """The reference of this file, attached to an original with its present bytes. Raises NotTaken (Stopped when
        ``stop`` is set), BadContext, OSError, StoreError."""
        if stop.is_set():
            raise Stopped("stopped")
        url = path.absolute().as_uri()
        with open(path, "rb", opener=_at_once) as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise NotTaken("not a regular file")
            present = self._present(url)
            if present is not None and present.size == about.st_size and _sha256(file) == present.checksum:
                return Taken(*self._references.adopt(context, present), is_new=False)
            file.seek(0)
            claim = self._claims.begin(url, HOST, named(mime))
            with _renewing(claim):
                original = self._jobs.fill(claim, lambda sink: self._read(path, file, mime, sink, stop), stop)
        if original.status != Status.OK:
            if stop.is_set():
                raise Stopped("stopped")
            raise NotTaken(f"{original.outcome}: {original.reason}")
        return Taken(*self._references.adopt(context, original), is_new=True)

    def _present(self, url: str) -> Original | None:
        """The URL's original, while its bytes are good and it isn't going away."""
        row = self._store.get(URLS, (url,))
        found = self._store.get(ORIGINALS, (row["original_id"],)) if row else None
        if found is None or found["retired"] or found["status"] != Status.OK:
            return None
        return Original.of(found)

    def _read(self, path: Path, file: BufferedReader, mime: str | None, sink: Sink, stop: threading.Event) -> Fetched:
        before = os.fstat(file.fileno())
        if before.st_size == 0:
            return Fetched(Outcome.EMPTY, "the file is empty")
        if before.st_size > self._max_bytes:
            return Fetched(Outcome.TOO_LARGE, f"{before.st_size} bytes, above the limit of {self._max_bytes}")
        md5, sha256, size, head = hashlib.md5(usedforsecurity=False), hashlib.sha256(), 0, b""
        while block := file.read(BLOCK):
            if stop.is_set():
                return Fetched(Outcome.SYSTEM_ERROR, "it was told to stop", transient=True)
            md5.update(block)
            sha256.update(block)
            size += len(block)
            head = head or block[:HEAD]
            sink.write(block)
        after = os.fstat(file.fileno())
        if (size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            return Fetched(Outcome.TRUNCATED, "the file changed while it was read", counted=True)
        declared, received = named(mime), mimetypes.guess_type(path.name)[0]
        shown = sniffed(head)
        return Fetched(
            Outcome.ARCHIVED,
            "read",
            size=size,
            md5=md5.hexdigest(),
            sha256=sha256.hexdigest(),
            mime=verdict(declared, received, shown),
            mime_declared=declared,
            mime_received=received,
            mime_sniffed=shown,
            filename=clean(path.name) or NAMELESS,
            last_modified=formatdate(after.st_mtime, usegmt=True),
            length_declared=after.st_size,
        )


def _at_once(path: str, flags: int) -> int:
    """Opens without waiting: a pipe that nobody writes to would hold its reader for ever."""
    return os.open(path, flags | os.O_NONBLOCK)


def _sha256(file: BufferedReader) -> str:
    return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _renewing(claim: Claim) -> Iterator[None]:
    """Renew a claim while its block runs, however large the file is."""
    over = threading.Event()

    def renew() -> None:
        while not over.wait(LEASE / 3_000_000):
            with suppress(StoreError):  # the next renewal may go through
                claim.renew()

    thread = threading.Thread(target=renew, name="renew", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
