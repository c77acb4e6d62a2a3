"""An image as a JPEG of other dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO, Final

import pyvips

from imaging import formats
from imaging.colour import Image, flatten, to_srgb
from imaging.deadline import Deadline
from imaging.encoding import STANDARD, Encoding
from imaging.feed import Feed
from imaging.frames import check_gif
from imaging.limits import Limits
from imaging.picture import Picture, look
from imaging.size import Within

_LOADERS: Final = {known.name: known.loader for known in formats.FORMATS}


def jpeg(reader: BinaryIO, width: int, height: int, limits: Limits, encoding: Encoding = STANDARD) -> bytes:
    """The picture, scaled to exactly these pixels: sRGB, oriented, flattened, metadata stripped.

    NotAnImage, TooLargeImage as ``inspect``, and when it takes too long; BrokenImage when not the whole picture can be
    decoded. An error of the reader passes to the caller.
    """
    with Feed(reader) as feed:
        image = _scaled(feed, look(feed, limits), (width, height), encoding)
        with Deadline(image, limits.seconds):
            return encoding.jpeg(image)


def boxes(
    reader: BinaryIO, boxes: Sequence[tuple[int, int]], limits: Limits, encoding: Encoding = STANDARD
) -> dict[tuple[int, int], bytes]:
    """A JPEG for each box (width, height), within it and never enlarged, from one decoding of the whole picture.

    The largest is made from the picture, the others from the largest. Errors as ``jpeg``; besides, a GIF that is cut
    off behind its first frame is a BrokenImage here.
    """
    with Feed(reader) as feed:
        check_gif(feed)
        picture = look(feed, limits)
        fitted = {box: Within(*box).fit(picture.width, picture.height) for box in boxes}
        image = _scaled(feed, picture, max(fitted.values()), encoding)
        with Deadline(image, limits.seconds):
            largest = image.copy_memory()
        made = {size: encoding.jpeg(_resized(largest, size)) for size in set(fitted.values())}
    return {box: made[size] for box, size in fitted.items()}


def _scaled(feed: Feed, picture: Picture, size: tuple[int, int], encoding: Encoding) -> Image:
    """The pipeline: sRGB, oriented, without transparency, in this size as displayed. Computed when it is asked for."""
    stored = size if picture.stored == (picture.width, picture.height) else (size[1], size[0])
    image = _opened(feed, picture, stored)
    if image.hasalpha():
        # before scaling, or the colours of transparent pixels would run into the others
        image = flatten(to_srgb(image), encoding.background)
    image = to_srgb(_resized(image, stored))
    if picture.orientation > 1:
        image = image.copy_memory().autorot()  # rows in another order, which a sequential source can't give
    return image


def _opened(feed: Feed, picture: Picture, target: tuple[int, int]) -> Image:
    """The stored pixels, shrunk by the decoder where it can, but not below ``target``."""
    options: dict[str, Any] = {}
    shrink = _shrink(picture.stored, target)
    if picture.format == formats.JPEG.name:
        options["shrink"] = shrink
    elif picture.format == formats.WEBP.name:
        options["scale"] = 1 / shrink
    # Errors, not only truncation: LZW and PNG checksums. A tile of a TIFF that can't be read stays gray at anything
    # below "warning" (libvips 8.18, tiff2vips.c: rtiff_read_tile); in strips, warnings are harmless and many.
    fail_on = "warning" if picture.tiled else "error"
    return pyvips.Operation.call(
        _LOADERS[picture.format], feed.source_whole(), access="sequential", fail_on=fail_on, **options
    )


def _shrink(stored: tuple[int, int], target: tuple[int, int]) -> int:
    """How far a decoder may go: libvips' own thumbnails stop at twice the target, which costs a tenth more CPU."""
    return next(
        (by for by in (8, 4, 2) if all(have >= by * want for have, want in zip(stored, target, strict=True))), 1
    )


def _resized(image: Image, size: tuple[int, int]) -> Image:
    width, height = size
    if size == (image.width, image.height):
        return image
    return image.resize(width / image.width, vscale=height / image.height, kernel="lanczos3")
