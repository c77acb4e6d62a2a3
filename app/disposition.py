"""Content-Disposition (RFC 6266), with the name in both forms: one in ASCII, and one in UTF-8 (RFC 8187).

Falcon's own formatter puts an ASCII name between quotes as it is. Names come from sources; here they are cleaned of
whatever could end the header, climb out of a folder or show another extension than they have.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final, Literal
from urllib.parse import quote

LONGEST: Final = 180  # characters; with 4 bytes each, tripled by escapes, still a header that every server takes
UNWANTED: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\ud800-\udfff\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]"
)
SEPARATORS: Final = re.compile(r"[/\\]")
AMBIGUOUS: Final = re.compile(r'[^ -~]|["%/\\]')  # what parsers of the quoted form disagree about (RFC 6266, D)
ATTR_CHAR: Final = "!#$&+.^_`|~-"


def disposition(kind: Literal["inline", "attachment"], filename: str | None) -> str:
    name = clean(filename or "")
    letters = (letter for letter in unicodedata.normalize("NFKD", name) if not unicodedata.combining(letter))
    fallback = AMBIGUOUS.sub("_", "".join(letters))[:LONGEST]
    return f"{kind}; filename=\"{fallback}\"; filename*=UTF-8''{quote(name, safe=ATTR_CHAR)}"


def clean(name: str) -> str:
    """The name without controls, bidirectional marks, separators and leading dots; ``resource`` if nothing is left."""
    name = SEPARATORS.sub("_", UNWANTED.sub("", name)).strip().lstrip(".").strip()
    if len(name) > LONGEST:
        stem, dot, extension = name.rpartition(".")
        keep = f".{extension}" if dot and len(extension) <= 10 else ""
        name = (stem if keep else name)[: LONGEST - len(keep)] + keep
    return name or "resource"
