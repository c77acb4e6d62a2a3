"""The pipeline of the IIIF Image API: region → size → rotation → quality → format (section 4 of both versions)."""

from __future__ import annotations

from typing import BinaryIO

import pyvips

from imaging.colour import Image, flatten, ordinary, to_srgb
from imaging.deadline import Deadline
from imaging.encoding import Encoding
from imaging.errors import BadRequest, BrokenImage, ImageError
from imaging.feed import Feed
from imaging.limits import Limits
from imaging.opening import open_pixels, shrinks
from imaging.orientation import stored
from imaging.outputs import BITS, Output, check, outputs
from imaging.picture import Picture, look
from imaging.pyramid import Tiles
from imaging.reduction import choose, reduced
from imaging.region import Rect
from imaging.request import Order, Quality
from imaging.resizing import resized
from imaging.rotation import Rotation
from imaging.watermark import Mark

_DEEP = "ushort"
_OPAQUE = {"uchar": 255, "ushort": 65535}


def render(
    reader: BinaryIO, order: Order, limits: Limits, encoding: Encoding, *, page: int = 1, mark: Mark | None = None
) -> bytes:
    """The bytes of the rendition that ``order`` asks for, from a page of the picture that ``reader`` holds.

    Colours as ``to_srgb`` makes them, oriented; transparency is kept where the format can, else it lies on the
    background. NotAnImage, NotReadHere, TooLargeImage as ``inspect``; TookTooLong; BrokenImage when not the whole
    picture can be decoded; BadRequest for a format that can't be written here. An error of the reader passes to the
    caller.
    """
    output = _output(order)
    with Feed(reader) as feed, Deadline(limits.seconds) as deadline:
        picture = look(feed, limits, page)
        image = _region(feed, picture, order, deadline)
        return finish(_scaled(image, picture, order, output, encoding), order, output, encoding, mark)


def render_tiles(tiles: Tiles, order: Order, limits: Limits, encoding: Encoding, mark: Mark | None = None) -> bytes:
    """The same from a pyramid: its smallest level that suffices. BrokenImage for a damaged one."""
    output = _output(order)
    try:
        with Deadline(limits.seconds) as deadline:
            image = deadline.watch(tiles.index.region(tiles.read, order))
            return finish(resized(image, order.size), order, output, encoding, mark)
    except pyvips.Error as error:
        raise BrokenImage(f"a pyramid that can't be decoded: {error}") from error


def finish(image: Image, order: Order, output: Output, encoding: Encoding, mark: Mark | None = None) -> bytes:
    """The bytes of an image that is in its final size and in sRGB or gray."""
    if order.rotation != Rotation():
        image = _turned(image, order.rotation, output)
    if mark is not None:
        image = mark.on(image.colourspace("rgb16" if image.format == _DEEP else "srgb"))
    data = output.write(_of_quality(image, order.quality), encoding)
    if not check(output, data):
        raise ImageError(f"the encoder gave no {output.suffix}")
    return data


def _output(order: Order) -> Output:
    output = outputs().get(order.format)
    if output is None:
        raise BadRequest(f"format: {order.format} can't be written here, but {', '.join(outputs())}")
    return output


def _region(feed: Feed, picture: Picture, order: Order, deadline: Deadline) -> Image:
    """The region's pixels, as they are stored, from the smallest decoding that suffices."""
    whole = picture.stored
    rect = stored(order.region, picture.orientation, picture.width, picture.height)
    by = choose(rect, picture.as_stored(*order.size), whole, shrinks(picture))
    image = open_pixels(feed, picture, by, deadline)
    part = reduced(rect, by, image.width, image.height, whole)
    if part == Rect(0, 0, image.width, image.height):
        return image
    return image.extract_area(part.x, part.y, part.width, part.height)


def _scaled(image: Image, picture: Picture, order: Order, output: Output, encoding: Encoding) -> Image:
    """In its final size, in sRGB or gray, oriented."""
    image = ordinary(image)
    depth = 16 if output.deep and image.format == _DEEP else 8
    if image.hasalpha():
        image = to_srgb(image, depth)
        if not output.alpha:
            # before scaling, or the colours of transparent pixels would run into the others
            image = flatten(image, encoding.background)
    image = to_srgb(resized(image, picture.as_stored(*order.size)), depth)
    if picture.orientation > 1:
        image = image.copy_memory().autorot()  # rows in another order, which a sequential source can't give
    return image


def _turned(image: Image, rotation: Rotation, output: Output) -> Image:
    image = image.copy_memory()
    if rotation.mirrored:
        image = image.fliphor()
    quarters = {0: None, 90: "d90", 180: "d180", 270: "d270"}
    if rotation.degrees in quarters:
        turn = quarters[int(rotation.degrees)]
        return image.rot(turn) if turn else image
    smooth, kind, degrees = pyvips.Interpolate.new("bicubic"), image.format, float(rotation.degrees)
    if not output.alpha:
        image = image.colourspace("srgb")
        return image.rotate(degrees, interpolate=smooth, background=[0, 0, 0])
    if not image.hasalpha():
        image = image.bandjoin(_OPAQUE[kind])
    return image.premultiply().rotate(degrees, interpolate=smooth).unpremultiply().cast(kind)


def _of_quality(image: Image, quality: Quality) -> Image:
    deep = image.format == _DEEP
    if quality is Quality.COLOR:
        return image.colourspace("rgb16" if deep else "srgb")
    if quality is Quality.GRAY:
        return image.colourspace("grey16" if deep else "b-w")
    if quality is Quality.BITONAL:
        image = flatten(image.colourspace("srgb"), (255, 255, 255)).colourspace("b-w")
        image = (image > 127).copy(interpretation="b-w")
        image.set_type(pyvips.GValue.gint_type, BITS, 1)
    return image
