"""A bound on the time that libvips works on one image."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any, Self

from imaging.colour import Image
from imaging.errors import TooLargeImage


class Deadline:
    """A context manager around everything that is computed from one image: TooLargeImage beyond ``seconds``.

    libvips tells how far it is after every few rows and can be stopped there. A format that is decoded as a whole
    gives no sign until that is done; there the limit on its pixels is what bounds the time.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds, self._until, self._passed = seconds, time.monotonic() + seconds, False
        self._images: list[Image] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        self._images.clear()
        if self._passed:
            raise TooLargeImage(f"takes longer than {self._seconds:g} s") from error

    def watch(self, image: Image) -> Image:
        """The same image; it and whatever is computed from it are stopped in time."""
        image.set_progress(True)
        image.signal_connect("eval", self._look)
        self._images.append(image)  # the signal needs this very object, whatever becomes of the caller's
        return image

    def _look(self, image: Image, progress: Any) -> None:
        if time.monotonic() >= self._until:
            self._passed = True
            image.set_kill(True)
