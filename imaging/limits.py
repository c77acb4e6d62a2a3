"""How much one image may cost."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds that are checked before anything is decoded, except for ``seconds``.

    A decoder either streams rows or holds whole frames; its memory follows from what it must *hold* at once.
    Streamed pictures (baseline JPEG, PNG, TIFF in strips or tiles) hold some rows, the others the whole frame.
    """

    whole_frame_pixels: int = 100_000_000
    """Pixels that a decoder may have to hold at once: about 0.4 GB."""
    streamed_pixels: int = 2_000_000_000
    """Pixels of a picture that is decoded row by row or tile by tile."""
    whole_frame_bytes: int = 256 * 1024 * 1024
    """Encoded bytes of WebP, AVIF, HEIC and a GIF's first frame, which their decoders keep in memory."""
    pages: int = 10_000
    """Pages of a TIFF; one with more is refused."""
    output_pixels: int = 100_000_000
    """Pixels of a rendition."""
    seconds: float = 300.0
    """Time for one decoding, measured on a monotonic clock."""
