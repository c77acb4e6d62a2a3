"""What the viewer page loads: its own script and style, and what ``build_viewer.py`` got from npm.

Every file is served under a name that holds a hash of its bytes, so that caches may keep it for ever. They are few and
small, and read once.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from falcon import Request, Response

from app.conditional import is_held
from app.problems import not_found
from app.viewpage import Links

FOLDER: Final = Path(__file__).parent / "viewer"
LIBRARY: Final = "dist/openseadragon.js"
TYPES: Final = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}


GZIP: Final = re.compile(r"(?:^|,)\s*gzip\s*(?:;\s*q=(?!0(?:\.0*)?\s*(?:,|$))[^,]*)?(?:,|$)", re.IGNORECASE)
"""In Accept-Encoding, unless with a weight of 0 (RFC 9110, 12.5.3)."""


@dataclass(frozen=True)
class File:
    data: bytes
    type: str
    tag: str
    packed: bytes
    """``data`` in gzip: a third of it."""


@dataclass(frozen=True)
class Bundle:
    """The files under the names by which they are served, and the names that the page needs."""

    files: dict[str, File]
    links: Links


@cache
def bundle(folder: Path = FOLDER) -> Bundle:
    """Read them. Where npm's part is missing, the page's links say so."""
    files: dict[str, File] = {}

    def add(path: Path) -> str:
        data = path.read_bytes()
        tag = hashlib.sha256(data).hexdigest()[:20]
        name = f"{path.stem}-{tag}{path.suffix}"
        files[name] = File(data, TYPES[path.suffix], tag, gzip.compress(data, mtime=0))
        return name

    scripts: tuple[str, ...] = ()
    if (folder / LIBRARY).is_file():
        scripts = (add(folder / LIBRARY), add(folder / "viewer.js"))
    return Bundle(files, Links(add(folder / "viewer.css"), scripts))


class ViewerFiles:
    """``/viewer/{file}``. What isn't one of the few names is a 404: no path is ever made of what a client sent."""

    def __init__(self, files: dict[str, File]) -> None:
        self._files = files

    def on_get(self, req: Request, resp: Response, file: str) -> None:
        found = self._files.get(file)
        if found is None:
            raise not_found("There is no such file of the viewer.")
        packed = GZIP.search(req.env.get("HTTP_ACCEPT_ENCODING", "")) is not None
        tag = f"{found.tag}-gzip" if packed else found.tag
        resp.set_headers(
            [
                ("ETag", f'"{tag}"'),
                ("Vary", "Accept-Encoding"),
                ("Cache-Control", "public, max-age=31536000, immutable"),
                ("X-Content-Type-Options", "nosniff"),
                ("Cross-Origin-Resource-Policy", "same-origin"),
            ]
        )
        if is_held(req, tag):
            resp.status = 304
            return
        resp.content_type = found.type
        resp.data = found.packed if packed else found.data
        if packed:
            resp.set_header("Content-Encoding", "gzip")

    on_head = on_get
