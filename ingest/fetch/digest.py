"""Hashes of a body: those that headers announce, and those computed while it passes."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from typing import Final

from ingest.fetch.freshness import Headers

_SIZES: Final = {"md5": 16, "sha256": 32, "sha512": 64}
_NAMES: Final = {"md5": "md5", "sha-256": "sha256", "sha-512": "sha512"}


def announced(headers: Headers) -> dict[str, str]:
    """Lower-case hex by algorithm (md5, sha256, sha512), of the bytes on the wire.

    Repr-Digest and Content-Digest (RFC 9530; they are the same for a whole answer), Digest (RFC 3230), Content-MD5
    (RFC 1864). What is malformed or of another algorithm is left out.
    """
    found: dict[str, str] = {}
    pairs = [("md5", value) for value in headers("Content-MD5")]
    for name in ("Digest", "Content-Digest", "Repr-Digest"):
        members = [part for value in headers(name) for part in value.split(",")]
        pairs += [(key, text) for key, _, text in (member.partition("=") for member in members)]
    for name, text in pairs:
        algorithm = _NAMES.get(name.strip().lower(), "")
        value = _base64(text.partition(";")[0].strip().strip(":"))
        if len(value) == _SIZES.get(algorithm):
            found[algorithm] = value.hex()
    return found


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return b""


class Tally:
    """Counts and hashes what passes."""

    def __init__(self, algorithms: Iterable[str]) -> None:
        self.size = 0
        self._hashes = {name: hashlib.new(name, usedforsecurity=False) for name in algorithms}

    def add(self, data: bytes) -> None:
        self.size += len(data)
        for each in self._hashes.values():
            each.update(data)

    def hex(self, algorithm: str) -> str:
        return self._hashes[algorithm].hexdigest()
