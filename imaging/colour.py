"""Any pixels to 8 bits of sRGB, or of gray, without transparency."""

from __future__ import annotations

from typing import Any, Final

import pyvips

Image = Any
"""A pyvips.Image: pyvips has no types."""

_PROFILE: Final = "icc-profile-data"
_GRAYS: Final = ("b-w", "grey16")


def to_srgb(image: Image) -> Image:
    """Colours as the embedded profile has them; one that is broken or of another colour space is left out.

    Gray without a profile stays gray. Without a profile, CMYK is taken for the fallback profile that libvips carries,
    anything else for sRGB. Transparency is kept, in 8 bits.
    """
    intent = {"intent": "relative", "black_point_compensation": True}
    cmyk = image.interpretation == "cmyk"
    if image.get_typeof(_PROFILE):
        try:
            return image.icc_transform("srgb", embedded=True, **intent)
        except pyvips.Error:
            image = image.copy()
            image.remove(_PROFILE)
    if cmyk:
        return image.icc_transform("srgb", input_profile="cmyk", **intent)
    return image.colourspace("b-w" if image.interpretation in _GRAYS else "srgb")


def flatten(image: Image, background: tuple[int, int, int]) -> Image:
    """Without transparency: on the background, an sRGB colour."""
    if not image.hasalpha():
        return image
    return image.colourspace("srgb").flatten(background=list(background))
