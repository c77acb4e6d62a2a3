"""What an image is, from its header alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, BinaryIO

import pyvips

from imaging import formats
from imaging.errors import NotAnImage, TooLargeImage
from imaging.feed import Feed
from imaging.formats import Format
from imaging.frames import first_of_gif, first_of_webp
from imaging.limits import Limits
from imaging.tiff import layout

_ROWS = 256
"""Rows that libvips keeps of a picture that streams, in the loader and in what follows."""
_QUARTER_TURNS = range(5, 9)


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
    """Of a TIFF, AVIF or HEIC; an animation counts as one. The first page or frame is the picture."""
    whole_frame: bool
    """The decoder holds the whole frame in memory."""
    orientation: int = 1
    """EXIF's, 1 to 8."""
    tiled: bool = False

    def as_stored(self, width: int, height: int) -> tuple[int, int]:
        """These displayed dimensions in terms of the stored pixels, or the other way round."""
        return (height, width) if self.orientation in _QUARTER_TURNS else (width, height)

    @property
    def stored(self) -> tuple[int, int]:
        """Width and height of the pixels as they are stored."""
        return self.as_stored(self.width, self.height)


def inspect(reader: BinaryIO, limits: Limits) -> Picture:
    """Look at the header of the image that ``reader`` (seekable) holds.

    NotAnImage, BrokenImage; TooLargeImage for what lies beyond the limits, before a pixel is decoded. An error of the
    reader passes to the caller.
    """
    with Feed(reader) as feed:
        return look(feed, limits)


def look(feed: Feed, limits: Limits) -> Picture:
    """``inspect`` for a feed that goes on to decoding; of an animation it holds only the first frame afterwards."""
    known = formats.recognise(feed.read(0, formats.HEAD))
    if known is None:
        raise NotAnImage("of no image format that is read here" if feed.size else "empty")
    pages, rows, tiled = 1, _ROWS, False
    if known is formats.TIFF:
        directories = layout(feed, limits.pages)
        pages, tiled, rows = directories.pages, directories.tiled, max(_ROWS, directories.rows)
    elif known is formats.GIF:
        feed.replace(first_of_gif(feed))
    elif known is formats.WEBP and (first := first_of_webp(feed)):
        feed.replace(first)
    if known.whole_frame and feed.size > limits.whole_frame_bytes:
        raise TooLargeImage(f"{feed.size} bytes of {known.name}, beyond the limit of {limits.whole_frame_bytes}")
    image = pyvips.Operation.call(known.loader, feed.source(), access="sequential")
    turned = _number(image, "orientation", 1)
    orientation = turned if turned in range(1, 9) else 1
    picture = Picture(
        format=known.name,
        mime=known.mime,
        width=image.height if orientation in _QUARTER_TURNS else image.width,
        height=image.width if orientation in _QUARTER_TURNS else image.height,
        pages=max(pages, _number(image, "n-pages", 1)),
        whole_frame=_whole_frame(known, image),
        orientation=orientation,
        tiled=tiled,
    )
    _check(picture, image.height if picture.whole_frame else min(rows, image.height), limits)
    return picture


def _whole_frame(known: Format, image: Any) -> bool:
    """libvips says "interlaced" of a JPEG in several scans, too, progressive or not: libjpeg keeps them all."""
    return known.whole_frame or bool(_number(image, "interlaced", 0))


def _number(image: Any, name: str, default: int) -> int:
    return int(image.get(name)) if image.get_typeof(name) else default


def _check(picture: Picture, rows: int, limits: Limits) -> None:
    """Raise TooLargeImage when the picture is, or when the rows that are held together are."""
    held, pixels = picture.stored[0] * rows, picture.width * picture.height
    size = f"{picture.width} × {picture.height} pixels"
    if pixels > limits.streamed_pixels:
        raise TooLargeImage(f"{size}, beyond the limit of {limits.streamed_pixels}")
    if held > limits.whole_frame_pixels:
        how = "decoded as a whole" if picture.whole_frame else f"decoded {rows} rows at a time"
        raise TooLargeImage(f"{size}, {how}, beyond the limit of {limits.whole_frame_pixels}")
