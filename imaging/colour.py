"""Any pixels to 8 bits of sRGB, or of gray, without transparency."""

from __future__ import annotations

import math
from typing import Any, Final

import pyvips

Image = Any
"""A pyvips.Image: pyvips has no types."""

_PROFILE: Final = "icc-profile-data"
_SPACES: Final = {"b-w": b"GRAY", "grey16": b"GRAY", "cmyk": b"CMYK", "lab": b"Lab ", "labs": b"Lab "}
"""What a profile says of its colour space (ICC.1, 7.2.6), by libvips' interpretation; RGB for all others."""
_BANDS: Final = {b"GRAY": 1, b"RGB ": 3, b"CMYK": 4, b"Lab ": 3}
_MEASURES: Final = ("float", "double", "char", "short", "int")
_NO_SPACES: Final = ("b-w", "srgb", "grey16", "rgb16", "multiband")
_WHITES: Final = {"float": 1, "double": 1, "uint": 2**32 - 1, "int": 2**31 - 1}


def is_measured(image: Image) -> bool:
    """Whether the pixels are numbers of anything, rather than of light: floats and signed integers without a colour
    space of their own."""
    return image.format in _MEASURES and image.interpretation in _NO_SPACES


def stretched(image: Image, same: Image) -> Image:
    """Measures as floats from 0 to 1: as they are, where all are floats within that, else from the least to the most.
    ``same``: the image once more, for the look at all of its pixels that this takes."""
    stats = same.stats()
    low, high = stats(0, 0)[0], stats(1, 0)[0]
    if (image.format in ("float", "double") and low >= 0 and high <= 1) or not 0 < high - low < math.inf:
        return image
    levels = image.linear(1 / (high - low), -low / (high - low))
    return levels.copy(interpretation="b-w" if image.bands < 3 else "srgb")


def ordinary(image: Image) -> Image:
    """Of scientific images, the first bands, in an ordinary range: floats from 0 to 1, integers by their size."""
    wide = image.format == "ushort"
    if image.interpretation == "multiband":
        colour = ("rgb16" if wide else "srgb") if image.bands > 2 else ("grey16" if wide else "b-w")
        image = image.copy(interpretation=colour)
    if image.interpretation in ("b-w", "srgb") and image.format in _WHITES:
        image = (image * (255 / _WHITES[image.format])).cast("uchar")
    bands = _BANDS[_space(image)]
    # one more is transparency, several are anybody's guess
    return image if image.bands <= bands + 1 else image[:bands]


def to_srgb(image: Image, depth: int = 8) -> Image:
    """Colours as the embedded profile has them; one that is broken or of another colour space is left out.

    Gray without a profile stays gray. Without a profile, CMYK is taken for the fallback profile that libvips carries,
    anything else for sRGB. Transparency is kept. ``depth``: bits of the result, 8 or 16.
    """
    space = _space(image)
    intent = {"intent": "relative", "black_point_compensation": True, "depth": depth}
    if image.get_typeof(_PROFILE):
        if image.get(_PROFILE)[16:20] == space:
            try:
                return image.icc_transform("srgb", embedded=True, **intent)
            except pyvips.Error:
                pass  # a profile that lcms can't read
        image = image.copy()
        image.remove(_PROFILE)
    if space == b"CMYK":
        return image.icc_transform("srgb", input_profile="cmyk", **intent)
    names = ("b-w", "srgb") if depth == 8 else ("grey16", "rgb16")
    return image.colourspace(names[space != b"GRAY"])


def flatten(image: Image, background: tuple[int, int, int]) -> Image:
    """Without transparency: on the background, an sRGB colour."""
    if not image.hasalpha():
        return image
    return image.colourspace("srgb").flatten(background=list(background))


def _space(image: Image) -> bytes:
    return _SPACES.get(image.interpretation, b"RGB ")
