"""Files of buckets to and from the local disk. What is fetched lies under another name until it is whole and verified;
broken off, the same command goes on where it was."""

from __future__ import annotations

import fcntl
import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Final

from cli.options import Failed
from storage.bucket import Bucket
from storage.bucket_record import FileRecord

PIECE: Final = 1 << 20  # bytes

Show = Callable[[int], object]
"""Told how many bytes are done."""


def put(bucket: Bucket, source: BinaryIO, filename: str, show: Show, *, first: bool, **more: Any) -> FileRecord:
    """Store what the source has. ``first``: only if the name has no revision yet. Raises FileExists."""
    with bucket.open_upload_stream(filename, **more) as stream:
        done = 0
        while piece := source.read(PIECE):
            stream.write(piece)
            done += len(piece)
            show(done)
        if first:
            stream.commit_first()
    return stream.record


def send(bucket: Bucket, record: FileRecord, target: BinaryIO, show: Show) -> None:
    """Write a file to a stream, from its first byte."""
    done = 0
    for piece in bucket.pieces(record):
        target.write(piece)
        done += len(piece)
        show(done)
    target.flush()


def get(bucket: Bucket, record: FileRecord, target: Path, show: Show) -> int:
    """Make ``target`` the file, or replace it by it; how many bytes were there from a try before. Raises Failed."""
    partial = target.with_name(f".magazin-{record.id}.part")
    try:
        with _locked(partial) as file:
            there = _fill(bucket, record, file, show)
            if there is None:  # what was there before has changed on the disk
                there = _fill(bucket, record, file, show) or 0
            file.flush()
            os.fsync(file.fileno())
            partial.replace(target)
    except OSError as error:
        raise Failed(f"{error.filename or target}: {error.strerror}") from error
    _sync(target.parent)
    return there


def _locked(partial: Path) -> BinaryIO:
    """The partial file, opened by this command alone. Raises Failed."""
    while True:
        file = os.fdopen(os.open(partial, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666), "r+b")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if partial.exists() and partial.stat().st_ino == os.fstat(file.fileno()).st_ino:
                return file
        except BlockingIOError:
            file.close()
            raise Failed(f"{partial}: another command is fetching this file") from None
        file.close()  # another command has just ended and made it its target


def _fill(bucket: Bucket, record: FileRecord, file: BinaryIO, show: Show) -> int | None:
    """Complete a partial file; how many of its bytes were good already. None, and an empty file, when they weren't."""
    length, chunk = record.blob.size, record.chunk_size_bytes
    there = min(os.fstat(file.fileno()).st_size, length) // chunk * chunk
    file.truncate(there)
    file.seek(0)
    whole, done = hashlib.sha256(), 0
    while piece := file.read(PIECE):
        whole.update(piece)
        done += len(piece)
        show(done)
    for piece in bucket.pieces(record, done):
        whole.update(piece)
        file.write(piece)
        done += len(piece)
        show(done)
    if whole.hexdigest() == record.sha256:
        return there
    if there == 0:
        raise Failed(f"file {record.id}: what arrived doesn't match its sha256")
    file.truncate(0)
    return None


def local_name(filename: str) -> str:
    """The last part of a name, as a name on this disk. Raises Failed."""
    name = filename.rpartition("/")[2]
    if name in ("", ".", "..") or "\0" in name:
        raise Failed(f"{filename!r} can't be a name here; say where to put it")
    return name


def standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise Failed("standard input is closed")
    return sys.stdin.buffer


def standard_output() -> BinaryIO:
    if sys.stdout is None:
        raise Failed("standard output is closed")
    return sys.stdout.buffer


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
