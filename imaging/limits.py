"""How much one image may cost."""

from __future__ import annotations

from dataclasses import dataclass

from imaging.size import MAX_SIDE, Bounds


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
    enlarged_pixels: int = 16_000_000
    """Pixels of a rendition that is larger than its picture."""
    max_area: int = 0
    """Pixels of a rendition that info.json states, and up to which ``^max`` goes; 0: none."""
    max_width: int = MAX_SIDE
    """Pixels of a rendition's sides, stated likewise when below the default."""
    max_height: int = MAX_SIDE
    svg: bool = False
    """Drawings in SVG are images, too."""
    seconds: float = 300.0
    """Time for one decoding, measured on a monotonic clock."""

    def bounds(self, width: int, height: int) -> Bounds:
        """What no rendition of a picture of these dimensions goes beyond. Enlarging is bounded more tightly: a picture
        of one pixel must not be a way to ask for a hundred million."""
        pixels, sides = width * height, min(self.max_width, self.max_height)
        area = min(self.output_pixels, self.max_area or max(pixels, self.enlarged_pixels))
        stated = self.max_area > 0 or sides < MAX_SIDE or pixels > area
        return Bounds(area, self.max_width, self.max_height, stated)
