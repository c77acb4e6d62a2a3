"""A bound on the time that libvips works on one image."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

from imaging.colour import Image
from imaging.errors import TookTooLong


class Deadline:
    """A context manager around everything that is computed from one image: TookTooLong beyond ``seconds``.

    libvips can be stopped between any two strips of rows. A format that is decoded as a whole is one strip; there the
    limit on its pixels is what bounds the time. (Its progress signal is no help: it counts strips of the result, and a
    thumbnail is one.)
    """

    def __init__(self, seconds: float) -> None:
        self._seconds, self._until, self._passed = seconds, time.monotonic() + seconds, False
        self._timers: list[threading.Timer] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        for timer in self._timers:
            timer.cancel()
        if self._passed and error is not None:
            raise TookTooLong(f"takes longer than {self._seconds:g} s") from error

    def watch(self, image: Image) -> Image:
        """The same image; whatever is computed from it is stopped in time."""
        left = self._until - time.monotonic()
        if left <= 0:
            self._stop(image)
        else:
            timer = threading.Timer(left, self._stop, [image])
            timer.daemon = True
            timer.start()
            self._timers.append(timer)
        return image

    def _stop(self, image: Image) -> None:
        self._passed = True
        image.set_kill(True)
