"""What libvips' build may lack: JPEG 2000 and JPEG XL through imagecodecs, PDF through pypdfium2, HEIC through pi-heif.
All are extras.

They are imported where they are used. PDFium is not thread-safe: one lock is around whatever it does.
"""

from __future__ import annotations

import importlib.util
import io
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Protocol

import pyvips

from imaging import codestreams, formats
from imaging.codestreams import Dimensions
from imaging.colour import Image
from imaging.errors import BrokenImage, NoSuchPage, NotReadHere
from imaging.feed import Feed
from imaging.formats import Format

_PDFIUM: Final = threading.Lock()
_DOTS: Final = 200
"""Dots an inch at which a page of a PDF is drawn; fewer for large ones."""
_LARGEST_PAGE: Final = 40_000_000
"""Pixels of a page of a PDF: a page may be 5 metres wide and say little."""


class _Shape(Protocol):
    @property
    def width(self) -> int: ...
    @property
    def height(self) -> int: ...
    @property
    def page(self) -> int: ...


def check_installed(known: Format) -> None:
    """Raise NotReadHere where the library that reads the format is missing."""
    if importlib.util.find_spec(known.package) is None:
        raise NotReadHere(f"{known.name} is read by {known.package}, which isn't installed")


def look(feed: Feed, known: Format, page: int) -> Dimensions:
    """Width, height in pixels and pages, from the header. NoSuchPage, BrokenImage."""
    if known is formats.PDF:
        with _pdf(feed) as document:
            return _page_size(document, page)
    if page > 1:
        raise NoSuchPage("page: there is 1")
    return codestreams.jxl(feed) if known is formats.JXL else codestreams.jp2(feed)


def page_sizes(feed: Feed) -> Iterator[tuple[int, int] | None]:
    """Width and height of each page of a PDF, in pixels; None for one that can't be drawn. BrokenImage."""
    with _pdf(feed) as document:
        for page in range(1, len(document) + 1):
            try:
                found = _page_size(document, page)
            except BrokenImage:
                yield None
            else:
                yield found.width, found.height


def pixels(feed: Feed, known: Format, shape: _Shape) -> Image:
    """The picture, in memory. BrokenImage."""
    if known is formats.PDF:
        return _drawn(feed, shape)
    if known is formats.HEIC:
        return _heic(feed, shape)
    import imagecodecs

    decode = imagecodecs.jpegxl_decode if known is formats.JXL else imagecodecs.jpeg2k_decode
    try:
        array = decode(feed.read(0, feed.size))
    except (imagecodecs.Jpeg2kError, imagecodecs.JpegxlError, ValueError) as error:
        raise BrokenImage(f"{known.package}: {error}") from error
    return _of_array(array, shape)


def _of_array(array: Any, shape: _Shape) -> Image:
    if array.shape[:2] != (shape.height, shape.width) or array.ndim > 3:
        raise BrokenImage("has other dimensions than its header says")
    if array.dtype.kind != "u" or array.dtype.itemsize > 2:
        array = array.clip(0, None).astype("uint16")
    image = pyvips.Image.new_from_array(array)
    few = image.bands < 3
    if image.format == "ushort":
        return image.copy(interpretation="grey16" if few else "rgb16")
    return image.copy(interpretation="b-w" if few else "srgb")


def _heic(feed: Feed, shape: _Shape) -> Image:
    """With the metadata and the profile as libvips reads them, which lacks the decoder alone."""
    import numpy
    import pi_heif

    data = feed.read(0, feed.size)
    try:
        file = pi_heif.open_heif(io.BytesIO(data), convert_hdr_to_8bit=False)
        one = file[file.primary_index if shape.page == 1 else shape.page - 1]
        # a copy: the file owns the pixels, and goes
        image = _of_array(numpy.array(one), shape).copy()
    except (ValueError, EOFError, RuntimeError, SyntaxError, IndexError) as error:
        raise BrokenImage(f"pi_heif: {error}") from error
    header = pyvips.Image.heifload_buffer(data)
    for name in header.get_fields():
        if name.startswith("exif-") or name in ("icc-profile-data", "xmp-data"):
            image.set_type(header.get_typeof(name), name, header.get(name))
    return image


def _page_size(document: Any, page: int) -> Dimensions:
    if page > len(document):
        raise NoSuchPage(f"page: there are {len(document)}")
    width, height = document.get_page_size(page - 1)  # points: 72 an inch
    if not (0 < width < 1e6 and 0 < height < 1e6):
        raise BrokenImage("a page without an area")
    scale = min(_DOTS / 72, math.sqrt(_LARGEST_PAGE / (width * height)))
    return Dimensions(max(1, round(width * scale)), max(1, round(height * scale)), len(document))


def _drawn(feed: Feed, shape: _Shape) -> Image:
    """One page; the others are not read."""
    with _pdf(feed) as document:
        page = document[shape.page - 1]
        width, height = page.get_size()
        scale = max(shape.width / width, shape.height / height)
        array = page.render(scale=scale, rev_byteorder=True, may_draw_forms=False).to_numpy()
        image = pyvips.Image.new_from_array(array[:, :, :3].copy()).copy(interpretation="srgb")
        page.close()
    # PDFium rounds a page's sides up
    return image.crop(0, 0, min(image.width, shape.width), min(image.height, shape.height)).gravity(
        "north-west", shape.width, shape.height, extend="copy"
    )


@contextmanager
def _pdf(feed: Feed) -> Iterator[Any]:
    import pypdfium2

    with _PDFIUM:
        try:
            document = pypdfium2.PdfDocument(io.BufferedReader(_Reading(feed)), autoclose=False)
        except pypdfium2.PdfiumError as error:
            raise BrokenImage(f"can't be opened: {error}") from error
        try:
            yield document
        except pypdfium2.PdfiumError as error:
            raise BrokenImage(f"can't be drawn: {error}") from error
        finally:
            document.close()


class _Reading(io.RawIOBase):
    """A feed as a file."""

    def __init__(self, feed: Feed) -> None:
        self._feed, self._at = feed, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._feed.size}[whence]
        return self._at

    def readinto(self, buffer: Any, /) -> int:
        data = self._feed.attempt(self._at, len(buffer))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def write_jp2(image: Image, quality: int) -> bytes:
    """A JP2 of an 8-bit image of one or three bands. ``quality``: libjpeg's scale, from which a PSNR is made."""
    import imagecodecs

    decibels = 30 + quality // 5  # 45 at 75
    return bytes(imagecodecs.jpeg2k_encode(image.numpy(), level=decibels, codecformat="jp2"))


def write_pdf(jpeg: bytes, width: int, height: int) -> bytes:
    """A PDF of one page, filled by this JPEG; a pixel is a point."""
    import pypdfium2

    out = io.BytesIO()
    with _PDFIUM:
        document = pypdfium2.PdfDocument.new()
        try:
            picture = pypdfium2.PdfImage.new(document)
            picture.load_jpeg(io.BytesIO(jpeg), inline=True)
            picture.set_matrix(pypdfium2.PdfMatrix().scale(width, height))
            page = document.new_page(width, height)
            page.insert_obj(picture)
            page.gen_content()
            document.save(out)
        finally:
            document.close()
    return out.getvalue()
