"""Digests of a request's body, verified while it passes: Content-Digest and Repr-Digest (RFC 9530), Digest (RFC 3230).

A body without Content-Encoding is its own representation, so that the three say the same.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Final, Protocol

from falcon import Request

from app.problems import Problem, bad_field

FIELDS: Final = ("Content-Digest", "Repr-Digest", "Digest")
MEMBER: Final = re.compile(r"\s*([a-z*][a-z0-9_.*-]*)=:([A-Za-z0-9+/=]*):(?:;[^,]*)?\s*")
OLD_MEMBER: Final = re.compile(r"\s*([A-Za-z0-9-]+)=([A-Za-z0-9+/=]+)\s*")
LONGEST: Final = 2000  # characters
WANTED: Final = {"Want-Content-Digest": "sha-256=10, sha-512=9, md5=1, sha=1"}


class Hash(Protocol):
    def update(self, data: bytes, /) -> object: ...
    def digest(self) -> bytes: ...


MAKERS: Final[dict[str, Callable[[], Hash]]] = {
    "sha-512": hashlib.sha512,
    "sha-256": hashlib.sha256,
    "sha": lambda: hashlib.sha1(usedforsecurity=False),
    "md5": lambda: hashlib.md5(usedforsecurity=False),
}


class Digests:
    """What a request says of its body. sha-256 is computed by whoever stores the body, and only compared here."""

    def __init__(self, expected: list[tuple[str, str, bytes]]) -> None:
        self._expected = expected
        names = {algorithm for _, algorithm, _ in expected} - {"sha-256"}
        self._hashes = {name: MAKERS[name]() for name in names}

    @classmethod
    def of(cls, req: Request) -> Digests:
        """400 for a field that is malformed, or that has no algorithm known here: it couldn't be verified."""
        expected = []
        for field in FIELDS:
            text = req.get_header(field)
            if text is None:
                continue
            said = _read(field, text)
            known = [(field, algorithm, value) for algorithm, value in said if algorithm in MAKERS]
            if not known:
                detail = f"{field}: none of its algorithms can be verified here; {', '.join(MAKERS)} can"
                raise Problem(HTTPStatus.BAD_REQUEST, detail, headers=WANTED, field=field)
            expected += known
        return cls(expected)

    def update(self, data: bytes) -> None:
        for one in self._hashes.values():
            one.update(data)

    def check(self, sha256: bytes) -> None:
        """400 when the body, now at its end, isn't what was said; ``sha256`` is its own."""
        for field, algorithm, value in self._expected:
            found = sha256 if algorithm == "sha-256" else self._hashes[algorithm].digest()
            if not hmac.compare_digest(found, value):
                shown = base64.b64encode(found).decode()
                raise bad_field(field, f"the {algorithm} of the body that arrived is {shown}")


def _read(field: str, text: str) -> list[tuple[str, bytes]]:
    member = OLD_MEMBER if field == "Digest" else MEMBER
    said = []
    for part in text[:LONGEST].split(","):
        match = member.fullmatch(part)
        try:
            if match is None or len(text) > LONGEST:
                raise ValueError
            said.append((match[1].lower(), base64.b64decode(match[2], validate=True)))
        except (ValueError, binascii.Error):
            raise bad_field(field, "malformed") from None
    return said


def repr_digest(sha256: str) -> str:
    """The field for a representation whose sha256 is this hex."""
    return f"sha-256=:{base64.b64encode(bytes.fromhex(sha256)).decode()}:"
