"""The tables of a bucket. Tables and columns are ReGrid's (seed: «Document Structure», «Table Names», «Indexes»);
what the storage protocols need besides is named here as ours.

ReGrid's indexes are these: ``file_ix`` is the table ``{bucket}_file_ix``, ``chunk_ix`` the key of ``{bucket}_chunks``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from storage.table import Table, Type, cas, plain

TEXT, INT, BLOB = Type.TEXT, Type.INT, Type.BLOB

NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,39}")
"""Of a bucket. Cassandra takes 48 characters for the name of a table."""

CHUNKS_TOGETHER: Final = 128
"""Chunks of one partition, at most; fewer where they are larger than 256 KiB."""
TOGETHER: Final = 32 << 20
"""Bytes of one partition of chunks."""

BUCKETS = cas("buckets", "name", name=TEXT, shards=INT, created=INT)
"""Which buckets there are. ``shards``: how many partitions each of a bucket's names is spread over, fixed when it is
made; ``created`` in microseconds."""


@dataclass(frozen=True)
class BucketTables:
    files: Table
    chunks: Table
    file_ix: Table
    """Files by status and name; rows of files that are Complete or Deleted."""
    recent: Table
    """The same files by the time at which they were finished."""

    @property
    def all(self) -> tuple[Table, ...]:
        return self.files, self.chunks, self.file_ix, self.recent


@lru_cache(maxsize=1000)
def tables_of(bucket: str) -> BucketTables:
    """The declarations of a bucket's tables; the same objects each time. Raises ValueError for a name that can't be."""
    if not NAME.fullmatch(bucket):
        raise ValueError(f"bucket {bucket!r}: a name is {NAME.pattern}")
    return BucketTables(
        files=cas(
            f"{bucket}_files",
            "id",
            # ReGrid's; times in microseconds
            id=TEXT,
            filename=TEXT,
            length=INT,
            chunkSizeBytes=INT,
            sha256=TEXT,
            status=TEXT,  # Incomplete, Complete, Deleted
            startedAt=INT,
            finishedAt=INT,
            deletedAt=INT,
            metadata=TEXT,  # JSON
            # ours
            attempt=TEXT,  # names the chunks: a new one for each upload, also where a caller uses an id again
            naming=TEXT,  # names the index rows: a new one for each change of what they show
            alive=INT,  # the upload's last sign of life
            erasing=INT,  # when its removal began: one way, nothing opens, lists or completes it from then on
        ),
        chunks=plain(
            f"{bucket}_chunks",
            "file_id attempt bucket | num",
            chunks=True,
            id=TEXT,
            file_id=TEXT,
            num=INT,
            data=BLOB,
            # ours
            attempt=TEXT,
            bucket=INT,  # which 32 MiB of the file: no partition above that
            crc=TEXT,  # of this chunk and its place
        ),
        file_ix=plain(
            f"{bucket}_file_ix",
            "shard | status filename finishedAt file_id naming",
            hint=True,
            shard=INT,  # of the filename
            status=TEXT,
            filename=TEXT,
            finishedAt=INT,
            file_id=TEXT,
            naming=TEXT,
        ),
        recent=plain(
            f"{bucket}_recent",
            "status span | finishedAt file_id naming",
            hint=True,
            status=TEXT,
            span=INT,  # hour of finishedAt since 1970; -1 lists the hours that have rows, in finishedAt
            finishedAt=INT,
            file_id=TEXT,
            naming=TEXT,
        ),
    )


def chunks_together(chunk_size: int) -> int:
    """How many chunks of a file lie in one partition."""
    return max(1, min(CHUNKS_TOGETHER, TOGETHER // chunk_size))
