"""How renditions are written."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from imaging.colour import Image
from imaging.metadata import labelled

_RECIPE: Final = 3
"""Raised whenever the same request would give other bytes: it is part of every key in the cache."""


@dataclass(frozen=True)
class Encoding:
    """Of JPEG: baseline, chroma halved both ways. Other formats take what of it they know."""

    quality: int = 75
    """libjpeg's scale, 1 to 100."""
    background: tuple[int, int, int] = (255, 255, 255)
    """sRGB, under transparent pixels."""
    metadata: str = "copyright"
    """What is kept of it, one of ``imaging.metadata.POLICIES``."""

    @cached_property
    def version(self) -> str:
        """Names the settings: two encodings with one version write the same bytes."""
        return f"{_RECIPE}-q{self.quality}-{bytes(self.background).hex()}-{self.metadata}"

    def jpeg(self, image: Image) -> bytes:
        """The bytes of an 8-bit image of one or three bands."""
        image, keep = self.labelled(image)
        # optimised Huffman tables cost a second pass for 2 to 3 % of size
        data: bytes = image.jpegsave_buffer(
            Q=self.quality, optimize_coding=False, interlace=False, subsample_mode="on", keep=keep
        )
        return data

    def labelled(self, image: Image) -> tuple[Image, str]:
        """The image with the metadata that is kept, and how its saver is told so."""
        return labelled(image, self.metadata)


STANDARD: Final = Encoding()
