"""An image as JPEGs of several sizes, from one decoding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

from imaging.colour import Image, flatten, ordinary, to_srgb
from imaging.deadline import Deadline
from imaging.encoding import STANDARD, Encoding
from imaging.feed import Feed
from imaging.frames import check_gif
from imaging.limits import Limits
from imaging.opening import open_pixels, shrinks
from imaging.picture import Picture, look
from imaging.reduction import choose
from imaging.region import Rect
from imaging.resizing import resized
from imaging.size import Within


def boxes(
    reader: BinaryIO, boxes: Sequence[tuple[int, int]], limits: Limits, encoding: Encoding = STANDARD
) -> dict[tuple[int, int], bytes]:
    """A JPEG for each box (width, height), within it and never enlarged, from one decoding of the whole picture.

    The largest is made from the picture, the others from the largest. Errors of ``render``; besides, a GIF that is cut
    off behind its first frame is a BrokenImage here.
    """
    with Feed(reader) as feed, Deadline(limits.seconds) as deadline:
        check_gif(feed)
        picture = look(feed, limits)
        fitted = {box: Within(*box).fit(picture.width, picture.height) for box in boxes}
        largest = _scaled(feed, deadline, picture, max(fitted.values()), encoding).copy_memory()
        made = {size: encoding.jpeg(resized(largest, size)) for size in set(fitted.values())}
    return {box: made[size] for box, size in fitted.items()}


def _scaled(feed: Feed, deadline: Deadline, picture: Picture, size: tuple[int, int], encoding: Encoding) -> Image:
    """The pipeline: sRGB, oriented, without transparency, in this size as displayed. Computed when it is asked for."""
    stored = picture.as_stored(*size)
    by = choose(Rect(0, 0, *picture.stored), stored, picture.stored, shrinks(picture))
    image = ordinary(open_pixels(feed, picture, by, deadline))
    if image.hasalpha():
        # before scaling, or the colours of transparent pixels would run into the others
        image = flatten(to_srgb(image), encoding.background)
    image = to_srgb(resized(image, stored))
    if picture.orientation > 1:
        image = image.copy_memory().autorot()  # rows in another order, which a sequential source can't give
    return image
