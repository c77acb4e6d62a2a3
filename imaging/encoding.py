"""How renditions are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyvips

_RECIPE: Final = 1
"""Raised whenever the same request would give other bytes: it is part of every key in the cache."""


@dataclass(frozen=True)
class Encoding:
    """Baseline JPEG, chroma halved both ways, metadata stripped."""

    quality: int = 75
    """libjpeg's scale, 1 to 100."""
    background: tuple[int, int, int] = (255, 255, 255)
    """sRGB, under transparent pixels."""

    @property
    def version(self) -> str:
        """Names the settings: two encodings with one version write the same bytes."""
        return f"{_RECIPE}-q{self.quality}-{bytes(self.background).hex()}"

    def jpeg(self, image: pyvips.Image) -> bytes:
        """The bytes of an 8-bit image of one or three bands."""
        # optimised Huffman tables cost a second pass for 2 to 3 % of size
        data: bytes = image.jpegsave_buffer(
            Q=self.quality, optimize_coding=False, interlace=False, subsample_mode="on", keep="none"
        )
        return data


STANDARD: Final = Encoding()
