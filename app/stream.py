"""The body of an answer that is sent part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from storage.errors import BlobError


class Stream:
    """``length`` bytes from ``parts``, as the iterable that a WSGI server sends and then closes.

    The first part is fetched at once: an error there is raised before any header is sent. A later one passes to the
    server, which cuts the connection, so that no client takes the beginning for the whole. ``ended`` is called once,
    with how it ended (``whole``, ``gone``: the client left, ``cut``) and what broke it.
    """

    def __init__(self, parts: Iterator[bytes], length: int, ended: Callable[[str, Exception | None], None]) -> None:
        self._parts, self._length, self._ended = parts, length, ended
        self._sent, self._open = 0, True
        self._first: bytes | None = next(parts, b"")

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> bytes:
        if not self._open:
            raise StopIteration
        part, self._first = self._first, None
        try:
            part = next(self._parts, b"") if part is None else part
            if not part and self._sent < self._length:
                raise BlobError(f"the bytes end at {self._sent} of {self._length}")
        except Exception as error:
            self._end("cut", error)
            raise
        if not part:
            raise StopIteration
        self._sent += len(part)
        return part

    def close(self) -> None:
        """Called by the server, whether all was sent or the client has gone; stops what is read ahead."""
        close = getattr(self._parts, "close", None)
        if close is not None:
            close()
        self._end("whole" if self._sent >= self._length else "gone", None)

    def _end(self, how: str, error: Exception | None) -> None:
        if self._open:
            self._open = False
            self._ended(how, error)
