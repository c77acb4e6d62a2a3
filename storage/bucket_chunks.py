"""The chunks of a bucket's files: one reader and writer for each chunk size, since a file is read by its own."""

from __future__ import annotations

from storage.bucket_record import FileRecord
from storage.bucket_tables import chunks_together
from storage.chunks import ChunkBlobs
from storage.interface import Store
from storage.table import Table


class Chunks:
    """``concurrency``: chunk operations in flight of one stream."""

    def __init__(self, store: Store, table: Table, concurrency: int) -> None:
        if concurrency < 1:
            raise ValueError(f"a concurrency of {concurrency}")
        self._store, self._table, self._concurrency = store, table, concurrency

    def sized(self, size: int) -> ChunkBlobs:
        """For files whose chunks have so many bytes."""
        together = chunks_together(size)
        window = min(self._concurrency, together)
        return ChunkBlobs(self._store, self._table, part_size=size, bucket_parts=together, window=window)

    def of(self, record: FileRecord) -> ChunkBlobs:
        return self.sized(record.chunk_size_bytes)

    def erase(self, record: FileRecord) -> None:
        """Remove all chunks of a file, for ever."""
        self.of(record).erase(record.id, record.attempt)
