"""Content-Encoding from servers that compress though identity was asked for.

A file that is itself compressed (``report.csv.gz``, a type that says gzip) is kept as it came: servers often send the
coding along with it by mistake, and clients that decode store a .gz decompressed. Everything else is decoded, since
what is wanted is the image, not its gzip. Lengths and announced hashes are those of the wire.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Final

from ingest.fetch.failure import Failure, transient
from ingest.fetch.outcome import Outcome

_COMPRESSED_NAMES: Final = (".gz", ".tgz", ".taz", ".svgz", ".gzip", ".z")
_COMPRESSED_TYPES: Final = {"application/gzip", "application/x-gzip", "application/x-tgz", "application/x-gtar"}
_UNKNOWN_HERE: Final = {"br", "zstd", "compress", "x-compress", "deflate", "dcb", "dcz", "exi", "pack200-gzip"}
_GZIP: Final = {"gzip", "x-gzip"}
_MAGIC: Final = b"\x1f\x8b"


def to_undo(content_encoding: str, media_type: str | None, filename: str, head: bytes) -> bool:
    """Whether the body must be gunzipped. Raises Failure for a coding that can't be undone.

    ``head`` are the first bytes: a body that isn't gzip is taken as it is, whatever the header says; so are words
    that aren't codings (``none``, ``utf-8``, ``aws-chunked``).
    """
    codings = [name for part in content_encoding.lower().split(",") if (name := part.strip())]
    foreign = [name for name in codings if name in _UNKNOWN_HERE]
    if foreign or sum(name in _GZIP for name in codings) > 1:
        named = ", ".join(foreign or codings)[:80]
        raise Failure(Outcome.HTTP_ERROR, f"sent its answer compressed ({named}), though identity was asked for")
    if not any(name in _GZIP for name in codings) or not head.startswith(_MAGIC):
        return False
    return media_type not in _COMPRESSED_TYPES and not filename.lower().endswith(_COMPRESSED_NAMES)


def gunzipped(blocks: Iterable[bytes], size: int) -> Iterator[bytes]:
    """The decoded body, in pieces of at most ``size`` bytes, so that a bomb costs no memory. Raises Failure.

    Further members of the file follow the first; zeros after the last are padding.
    """
    inflater = zlib.decompressobj(wbits=31)
    for block in blocks:
        data = block
        while data:
            if inflater.eof:
                data = data.lstrip(b"\0")
                if not data:
                    break
                inflater = zlib.decompressobj(wbits=31)
            try:
                made = inflater.decompress(data, size)
            except zlib.error as error:
                raise transient(Outcome.TRUNCATED, "sent a body that isn't the gzip that its header claims") from error
            if made:
                yield made
            data = inflater.unconsumed_tail or inflater.unused_data
    if not inflater.eof:
        raise transient(Outcome.TRUNCATED, "sent a compressed body that ends before its end")
