"""The pixels of a picture, as they are stored. Every decoding begins here."""

from __future__ import annotations

from typing import Any, Final

import pyvips

from imaging import foreign, formats
from imaging.colour import Image, is_measured, stretched
from imaging.deadline import Deadline
from imaging.drawing import drawn
from imaging.feed import Feed
from imaging.picture import Picture, page_option
from imaging.svg import Drawing

_LOADERS: Final = {known.name: known.loader for known in formats.FORMATS if known.loader}
_FOREIGN: Final = {known.name: known for known in formats.FORMATS if known.package}


def open_pixels(feed: Feed, picture: Picture, shrink: int, deadline: Deadline) -> Image:
    """The picture's page or first frame, not turned, in its own colours; computed from top to bottom when asked for.

    Shrunk by the decoder, where it can; within the deadline. Anything short of the whole picture is an error then.
    """
    return deadline.watch(_opened(feed, picture, shrink, deadline))


def _opened(feed: Feed, picture: Picture, shrink: int, deadline: Deadline) -> Image:
    if picture.format == formats.SVG.name:
        return drawn(Drawing(feed.read(0, feed.size), picture.width, picture.height))
    if picture.format in _FOREIGN:
        return foreign.pixels(feed, _FOREIGN[picture.format], picture)
    options: dict[str, Any] = {**page_option(picture.format, picture.page)}
    if picture.format == formats.JPEG.name:
        options["shrink"] = shrink
    elif picture.format == formats.WEBP.name:
        options["scale"] = 1 / shrink
    # Errors, not only truncation: the checksums of PNG and LZW. A tile of a TIFF that can't be read stays gray at
    # anything below "warning" (libvips 8.18, tiff2vips.c: rtiff_read_tile); in strips, warnings are many and harmless.
    fail_on = "warning" if picture.tiled else "error"
    loader = _LOADERS[picture.format]

    def decoded() -> Image:
        return pyvips.Operation.call(loader, feed.source_whole(), access="sequential", fail_on=fail_on, **options)

    image = decoded()
    if is_measured(image):
        return stretched(image, deadline.watch(decoded()))
    if picture.ycbcr is not None and image.format == "uchar" and image.bands >= 3:
        return picture.ycbcr.rgb(image)
    return image


def shrinks(picture: Picture) -> tuple[int, ...]:
    """How far the decoder can go. libvips' own thumbnails stop at twice the target, which costs a tenth more CPU."""
    return (2, 4, 8) if picture.format in (formats.JPEG.name, formats.WEBP.name) else ()
