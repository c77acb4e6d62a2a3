"""What can go wrong with the files of a bucket. Each message names the file, and the chunk where there is one.

Bad arguments (a filename or an id that can't be, metadata that isn't JSON) are plain ValueErrors.
"""

from __future__ import annotations

from typing import Self

from storage.errors import Damaged, ExtraPart, MissingPart, StoreError, WrongLength


class FileStoreError(StoreError):
    """Any failure that concerns a bucket or a file in it."""


class NoBucket(FileStoreError):
    """There is no bucket of this name; ``init()`` makes it."""


class NoFile(FileStoreError):
    """There is no such file, or it is deleted."""


class NoRevision(FileStoreError):
    """The file is there, and hasn't so many revisions."""


class FileExists(FileStoreError):
    """The id is in use, or the name that was to be a new one."""


class FileNotReady(FileStoreError):
    """The upload isn't complete, or will never be."""


class InvalidRange(FileStoreError, ValueError):
    """Not 0 <= start <= end <= length."""


class CorruptFile(FileStoreError):
    """What is stored isn't what was uploaded. Trying again doesn't help."""

    def __init__(self, file_id: str, chunk: int | None, what: str) -> None:
        place = "" if chunk is None else f", chunk {chunk}"
        super().__init__(f"file {file_id}{place}: {what}")
        self.file_id, self.chunk, self.what = file_id, chunk, what

    @classmethod
    def of(cls, damage: Damaged) -> Self:
        """The same damage, in the words of a bucket."""
        kinds = {MissingPart: ChunkMissing, WrongLength: ChunkWrongSize, ExtraPart: ExtraChunk}
        kind = kinds.get(type(damage), HashMismatch)
        found = kind(damage.owner, None if damage.part < 0 else damage.part, damage.what)
        assert isinstance(found, cls)
        return found


class ChunkMissing(CorruptFile):
    """There is no such chunk."""


class ChunkWrongSize(CorruptFile):
    """A chunk is longer or shorter than its place in the file says."""


class ExtraChunk(CorruptFile):
    """There is something behind the last chunk."""


class HashMismatch(CorruptFile):
    """A chunk doesn't match its checksum, or the whole file its sha256."""
