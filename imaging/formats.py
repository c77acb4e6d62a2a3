"""The formats that are read, and how their first bytes tell them.

libvips would find a loader by itself, and among its loaders are some for text and for its own formats. Here the first
bytes choose one of a few, so that nothing else is reachable, whatever the build brings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

HEAD: Final = 64
"""Bytes that ``recognise`` wants to see."""


@dataclass(frozen=True)
class Format:
    name: str
    mime: str
    loader: str
    """The libvips operation; empty where libvips doesn't even read the header."""
    whole_frame: bool = False
    """Always decoded as a whole frame; JPEG and PNG may be, which their headers tell."""
    package: str = ""
    """The library that decodes in place of libvips, whose build may lack it."""


JPEG: Final = Format("jpeg", "image/jpeg", "jpegload_source")
PNG: Final = Format("png", "image/png", "pngload_source")
GIF: Final = Format("gif", "image/gif", "gifload_source", whole_frame=True)
WEBP: Final = Format("webp", "image/webp", "webpload_source", whole_frame=True)
TIFF: Final = Format("tiff", "image/tiff", "tiffload_source")
AVIF: Final = Format("avif", "image/avif", "heifload_source", whole_frame=True)
HEIC: Final = Format("heic", "image/heic", "heifload_source", whole_frame=True, package="pi_heif")
JP2: Final = Format("jp2", "image/jp2", "", whole_frame=True, package="imagecodecs")
J2K: Final = Format("j2k", "image/x-jp2-codestream", "", whole_frame=True, package="imagecodecs")
JXL: Final = Format("jxl", "image/jxl", "", whole_frame=True, package="imagecodecs")
PDF: Final = Format("pdf", "application/pdf", "", package="pypdfium2")
SVG: Final = Format("svg", "image/svg+xml", "", whole_frame=True, package="defusedxml")
"""Read only where ``Limits.svg`` says so; told by ``imaging.svg.begins``."""

FORMATS: Final = (JPEG, PNG, GIF, WEBP, TIFF, AVIF, HEIC, JP2, J2K, JXL, PDF)

_AVIF_BRANDS: Final = {b"avif", b"avis"}
_HEIC_BRANDS: Final = {b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"}
_TIFF_STARTS: Final = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")  # the last two: BigTIFF

_STARTS: Final = (
    (b"\0\0\0\x0cjP  \r\n\x87\n", JP2),
    (b"\xff\x4f\xff\x51", J2K),
    (b"\0\0\0\x0cJXL \r\n\x87\n", JXL),
    (b"\xff\x0a", JXL),
    (b"%PDF-", PDF),
)


def recognise(head: bytes) -> Format | None:
    """The format of a file that begins with ``head``, None for any that isn't read here."""
    if head.startswith(b"\xff\xd8\xff"):
        return JPEG
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return PNG
    if head.startswith((b"GIF87a", b"GIF89a")):
        return GIF
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return WEBP
    if head.startswith(_TIFF_STARTS):
        return TIFF
    for start, known in _STARTS:
        if head.startswith(start):
            return known
    if head[4:8] == b"ftyp":
        return _of_brands(head)
    return None


def _of_brands(head: bytes) -> Format | None:
    """Of an ISO base media file, by its major brand and its compatible ones (ISO/IEC 14496-12, 4.3)."""
    end = min(int.from_bytes(head[:4], "big"), len(head))
    brands = {head[8:12], *(head[at : at + 4] for at in range(16, end, 4))}
    # a still AVIF may call itself mif1 first, so its own brand goes before
    if brands & _AVIF_BRANDS:
        return AVIF
    return HEIC if brands & _HEIC_BRANDS else None
