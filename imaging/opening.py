"""The pixels of a picture, as they are stored. Every decoding begins here."""

from __future__ import annotations

from typing import Any, Final

import pyvips

from imaging import formats
from imaging.colour import Image
from imaging.feed import Feed
from imaging.picture import Picture

_LOADERS: Final = {known.name: known.loader for known in formats.FORMATS}


def open_pixels(feed: Feed, picture: Picture, target: tuple[int, int]) -> Image:
    """The first page or frame, not turned, in its own colours; computed from top to bottom when it is asked for.

    Shrunk by the decoder where it can, but not below ``target``, width and height in stored pixels. Anything short of
    the whole picture is an error then.
    """
    options: dict[str, Any] = {}
    shrink = _shrink(picture.stored, target)
    if picture.format == formats.JPEG.name:
        options["shrink"] = shrink
    elif picture.format == formats.WEBP.name:
        options["scale"] = 1 / shrink
    # Errors, not only truncation: the checksums of PNG and LZW. A tile of a TIFF that can't be read stays gray at
    # anything below "warning" (libvips 8.18, tiff2vips.c: rtiff_read_tile); in strips, warnings are many and harmless.
    fail_on = "warning" if picture.tiled else "error"
    loader = _LOADERS[picture.format]
    return pyvips.Operation.call(loader, feed.source_whole(), access="sequential", fail_on=fail_on, **options)


def _shrink(stored: tuple[int, int], target: tuple[int, int]) -> int:
    """How far a decoder may go. libvips' own thumbnails stop at twice the target, which costs a tenth more CPU."""
    for by in (8, 4, 2):
        if all(have >= by * want for have, want in zip(stored, target, strict=True)):
            return by
    return 1
