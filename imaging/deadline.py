"""A bound on the time that libvips works on one image."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any, Self

from imaging.colour import Image
from imaging.errors import TooLargeImage


class Deadline:
    """A context manager around the computing of ``image``: TooLargeImage once it takes longer than ``seconds``.

    libvips tells how far it is after every few rows and can be stopped there. A format that is decoded as a whole
    gives no sign until that is done; there the limit on its pixels is what bounds the time.
    """

    def __init__(self, image: Image, seconds: float) -> None:
        self._seconds, self._until, self._passed = seconds, time.monotonic() + seconds, False
        image.set_progress(True)
        image.signal_connect("eval", self._look)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        if self._passed:
            raise TooLargeImage(f"decoding takes longer than {self._seconds:g} s") from error

    def _look(self, image: Image, progress: Any) -> None:
        if time.monotonic() >= self._until:
            self._passed = True
            image.set_kill(True)
