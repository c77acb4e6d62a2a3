"""Images that lie in buckets, for the IIIF routes: ``files:{bucket}:{file_id}`` stands for one. Nothing was prepared of
them; what they are is seen from their headers when they are first asked for."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import BinaryIO, Final, cast

from imaging.limits import Limits
from imaging.picture import Picture, inspect
from ingest.records import Original, Reference, Status
from storage.bucket_download import DownloadStream
from storage.bucket_states import check_complete
from storage.bucket_tables import NAME
from storage.buckets import Buckets

IDENTIFIER: Final = re.compile(rf"files:(?P<bucket>{NAME.pattern}):(?P<file_id>[A-Za-z0-9-]{{1,64}})")
SHELF: Final = "files"
"""Stands in ``host`` where originals have the host that they came from."""


class FileImages:
    def __init__(self, buckets: Buckets, limits: Limits) -> None:
        self._buckets, self._limits = buckets, limits
        self._picture = lru_cache(maxsize=4096)(self._inspect)

    def find(self, name: str) -> tuple[Reference, Original]:
        """The file as if it were an original, and what refers to it, of the context ``files:{bucket}``.

        Raises NoBucket, NoFile, FileNotReady, CorruptFile, and what ``inspect`` does of what isn't an image.
        """
        match = IDENTIFIER.fullmatch(name)
        assert match is not None
        bucket, file_id = match.groups()
        record = self._buckets.open(bucket).get(file_id)
        check_complete(record)
        picture = self._picture(bucket, file_id, record.sha256)
        original = Original(
            file_id,
            Status.OK,
            url=name,
            host=SHELF,
            registered=record.started_at,
            created=record.finished_at,
            mime=picture.mime,
            checksum=record.sha256,
            size=record.length,
            part_size=record.chunk_size_bytes,
            attempt=record.attempt,
            filename=record.filename,
            width=picture.width,
            height=picture.height,
            pages=picture.pages,
            rights=picture.rights,
        )
        return Reference(name, file_id, f"{SHELF}:{bucket}", "", name, ""), original

    def hold(self, original: Original) -> bool:
        """Whether it is one of these."""
        return original.host == SHELF

    def open(self, original: Original) -> DownloadStream:
        _, bucket, file_id = original.url.split(":")
        return self._buckets.open(bucket).open_download_stream(file_id)

    def _inspect(self, bucket: str, file_id: str, _sha256: str | None) -> Picture:
        """Kept: bytes don't change while their hash is the same."""
        with self._buckets.open(bucket).open_download_stream(file_id) as reader:
            return inspect(cast(BinaryIO, reader), self._limits)
