"""The reading side of a bucket: file objects and streams of a file's bytes, every chunk verified before it is handed
out, and the whole before its last chunk is."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

from storage.blobs import Blob, BlobReader
from storage.bucket_errors import CorruptFile, HashMismatch, InvalidRange
from storage.bucket_record import FileRecord
from storage.chunks import ChunkBlobs
from storage.errors import Damaged


class DownloadStream(BlobReader):
    """The bytes [start, end) of a file as a seekable file object, positions counted from ``start``.

    Reads raise CorruptFile. Chunks that were all read in order, from the first to the last, are also compared with the
    file's sha256, and nothing may lie behind them; seeks back and reads of what was read don't disturb that.
    """

    def __init__(self, blobs: ChunkBlobs, record: FileRecord, start: int, end: int) -> None:
        super().__init__(record.blob, _parts_of(blobs), start, end)
        self.record = record
        self._whole = Whole(blobs, record.blob)

    def _load(self, number: int) -> bytes:
        data = super()._load(number)
        try:
            self._whole.pass_by(number, data)
        except CorruptFile:
            self._ahead = None  # this chunk was handed out by it, and will be asked for again
            raise
        return data


class Whole:
    """Looks at a file's chunks as they pass by, and at the last one decides on all of them."""

    def __init__(self, blobs: ChunkBlobs, blob: Blob) -> None:
        self._blobs, self._blob = blobs, blob
        self._sha256, self._next = hashlib.sha256(), 0
        self._verdict: CorruptFile | None = None
        if blob.parts == 0:
            self._decide()

    def pass_by(self, number: int, data: bytes) -> None:
        """Raises HashMismatch or ExtraChunk at the last chunk, each time, if all before it came in order."""
        if number == self._next:
            self._sha256.update(data)
            self._next += 1
            if self._next == self._blob.parts:
                self._decide()
        elif self._verdict is not None and number == self._blob.parts - 1:
            raise self._verdict

    def _decide(self) -> None:
        blob = self._blob
        if self._sha256.hexdigest() != blob.sha256:
            self._verdict = HashMismatch(blob.owner, None, "the whole doesn't match its sha256")
        else:
            self._verdict = next((CorruptFile.of(extra) for extra in self._blobs.extra(blob)), None)
        if self._verdict is not None:
            raise self._verdict


def pieces(blobs: ChunkBlobs, record: FileRecord, start: int, end: int) -> Iterator[bytes]:
    """The bytes [start, end), chunk by chunk, read ahead in bounded memory. Raises CorruptFile; for a whole file also
    when its sha256 is wrong, and that before its last chunk."""
    blob = record.blob
    parts = _parts_of(blobs)(blob, start, end)
    if (start, end) != (0, blob.size):
        yield from parts
        return
    whole = Whole(blobs, blob)
    for number, data in enumerate(parts):
        whole.pass_by(number, data)
        yield data


def check_range(record: FileRecord, start: int, end: int | None) -> tuple[int, int]:
    """Raises InvalidRange."""
    length = record.blob.size
    end = length if end is None else end
    if not 0 <= start <= end <= length:
        raise InvalidRange(f"file {record.id}: no range [{start}, {end}) of {length} bytes")
    return start, end


def _parts_of(blobs: ChunkBlobs) -> Callable[[Blob, int, int], Iterator[bytes]]:
    """``blobs.parts``, its damages told as CorruptFile."""

    def parts(blob: Blob, start: int, end: int) -> Iterator[bytes]:
        try:
            yield from blobs.parts(blob, start, end)
        except Damaged as damage:
            raise CorruptFile.of(damage) from damage

    return parts
