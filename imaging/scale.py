"""An image as a JPEG of other dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

import pyvips

from imaging.encoding import Encoding
from imaging.errors import BrokenImage
from imaging.limits import Limits
from imaging.picture import inspect
from imaging.size import Within


def jpeg(reader: BinaryIO, width: int, height: int, limits: Limits, encoding: Encoding = Encoding()) -> bytes:  # noqa: B008
    """The picture, scaled to exactly these pixels: sRGB, oriented, flattened, metadata stripped.

    NotAnImage, TooLargeImage as ``inspect``; BrokenImage when not the whole picture can be decoded. An error of the
    reader passes to the caller.
    """
    reader.seek(0)
    try:
        image = pyvips.Image.thumbnail_buffer(
            reader.read(),
            width,
            height=height,
            size="force",
            option_string="[fail_on=truncated]",
            output_profile="srgb",
        )
        return encoding.jpeg(image.flatten(background=list(encoding.background)) if image.hasalpha() else image)
    except pyvips.Error as error:
        raise BrokenImage(str(error)) from error


def boxes(
    reader: BinaryIO,
    boxes: Sequence[tuple[int, int]],
    limits: Limits,
    encoding: Encoding = Encoding(),  # noqa: B008
) -> dict[tuple[int, int], bytes]:
    """A JPEG for each box (width, height), within it and never enlarged, from one decoding of the whole picture."""
    reader.seek(0)
    picture = inspect(reader, limits)
    return {box: jpeg(reader, *Within(*box).fit(picture.width, picture.height), limits, encoding) for box in boxes}
