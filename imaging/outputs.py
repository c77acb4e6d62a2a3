"""The formats that renditions are written in, as far as the installed libraries can."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import pyvips

from imaging import foreign
from imaging.colour import Image
from imaging.encoding import Encoding


@dataclass(frozen=True)
class Output:
    suffix: str
    mime: str
    write: Callable[[Image, Encoding], bytes]
    """Bytes of an sRGB or gray image; one of a single bit is told by its ``bits-per-sample``."""
    start: bytes
    """How every file of this format begins, at ``start_at``."""
    start_at: int = 0
    alpha: bool = False
    """Keeps transparency."""
    deep: bool = False
    """Keeps 16 bits."""
    lossless: bool = False


def _jpg(image: Image, encoding: Encoding) -> bytes:
    return encoding.jpeg(image)


def _png(image: Image, encoding: Encoding) -> bytes:
    image, keep = encoding.labelled(image)
    options = {"bitdepth": 1} if _bitonal(image) else {}
    data: bytes = image.pngsave_buffer(compression=6, keep=keep, **options)
    return data


def _webp(image: Image, encoding: Encoding) -> bytes:
    image, keep = encoding.labelled(image)
    data: bytes = image.webpsave_buffer(Q=encoding.quality, effort=2, keep=keep)
    return data


def _tif(image: Image, encoding: Encoding) -> bytes:
    image, keep = encoding.labelled(image)
    options = (
        {"bitdepth": 1, "compression": "ccittfax4"}
        if _bitonal(image)
        else {"compression": "deflate", "predictor": "horizontal"}
    )
    data: bytes = image.tiffsave_buffer(keep=keep, **options)
    return data


def _gif(image: Image, _: Encoding) -> bytes:
    data: bytes = image.gifsave_buffer(effort=3, keep="none")
    return data


def _avif(image: Image, encoding: Encoding) -> bytes:
    image, keep = encoding.labelled(image)
    data: bytes = image.heifsave_buffer(Q=encoding.quality, compression="av1", effort=2, keep=keep)
    return data


def _jp2(image: Image, encoding: Encoding) -> bytes:
    return foreign.write_jp2(image, encoding.quality)


def _pdf(image: Image, encoding: Encoding) -> bytes:
    return foreign.write_pdf(encoding.jpeg(image), image.width, image.height)


def _bitonal(image: Image) -> bool:
    return bool(image.get_typeof(BITS)) and image.get(BITS) == 1


BITS: Final = "bits-per-sample"
_ALL: Final[tuple[tuple[Output, str], ...]] = (
    (Output("jpg", "image/jpeg", _jpg, b"\xff\xd8"), "jpegsave_buffer"),
    (Output("png", "image/png", _png, b"\x89PNG", alpha=True, deep=True, lossless=True), "pngsave_buffer"),
    (Output("webp", "image/webp", _webp, b"WEBP", 8, alpha=True), "webpsave_buffer"),
    (Output("tif", "image/tiff", _tif, b"II*\0", alpha=True, deep=True, lossless=True), "tiffsave_buffer"),
    (Output("gif", "image/gif", _gif, b"GIF8", alpha=True), "gifsave_buffer"),
    (Output("avif", "image/avif", _avif, b"ftyp", 4, alpha=True), "heifsave_buffer"),
    (Output("jp2", "image/jp2", _jp2, b"jP  ", 4), "imagecodecs"),
    (Output("pdf", "application/pdf", _pdf, b"%PDF-"), "pypdfium2"),
)


@cache
def outputs() -> dict[str, Output]:
    """The formats that can be written here, by suffix, in the order in which they are recommended."""
    return {output.suffix: output for output, needs in _ALL if _there(needs)}


def _there(name: str) -> bool:
    if name == "heifsave_buffer":
        return _writes_avif()
    if name.endswith("_buffer"):
        return bool(pyvips.type_find("VipsOperation", name))
    return importlib.util.find_spec(name) is not None


def _writes_avif() -> bool:
    """libheif has its encoders as plugins, which may be missing."""
    try:
        return bool(pyvips.Image.black(16, 16).heifsave_buffer(compression="av1"))
    except (pyvips.Error, AttributeError):
        return False


def check(output: Output, data: Any) -> bool:
    """Whether the data begins as the format does."""
    return bool(data[output.start_at :].startswith(output.start))
