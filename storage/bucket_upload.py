"""The writing side of a bucket: a file object whose close makes a file."""

from __future__ import annotations

import io
from contextlib import suppress
from types import TracebackType
from typing import Any, BinaryIO, Final

from storage.bucket_errors import FileStoreError
from storage.bucket_record import FileRecord
from storage.bucket_states import States
from storage.errors import StoreError
from storage.ids import Clock
from storage.parts import PartWriter

SIGN_OF_LIFE: Final = 600 * 1_000_000  # µs between two of them; far below any grace after which an upload is abandoned

COPIED: Final = 1 << 20  # bytes read from a source at once


class UploadStream(io.BufferedIOBase):
    """Takes the bytes of one file. ``close`` commits; leaving a ``with`` by an exception, or being garbage-collected,
    doesn't. A write that failed ends the upload: close then raises FileStoreError and leaves nothing."""

    def __init__(self, states: States, writer: PartWriter, record: FileRecord, clock: Clock) -> None:
        self._states, self._writer, self._record, self._clock = states, writer, record, clock
        self._failed = False

    @property
    def file_id(self) -> str:
        return self._record.id

    @property
    def record(self) -> FileRecord:
        """As it is now: Complete once this stream is closed."""
        return self._record

    @property
    def sha256(self) -> bytes:
        """Of what was written so far."""
        return self._writer.sha256

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        """Takes all of any bytes-like object. Raises Full, Unavailable, or NoFile when the upload was removed."""
        self._check_open()
        try:
            count = self._writer.write(data)
            if self._clock() - self._record.alive > SIGN_OF_LIFE:
                self._record = self._states.renew(self._record)
        except BaseException:
            self._failed = True
            raise
        return count

    def write_all(self, source: BinaryIO) -> None:
        """Write what a source still has."""
        while data := source.read(COPIED):
            self.write(data)
        if data is None:
            raise BlockingIOError("the source has no data yet; give a blocking one")

    def close(self) -> None:
        """Commit, once every chunk is acknowledged. Closed already: nothing happens."""
        if not self.closed:
            self._commit(self._states.complete)

    def commit_first(self) -> FileRecord:
        """Close, if the name has no revision yet. Raises FileExists, and leaves nothing.

        Of several that do this at once one wins; a plain upload that ends at the same time counts as a later one.
        """
        self._check_open()
        return self._commit(self._states.complete_first)

    def abort(self) -> None:
        """Remove what was written. Closed or aborted already: nothing happens."""
        if not self.closed:
            super().close()
            self._states.abandon(self._record)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
            return
        with suppress(StoreError):  # what stays is announced to the sweep, and mustn't hide the first error
            self.abort()

    def __del__(self) -> None:
        """Nothing, where :class:`io.IOBase` would close: what was forgotten isn't complete. Nor is it removed here,
        since this may run within any other call, with its locks held; the sweep does that."""

    def _commit(self, complete: Any) -> FileRecord:
        try:
            if self._failed:
                raise FileStoreError(f"file {self._record.id}: the upload has failed, and nothing is stored")
            blob = self._writer.commit()
            self._record = complete(self._record, blob.size, blob.sha256)
        except BaseException:
            with suppress(StoreError):
                self.abort()
            raise
        super().close()
        return self._record

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError(f"write to the closed upload of file {self._record.id}")
