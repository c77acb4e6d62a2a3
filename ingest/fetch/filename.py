"""The name of a file as its source gives it. No library reads Content-Disposition as servers write it."""

from __future__ import annotations

import re
import unicodedata
from typing import Final
from urllib.parse import unquote_to_bytes

from ingest.fetch.url import split

LENGTH_LIMIT: Final = 255  # bytes of UTF-8: what common file systems take
NAMELESS: Final = "resource"
_PARAMETER: Final = re.compile(r'(?:^|[;\s])(filename\*?)\s*=\s*("(?:[^"\\]|\\.)*"|[^;]*)', re.IGNORECASE)


def filename(disposition: str | None, url: str) -> str:
    """``filename*`` before ``filename`` of a Content-Disposition header (RFC 6266), else the last segment of the URL's
    path, decoded once; cleaned, and "resource" when nothing is left.

    ``disposition`` is as http.client gives it, each byte a character.
    """
    return clean(_disposed(disposition or "")) or clean(_segment(url)) or NAMELESS


def clean(name: str) -> str:
    """The part after the last separator, without control and formatting characters (as those that turn the direction
    of writing), leading dots and outer spaces; cut to 255 bytes, the extension kept. May be empty."""
    name = re.split(r"[/\\]", name)[-1]
    name = "".join(char for char in name if unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp"))
    name = unicodedata.normalize("NFC", name).strip().lstrip(". ").rstrip()
    stem, dot, extension = name.rpartition(".")
    if not dot or len(extension) > 16:
        stem, dot, extension = name, "", ""
    room = LENGTH_LIMIT - len(f"{dot}{extension}".encode())
    return stem.encode()[:room].decode(errors="ignore") + dot + extension


def _disposed(header: str) -> str:
    found: dict[str, str] = {}
    for name, value in _PARAMETER.findall(header):
        found.setdefault(name.lower(), value.strip())
    return _extended(found.get("filename*", "")) or _plain(found.get("filename", ""))


def _extended(value: str) -> str:
    """RFC 8187: charset'language'percent-escaped bytes. Empty when it isn't that."""
    charset, mark, rest = value.strip('"').partition("'")
    _, second, escaped = rest.partition("'")
    if not (mark and second) or charset.lower() not in ("utf-8", "iso-8859-1"):
        return ""
    try:
        return unquote_to_bytes(escaped).decode(charset)
    except UnicodeDecodeError:
        return ""


def _plain(value: str) -> str:
    if value.startswith('"'):
        # only these two escapes: others are paths of Windows
        value = re.sub(r'\\(["\\])', r"\1", value[1:].removesuffix('"'))
    return _decoded(value.encode("latin-1", "replace"))


def _segment(url: str) -> str:
    return _decoded(unquote_to_bytes(re.split(r"[?;]", split(url).rest)[0].rpartition("/")[2]))


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")
