"""A mark in the lower right corner of every rendition, whatever its size: a crop has one too."""

from __future__ import annotations

import hashlib
from functools import cached_property
from pathlib import Path
from typing import Final

import pyvips

from imaging.colour import Image

_PART: Final = 4
"""The mark takes at most this part of each side, and is never enlarged."""
_MARGIN: Final = 40
_SMALLEST: Final = 16
"""Pixels of a side, below which a mark would say nothing."""


class Mark:
    """An image, most often a PNG with transparency."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.name = hashlib.sha256(data).hexdigest()[:16]
        """Tells one mark from another: a part of keys."""

    @classmethod
    def of(cls, path: Path) -> Mark:
        """Raises OSError, or ValueError for a file that is no image."""
        mark = cls(path.read_bytes())
        try:
            _ = mark._image
        except pyvips.Error as error:
            raise ValueError(f"{path} is no image: {error}") from error
        return mark

    def on(self, image: Image) -> Image:
        """The sRGB image with the mark on it."""
        room = image.width // _PART, image.height // _PART
        if min(room) * _PART < _SMALLEST:
            return image
        mark = self._image
        scale = min(1.0, room[0] / mark.width, room[1] / mark.height)
        mark = mark.resize(scale)
        if image.format == "ushort":
            mark = mark.colourspace("rgb16")
        x = image.width - mark.width - image.width // _MARGIN
        y = image.height - mark.height - image.height // _MARGIN
        kind, alpha, space = image.format, image.hasalpha(), image.interpretation
        marked = image.composite2(mark, "over", x=x, y=y, compositing_space=space).cast(kind)
        return marked if alpha else marked[:3]

    @cached_property
    def _image(self) -> Image:
        image = pyvips.Image.new_from_buffer(self._data, "").colourspace("srgb")
        return (image if image.hasalpha() else image.addalpha()).copy_memory()
