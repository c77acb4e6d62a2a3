"""Blobs: immutable byte strings under a key (owner, attempt), kept in parts with a checksum each.

A blob has no record of its own: whoever names its attempt in a compare-and-set row makes it visible, and keeps the
:class:`Blob` value there. The attempt is a new id for each try, so that two writers never share a key; a key is never
used again. Owner and attempt match ``[A-Za-z0-9-]{1,64}``; a store may refuse anything else with ValueError.

``storage/chunks.py`` keeps blobs in the tables of any plugin, ``storage/directory.py`` in a folder. Both run
``BlobContract`` of :mod:`storage.contract`.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

import xxhash

from storage.errors import Damaged, MissingPart, WrongChecksum, WrongLength

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


@dataclass(frozen=True, slots=True)
class Blob:
    """What a reader must know of a blob. Sizes are bytes; ``sha256`` is lower-case hex of all bytes."""

    owner: str
    attempt: str
    size: int
    part_size: int
    sha256: str

    @property
    def parts(self) -> int:
        """How many parts there are: every one but the last has ``part_size`` bytes, none is empty."""
        return -(-self.size // self.part_size)

    def length(self, part: int) -> int:
        """The bytes of this part."""
        return min(self.part_size, self.size - part * self.part_size)


@dataclass(frozen=True, slots=True)
class Found:
    """A key under which something is stored, whole or half. ``age`` is microseconds since the last write to it, None
    where the store doesn't know."""

    owner: str
    attempt: str
    age: int | None


class BlobWriter(Protocol):
    """Takes the bytes of one blob. Leaving its ``with`` block without :meth:`commit`, or by an exception, aborts.

    A writer that is garbage-collected commits nothing. After commit, abort or a failed write every further write or
    commit raises ValueError.
    """

    def write(self, data: bytes) -> int:
        """Append all of ``data``; its length. Raises Full, Unavailable."""

    def commit(self) -> Blob:
        """Make all parts durable. Raises Full, Unavailable."""

    def abort(self) -> None:
        """Throw away what was written. Does nothing after a commit or another abort."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class BlobStore(Protocol):
    """Where blobs are kept. Thread-safe; a writer or a reader belongs to one thread at a time."""

    def create(self, owner: str, attempt: str) -> BlobWriter:
        """Begin a blob. Raises KeyTaken when anything is stored under this key already."""

    def open(self, blob: Blob) -> BlobReader:
        """A seekable binary file object. Every part is verified before a byte of it is handed out: reads raise
        Damaged, or Unavailable."""

    def parts(self, blob: Blob, start: int, stop: int) -> Iterator[bytes]:
        """The bytes [start, stop), part by part, each verified, read ahead in bounded memory.

        Raises ValueError unless 0 <= start <= stop <= size; while iterated, Damaged or Unavailable.
        """

    def verify(self, blob: Blob) -> Iterator[Damaged]:
        """Every damage there is: of parts, and when these are sound, of the whole's sha256. For checks."""

    def has(self, owner: str, attempt: str) -> bool:
        """Whether anything is stored under this key, whole or half."""

    def erase(self, owner: str, attempt: str) -> None:
        """Remove what is stored under this key, whole or half, for ever. Idempotent."""

    def scan(self) -> Iterator[Found]:
        """Every key under which something is stored, at least once, in no order. For checks."""

    def path(self, blob: Blob) -> Path | None:
        """A plain file that holds exactly the bytes, where the store has one. What is read from it isn't verified."""


def checksum(owner: str, attempt: str, part: int, data: bytes) -> str:
    """16 hex digits: XXH3-64 of the part's bytes, seeded by its place, so that a sound part in a wrong place is
    damage too. Finds accidents, not forgery."""
    return xxhash.xxh3_64_hexdigest(data, xxhash.xxh3_64_intdigest(f"{owner}/{attempt}/{part}".encode()))


