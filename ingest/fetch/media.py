"""What kind of file it is: what the first bytes show, what the header says, what the caller expects.

The ``filetype`` library knows binary formats by their first bytes. It takes a text that begins with "BM" for a bitmap
and knows no text formats, so texts are told apart here first.
"""

from __future__ import annotations

import codecs
import re
from typing import Final

import filetype

HEAD: Final = 8192  # bytes; enough for all signatures
OCTETS: Final = "application/octet-stream"
PLAIN: Final = "text/plain"
HTML: Final = frozenset({"text/html", "application/xhtml+xml"})

_GENERIC: Final = {
    OCTETS,
    "binary/octet-stream",
    "application/binary",
    "application/download",
    "application/force-download",
    "application/x-download",
    "application/unknown",
    "unknown/unknown",
    "*/*",
}
_TYPE: Final = re.compile(r"[a-z0-9!#$&^_.+-]{1,100}/[a-z0-9!#$&^_.+-]{1,100}|\*/\*")
_ALIASES: Final = {
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "image/x-png": "image/png",
    "image/apng": "image/png",
    "image/x-ms-bmp": "image/bmp",
    "image/tif": "image/tiff",
    "image/x-tiff": "image/tiff",
    "image/jpx": "image/jp2",
    "application/x-pdf": "application/pdf",
    "application/x-gzip": "application/gzip",
    "application/x-zip-compressed": "application/zip",
    "audio/mp3": "audio/mpeg",
    "audio/x-wav": "audio/wav",
    "audio/x-flac": "audio/flac",
    "audio/x-aiff": "audio/aiff",
}
_SIGNATURES: Final[tuple[tuple[int, bytes, str], ...]] = (
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (0, b"\xff\x4f\xff\x51\x00", "image/j2c"),
    (0, b"\x00\x00\x00\x0cjP  \r\n\x87\n", "image/jp2"),
    (0, b"\xff\x0a", "image/jxl"),
    (0, b"\x00\x00\x00\x0cJXL \r\n\x87\n", "image/jxl"),
    (0, b"II\x2b\x00", "image/tiff"),  # BigTIFF
    (0, b"MM\x00\x2b", "image/tiff"),
    (0, b"AT&TFORM", "image/vnd.djvu"),
    (0, b"glTF", "model/gltf-binary"),
    (4, b"ftypavif", "image/avif"),
    (4, b"ftypavis", "image/avif"),
    (4, b"ftypheix", "image/heic"),
)
_MARKS: Final = (
    (b"%PDF-", "application/pdf"),
    (b"%!PS", "application/postscript"),
    (b"{\\rtf", "application/rtf"),
)
_PROLOGUE: Final = re.compile(rb"\s+|<!--.*?-->|<\?.*?\?>", re.DOTALL)
_PAGE: Final = re.compile(rb"<(?:!doctype\s+html|html|head|body|title|meta|script|style|iframe)[\s>/]", re.IGNORECASE)
_SVG: Final = re.compile(rb"<(?:!doctype\s+svg|(?:[a-z0-9_]{1,40}:)?svg)[\s>]", re.IGNORECASE)
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_CONTAINERS: Final = {  # a file that shows the one may truthfully be called any of the others
    "application/zip": re.compile(r"application/(?!pdf|json|xml|gzip|rtf).*|model/.*|image/openraster"),
    "application/gzip": re.compile(r"application/.*(gzip|tgz|gtar|tar|warc|compressed).*|image/svg\+xml"),
    "application/xml": re.compile(r".*[/+]xml|text/.*|application/(vnd\.|rss|atom|rdf|gml|kml|mets|x-).*"),
    "application/xhtml+xml": re.compile(r"application/xml"),
    "text/html": re.compile(r"text/plain|application/xhtml\+xml"),
    "image/tiff": re.compile(r"image/(x-.*|dng|vnd\.(?!microsoft).*)"),
    "image/svg+xml": re.compile(r"application/xml|text/plain"),
    "image/heic": re.compile(r"image/hei[cf](-sequence)?"),
    "image/jp2": re.compile(r"image/jp[xm2h]"),
    "audio/ogg": re.compile(r"(audio|video|application)/(x-)?(ogg|opus|vorbis|theora|speex).*"),
    "audio/wav": re.compile(r"audio/(vnd\.)?wave?"),
    "video/mp4": re.compile(r"(video|audio|application)/(x-m4.|mp4.*|quicktime|3gpp.*)"),
    "audio/mp4": re.compile(r"(video|audio|application)/(x-m4.|mp4.*)"),
    "video/x-matroska": re.compile(r"(video|audio)/(webm|x-matroska|matroska).*"),
    "video/webm": re.compile(r"(video|audio)/(webm|x-matroska|matroska)"),
    "application/msword": re.compile(
        r"application/(?!pdf|json|xml|gzip|zip|rtf).*"
    ),  # one container for all old Office files
    "application/font-sfnt": re.compile(r"(font|application)/.*(ttf|otf|sfnt|font|opentype).*"),
    "application/font-woff": re.compile(r"(font|application)/.*woff.*"),
    "application/postscript": re.compile(r"(application|image)/.*(postscript|eps|illustrator).*"),
}


def named(value: str | None) -> str | None:
    """The type that a Content-Type header names: up to the first ``;`` or ``,``, in lower case, or None."""
    text = re.split(r"[;,]", value or "", maxsplit=1)[0].strip().lower()
    return text if _TYPE.fullmatch(text) else None


def sniffed(head: bytes) -> str | None:
    """What the first bytes show, or None. HEAD of them are looked at."""
    head = head[:HEAD]
    for offset, signature, kind in _SIGNATURES:
        if head.startswith(signature, offset):
            return kind
    text = _text(head.removeprefix(codecs.BOM_UTF8))
    readable = not _CONTROL.search(head)
    if text != PLAIN or (readable and _is_utf8(head)):
        return text
    guess: str | None = filetype.guess_mime(head)
    if guess is not None and guess != OCTETS:
        return _ALIASES.get(guess, guess)
    utf16 = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return PLAIN if readable or utf16 else None


def verdict(declared: str | None, received: str | None, shown: str | None) -> str:
    """The type under which the file is kept.

    What the bytes show counts, unless the header, or the caller's ``declared`` where the header says nothing, names a
    more special type that such bytes may have (a docx is a zip). Bytes that show nothing, or plain text only,
    contradict nobody.
    """
    claim = next((kind for kind in (received, declared) if kind and kind not in _GENERIC), None)
    if shown is None or shown == PLAIN:
        return claim or shown or OCTETS
    if claim is None:
        return shown
    claim = _ALIASES.get(claim, claim)
    fits = _CONTAINERS.get(shown)
    return claim if fits is not None and fits.fullmatch(claim) else shown


def _is_utf8(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def _text(head: bytes) -> str:
    """The kind of a text by its own mark, else plain text."""
    for mark, kind in _MARKS:
        if head.startswith(mark):
            return kind
    start, is_xml = 0, head.lstrip().startswith(b"<?xml")
    while found := _PROLOGUE.match(head, start):
        start = found.end()
    if _SVG.match(head, start):
        return "image/svg+xml"
    if _PAGE.match(head, start):
        return "application/xhtml+xml" if is_xml else "text/html"
    return "application/xml" if is_xml else PLAIN
