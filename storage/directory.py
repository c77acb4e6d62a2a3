"""Blobs in a folder of a local disk: the bytes in one plain file, the checksums of its parts in another beside it.

``{aa}/{bb}/{owner}.{attempt}`` holds exactly the bytes (``aa`` and ``bb`` are the owner's first characters), the same
name with ``.sums`` 17 bytes for each part: its checksum and a line feed. While it is written, the first is called
``.partial``; commit makes both durable, renames it, and makes the name durable.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Self

from storage.blobs import Blob, BlobReader, Found, check_range, checksum, verified
from storage.errors import BlobError, Damaged, ExtraPart, Full, KeyTaken, MissingPart, Unavailable, WrongChecksum
from storage.ids import Clock, system_clock
from storage.parts import PartWriter

_NAME = re.compile(r"[A-Za-z0-9-]{1,64}")
_STORED = re.compile(rf"({_NAME.pattern})\.({_NAME.pattern})(\.sums|\.partial)?")
_LINE = 17  # bytes of a checksum and its line feed


class DirectoryBlobs:
    """``clock`` tells the age of what :meth:`scan` finds; ``sync`` makes an open file or folder durable. A folder that
    is gone raises Unavailable: a disk that isn't mounted must not look like damage."""

    def __init__(
        self,
        folder: Path,
        *,
        part_size: int = 512 * 1024,
        clock: Clock = system_clock,
        sync: Callable[[int], None] = os.fsync,
    ) -> None:
        self._folder, self._part_size, self._clock, self._sync = folder, part_size, clock, sync
        with _translated():
            folder.mkdir(parents=True, exist_ok=True)

    def create(self, owner: str, attempt: str) -> PartWriter:
        place = self._place(owner, attempt)
        with _translated():
            for folder in (place.parent.parent, place.parent):
                with suppress(FileExistsError):
                    folder.mkdir()
                    _sync_folder(folder.parent, self._sync)
            return _FileWriter(place, owner, attempt, self._part_size, self._sync)

    def open(self, blob: Blob) -> BlobReader:
        return BlobReader(blob, self.parts)

    def parts(self, blob: Blob, start: int, stop: int) -> Iterator[bytes]:
        check_range(blob, start, stop)
        return self._pieces(blob, start, stop)

    def verify(self, blob: Blob) -> Iterator[Damaged]:
        whole, sound = hashlib.sha256(), True
        try:
            files = self._files(blob, 0)
        except MissingPart as damage:
            yield damage
            return
        with files:
            for part in range(blob.parts):
                try:
                    whole.update(files.read(part))
                except Damaged as damage:
                    sound = False
                    yield damage
            if files.size > blob.size:
                sound = False
                what = f"the file has {files.size} bytes instead of {blob.size}"
                yield ExtraPart(blob.owner, blob.attempt, blob.parts, what)
        if sound and whole.hexdigest() != blob.sha256:
            yield WrongChecksum(blob.owner, blob.attempt, -1, "the whole doesn't match its sha256")

    def has(self, owner: str, attempt: str) -> bool:
        place = self._place(owner, attempt)
        self._check_mounted()
        with _translated():
            return any(path.exists() for path in _files(place))

    def erase(self, owner: str, attempt: str) -> None:
        place = self._place(owner, attempt)
        self._check_mounted()
        with _translated():
            if _unlink(place):
                _sync_folder(place.parent, self._sync)

    def scan(self) -> Iterator[Found]:
        self._check_mounted()
        now = self._clock()
        with _translated():
            for folder in self._folder.glob("*/*"):
                written: dict[tuple[str, str], int] = {}
                with suppress(NotADirectoryError), os.scandir(folder) as entries:
                    for entry in entries:
                        if name := _STORED.fullmatch(entry.name):
                            with suppress(FileNotFoundError):  # erased or renamed meanwhile
                                moment = entry.stat(follow_symlinks=False).st_mtime_ns // 1000
                                key = (name[1], name[2])
                                written[key] = max(moment, written.get(key, moment))
                for (owner, attempt), moment in written.items():
                    if self._place(owner, attempt).parent == folder:
                        yield Found(owner, attempt, now - moment)

    def path(self, blob: Blob) -> Path | None:
        place = self._place(blob.owner, blob.attempt)
        with _translated(), suppress(FileNotFoundError):
            return place if place.stat().st_size == blob.size else None
        return None

    def _place(self, owner: str, attempt: str) -> Path:
        if not (_NAME.fullmatch(owner) and _NAME.fullmatch(attempt)):
            raise ValueError(f"no name for a blob: {owner!r}, {attempt!r}")
        fan = owner.ljust(4, "_").lower()
        return self._folder / fan[:2] / fan[2:4] / f"{owner}.{attempt}"

    def _check_mounted(self) -> None:
        if not self._folder.is_dir():
            raise Unavailable(f"{self._folder} is missing")

    def _pieces(self, blob: Blob, start: int, stop: int) -> Iterator[bytes]:
        if start == stop:
            return
        first = start // blob.part_size
        with self._files(blob, first) as files:
            for part in range(first, -(-stop // blob.part_size)):
                begin = part * blob.part_size
                yield files.read(part)[max(0, start - begin) : stop - begin]

    def _files(self, blob: Blob, part: int) -> _Files:
        """``part`` is the one to name when there is no file."""
        try:
            with _translated():
                return _Files(self._place(blob.owner, blob.attempt), blob)
        except _NoFile:
            self._check_mounted()
            raise MissingPart(blob.owner, blob.attempt, part, "is missing with the whole file") from None


class _NoFile(Exception):
    """There is no file of this name."""


class _Files:
    """A blob's two files, open."""

    def __init__(self, place: Path, blob: Blob) -> None:
        self._blob = blob
        try:
            self._data = FileIO(place)
        except FileNotFoundError:
            raise _NoFile from None
        self._sums: FileIO | None = None
        with suppress(FileNotFoundError):
            self._sums = FileIO(_beside(place, ".sums"))

    @property
    def size(self) -> int:
        return os.fstat(self._data.fileno()).st_size

    def read(self, part: int) -> bytes:
        """This part, verified."""
        blob, expected = self._blob, b""
        try:
            data = os.pread(self._data.fileno(), blob.length(part), part * blob.part_size)
            if self._sums is not None:
                expected = os.pread(self._sums.fileno(), _LINE - 1, part * _LINE)
        except OSError as error:
            raise Damaged(blob.owner, blob.attempt, part, f"can't be read: {error.strerror}") from error
        return verified(blob, part, data or None, expected.decode("ascii", "replace"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._data.close()
        if self._sums is not None:
            self._sums.close()


class _FileWriter(PartWriter):
    def __init__(self, place: Path, owner: str, attempt: str, part_size: int, sync: Callable[[int], None]) -> None:
        super().__init__(owner, attempt, part_size)
        self._place, self._partial, self._sync = place, _beside(place, ".partial"), sync
        self._sums = bytearray()
        try:
            self._file = FileIO(self._partial, "xb")
        except FileExistsError:
            raise KeyTaken(f"blob {owner}/{attempt} is being written, or was when its writer ended") from None
        if place.exists():  # looked for after the name was ours: nobody can put it there now
            self._file.close()
            self._partial.unlink()
            raise KeyTaken(f"blob {owner}/{attempt} exists")

    def _keep(self, part: int, data: bytes) -> None:
        self._sums += f"{checksum(self.owner, self.attempt, part, data)}\n".encode()
        with _translated():
            _write(self._file, data)

    def _publish(self) -> None:
        with _translated():
            with FileIO(_beside(self._place, ".sums"), "wb") as sums:
                _write(sums, self._sums)
                self._sync(sums.fileno())
            self._sync(self._file.fileno())
            self._file.close()
            try:
                self._partial.rename(self._place)
            except FileNotFoundError:
                raise BlobError(f"blob {self.owner}/{self.attempt} was erased while it was written") from None
            _sync_folder(self._place.parent, self._sync)

    def _discard(self) -> None:
        self._file.close()
        with _translated():
            _unlink(self._place)


def _beside(place: Path, ending: str) -> Path:
    return place.with_name(place.name + ending)


def _files(place: Path) -> tuple[Path, ...]:
    """What one blob may consist of."""
    return _beside(place, ".partial"), place, _beside(place, ".sums")


def _unlink(place: Path) -> bool:
    """Whether there was anything."""
    found = False
    for path in _files(place):
        with suppress(FileNotFoundError):
            path.unlink()
            found = True
    return found


def _write(file: FileIO, data: bytes | bytearray) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def _sync_folder(folder: Path, sync: Callable[[int], None]) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise Full(str(error)) from error
        raise Unavailable(str(error)) from error
