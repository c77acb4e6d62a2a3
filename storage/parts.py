"""The writing half of a blob: bytes of any lengths become parts of one length, counted, hashed and checked out once."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum, auto
from types import TracebackType
from typing import Self

from storage.blobs import Blob
from storage.errors import StoreError


class _State(Enum):
    OPEN = auto()
    FAILED = auto()
    COMMITTED = auto()
    ABORTED = auto()


class PartWriter(ABC):
    """A :class:`~storage.blobs.BlobWriter`; what the stores add is where a part goes.

    It has no ``__del__``: one that is forgotten commits nothing.
    """

    def __init__(self, owner: str, attempt: str, part_size: int) -> None:
        self.owner, self.attempt, self.part_size = owner, attempt, part_size
        self._state = _State.OPEN
        self._rest = bytearray()  # of the part under way, always shorter than one
        self._size, self._parts = 0, 0
        self._sha256 = hashlib.sha256()

    @property
    def sha256(self) -> bytes:
        """Of what was written so far."""
        return self._sha256.digest()

    def write(self, data: bytes) -> int:
        with self._trying(), memoryview(data) as given, given.cast("B") as view:
            self._sha256.update(view)
            for piece in self._cut(view):
                self._keep(self._parts, piece)
                self._parts += 1
            self._size += len(view)
            return len(view)

    def commit(self) -> Blob:
        with self._trying():
            if self._rest:
                self._keep(self._parts, bytes(self._rest))
                self._rest.clear()
            self._publish()
            self._state = _State.COMMITTED
        return Blob(self.owner, self.attempt, self._size, self.part_size, self._sha256.hexdigest())

    def abort(self) -> None:
        if self._state in (_State.OPEN, _State.FAILED):
            self._state = _State.ABORTED
            self._rest.clear()
            self._discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(StoreError):  # what stays is litter that erase() removes, and mustn't hide the first error
            self.abort()

    @abstractmethod
    def _keep(self, part: int, data: bytes) -> None:
        """Take the next part; it may become durable later."""

    @abstractmethod
    def _publish(self) -> None:
        """Make everything durable."""

    @abstractmethod
    def _discard(self) -> None:
        """Remove everything."""

    @contextmanager
    def _trying(self) -> Iterator[None]:
        """A writer that has failed once can't know what it has stored: it is of no further use."""
        if self._state is not _State.OPEN:
            raise ValueError(f"the writer of blob {self.owner}/{self.attempt} is {self._state.name.lower()}")
        try:
            yield
        except BaseException:
            self._state = _State.FAILED
            raise

    def _cut(self, view: memoryview) -> Iterator[bytes]:
        """The parts that are full now; what is left over stays in ``_rest``."""
        begin = 0
        if self._rest:
            begin = self.part_size - len(self._rest)
            self._rest += view[:begin]
            if len(self._rest) < self.part_size:
                return
            yield bytes(self._rest)
            self._rest.clear()
        while len(view) - begin >= self.part_size:
            yield bytes(view[begin : begin + self.part_size])
            begin += self.part_size
        self._rest += view[begin:]
