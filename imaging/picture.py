"""What an image is, from its header alone."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyvips

from imaging import foreign, formats, svg
from imaging.errors import NoSuchPage, NotAnImage, TooLargeImage
from imaging.feed import Feed
from imaging.formats import Format
from imaging.frames import first_of_gif, first_of_webp
from imaging.limits import Limits
from imaging.metadata import rights
from imaging.tiff import layout
from imaging.ycbcr import YCbCr

_ROWS = 256
"""Rows that libvips keeps of a picture that streams, in the loader and in what follows."""
_WITHIN = Limits(whole_frame_pixels=16_000_000, streamed_pixels=16_000_000)
"""For an image within a drawing."""
_QUARTER_TURNS = range(5, 9)
_PAGED = (formats.TIFF.name, formats.AVIF.name, formats.HEIC.name)


@dataclass(frozen=True)
class Picture:
    """An image that is within the limits; its pixels have not been looked at."""

    format: str
    """One of ``imaging.formats``, by name."""
    mime: str
    width: int
    """Pixels as displayed: EXIF orientation applied."""
    height: int
    pages: int
    """Of a TIFF, AVIF, HEIC or PDF; an animation counts as one, and its first frame is the picture."""
    whole_frame: bool
    """The decoder holds the whole frame in memory."""
    orientation: int = 1
    """EXIF's, 1 to 8."""
    tiled: bool = False
    page: int = 1
    ycbcr: YCbCr | None = None
    """What is left to be done to the colours that the decoder gives."""
    rights: str | None = None
    """The URI of a licence or a statement of rights that the metadata names."""

    def as_stored(self, width: int, height: int) -> tuple[int, int]:
        """These displayed dimensions in terms of the stored pixels, or the other way round."""
        return (height, width) if self.orientation in _QUARTER_TURNS else (width, height)

    @property
    def stored(self) -> tuple[int, int]:
        """Width and height of the pixels as they are stored."""
        return self.as_stored(self.width, self.height)


def inspect(reader: BinaryIO, limits: Limits, page: int = 1) -> Picture:
    """Look at the header of the image that ``reader`` (seekable) holds, or of one of its pages, counted from 1.

    NotAnImage, NotReadHere, NoSuchPage, BrokenImage; TooLargeImage for what lies beyond the limits, before a pixel is
    decoded. An error of the reader passes to the caller.
    """
    with Feed(reader) as feed:
        return look(feed, limits, page)


def look(feed: Feed, limits: Limits, page: int = 1) -> Picture:
    """``inspect`` for a feed that goes on to decoding; afterwards it holds of an animation only the first frame, and a
    drawing without what could do harm."""
    known = formats.recognise(feed.read(0, formats.HEAD))
    if known is None and limits.svg and svg.begins(feed.read(0, svg.HEAD)):
        return _drawing(feed, limits, page)
    if known is None:
        raise NotAnImage("of no image format that is read here" if feed.size else "empty")
    pages, rows, tiled, ycbcr = 1, _ROWS, False, None
    if known is formats.TIFF:
        directories = layout(feed, limits.pages, page)
        pages, tiled, rows = directories.pages, directories.tiled, max(_ROWS, directories.rows)
        ycbcr = directories.ycbcr
    elif known is formats.GIF:
        feed.replace(first_of_gif(feed))
    elif known is formats.WEBP and (first := first_of_webp(feed)):
        feed.replace(first)
    if known.whole_frame and feed.size > limits.whole_frame_bytes:
        raise TooLargeImage(f"{feed.size} bytes of {known.name}, beyond the limit of {limits.whole_frame_bytes}")
    if known.package:
        foreign.check_installed(known)
        if not known.loader:
            return _foreign(feed, known, limits, page)
    image = pyvips.Operation.call(known.loader, feed.source(), access="sequential")
    pages = max(pages, _number(image, "n-pages", 1))
    if page > pages:
        raise NoSuchPage(f"page: there are {pages}")
    if option := page_option(known.name, page):
        image = pyvips.Operation.call(known.loader, feed.source(), access="sequential", **option)
    turned = _number(image, "orientation", 1)
    orientation = turned if turned in range(1, 9) else 1
    picture = Picture(
        format=known.name,
        mime=known.mime,
        width=image.height if orientation in _QUARTER_TURNS else image.width,
        height=image.width if orientation in _QUARTER_TURNS else image.height,
        pages=pages,
        whole_frame=_whole_frame(known, image),
        orientation=orientation,
        tiled=tiled,
        page=page,
        ycbcr=ycbcr,
        rights=rights(image),
    )
    _check(picture, image.height if picture.whole_frame else min(rows, image.height), limits)
    return picture


def page_option(name: str, page: int) -> dict[str, int]:
    """What tells libvips' loader of this format which page is meant; its own count begins at 0."""
    return {"page": page - 1} if page > 1 and name in _PAGED else {}


def _foreign(feed: Feed, known: Format, limits: Limits, page: int) -> Picture:
    found = foreign.look(feed, known, page)
    picture = Picture(known.name, known.mime, found.width, found.height, found.pages, whole_frame=True, page=page)
    _check(picture, found.height, limits)
    return picture


def _drawing(feed: Feed, limits: Limits, page: int) -> Picture:
    """Of an SVG; the feed holds it cleaned afterwards."""
    if page > 1:
        raise NoSuchPage("page: there is 1")
    if feed.size > svg.LARGEST:
        raise TooLargeImage(f"an SVG of {feed.size} bytes, beyond the limit of {svg.LARGEST}")
    drawing = svg.cleaned(feed.read(0, feed.size), lambda data: inspect(io.BytesIO(data), _WITHIN))
    feed.replace(drawing.data)
    known = formats.SVG
    picture = Picture(known.name, known.mime, drawing.width, drawing.height, 1, whole_frame=True)
    _check(picture, picture.height, limits)
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