def verified(blob: Blob, part: int, data: bytes | None, expected: str) -> bytes:
    """The part's bytes, if they are what they should be. Raises Damaged."""
    if data is None:
        raise MissingPart(blob.owner, blob.attempt, part, "is missing")
    if len(data) != blob.length(part):
        raise WrongLength(blob.owner, blob.attempt, part, f"has {len(data)} bytes instead of {blob.length(part)}")
    if checksum(blob.owner, blob.attempt, part, data) != expected:
        raise WrongChecksum(blob.owner, blob.attempt, part, "doesn't match its checksum")
    return data


def check_range(blob: Blob, start: int, stop: int) -> None:
    """Raise ValueError unless [start, stop) lies within the blob."""
    if not 0 <= start <= stop <= blob.size:
        raise ValueError(f"range [{start}, {stop}) of blob {blob.owner}/{blob.attempt} with {blob.size} bytes")


class BlobReader(io.RawIOBase):
    """The bytes [start, stop) of a blob as a file object, for :class:`io.BufferedReader`, zipfile, libvips and the
    like. Positions count from ``start``. Keeps one part.

    Takes the store's ``parts``: one part after a seek, read-ahead as soon as it is read in sequence.
    """

    def __init__(
        self, blob: Blob, parts: Callable[[Blob, int, int], Iterator[bytes]], start: int = 0, stop: int | None = None
    ) -> None:
        self._blob, self._parts = blob, parts
        self._start, self._stop = start, blob.size if stop is None else stop
        check_range(blob, self._start, self._stop)
        self._position = self._start  # in the blob
        self._number, self._part = -1, memoryview(b"")
        self._ahead: Iterator[bytes] | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        self._check_open()
        return self._position - self._start

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """The new position; it may lie past the end, where reads give b"". Raises ValueError before the start."""
        self._check_open()
        if whence not in (io.SEEK_SET, io.SEEK_CUR, io.SEEK_END):
            raise ValueError(f"unknown whence {whence}")
        position = offset + {io.SEEK_SET: self._start, io.SEEK_CUR: self._position, io.SEEK_END: self._stop}[whence]
        if position < self._start:
            raise ValueError(f"negative seek position {position - self._start}")
        self._position = position
        return position - self._start

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fills the buffer across parts; short only at the end."""
        self._check_open()
        with memoryview(buffer) as whole, whole.cast("B") as target:
            position, filled = self._position, 0
            while filled < len(target) and position < self._stop:
                piece = self._at(position)[: len(target) - filled]
                target[filled : filled + len(piece)] = piece
                filled += len(piece)
                position += len(piece)
            self._position = position
            return filled

    def readall(self) -> bytes:
        self._check_open()
        pieces, position = [], self._position
        while position < self._stop:
            pieces.append(self._at(position))
            position += len(pieces[-1])
        self._position = position
        return b"".join(pieces)

    def peek(self, size: int = 0, /) -> bytes:
        """Some of the bytes that come next, without moving; what makes ``readline`` of :mod:`io` quick."""
        self._check_open()
        return bytes(self._at(self._position)[: max(size, 4096)]) if self._position < self._stop else b""

    def close(self) -> None:
        self._part, self._number, self._ahead = memoryview(b""), -1, None
        super().close()

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("read from a closed blob")

    def _at(self, position: int) -> memoryview:
        """The rest of the part in which this position lies, or of what is to be read."""
        number, offset = divmod(position, self._blob.part_size)
        if number != self._number:
            self._part, self._number = memoryview(self._load(number)), number
        return self._part[offset : offset + self._stop - position]

    def _load(self, number: int) -> bytes:
        """A whole part."""
        start = number * self._blob.part_size
        if number != self._number + 1 or number == 0:
            self._ahead = None
            return next(self._parts(self._blob, start, start + self._blob.length(number)))
        if self._ahead is None:
            last = (self._stop - 1) // self._blob.part_size
            self._ahead = self._parts(self._blob, start, last * self._blob.part_size + self._blob.length(last))
        try:
            return next(self._ahead)
        except BaseException:  # a generator that has raised is at its end: the next read begins a new one
            self._ahead = None
            raise
