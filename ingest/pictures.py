"""What ingest asks of an image: that all of it decodes, its dimensions, and the boxes, in bounded memory."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, Final, cast

from imaging.encoding import Encoding
from imaging.errors import ImageError, NotReadHere, TookTooLong, TooLargeImage
from imaging.limits import Limits
from imaging.picture import inspect
from imaging.pyramid import build
from imaging.scale import boxes
from ingest.attempts import pyramid_of
from storage.blobs import Blob, BlobStore
from storage.schema import BOXES

PROOF: Final = ((116, 87),)  # decoding everything for the smallest box proves an image as well as any
VECTOR: Final = "image/svg+xml"  # drawn only where the limits say so
DOCUMENT: Final = "application/pdf"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Prepared:
    """``width`` and ``height`` are pixels as displayed, None without images; ``note`` goes into the log."""

    note: str
    width: int | None = None
    height: int | None = None
    pages: int | None = None
    rights: str | None = None
    pyramid: Blob | None = None
    made: Mapping[tuple[int, int], bytes] = field(default_factory=dict)


def is_claimed_image(*mimes: str | None) -> bool:
    """Whether anything says that this is an image, or a PDF: the caller, the header, the first bytes."""
    return any(mime is not None and mime.startswith("image/") for mime in mimes) or DOCUMENT in mimes


class Pictures:
    """``decoders``: how many images are decoded at once in this process. ``prepare_boxes``: keep the boxes.
    ``pyramid_pixels``: images with so many get a pyramid; 0: none does."""

    def __init__(
        self,
        blobs: BlobStore,
        *,
        limits: Limits,
        encoding: Encoding,
        prepare_boxes: bool = True,
        pyramid_pixels: int = 0,
        decoders: int = 2,
        wanted: Sequence[tuple[int, int]] = BOXES,
    ) -> None:
        self._blobs, self._limits, self._encoding = blobs, limits, encoding
        self._wanted = tuple(wanted) if prepare_boxes else ()
        self._pyramid_pixels = pyramid_pixels
        self._decoding = threading.BoundedSemaphore(decoders)

    def are_made_of(self, *mimes: str | None) -> bool:
        """Whether what these types are claimed for is to be prepared."""
        return is_claimed_image(*mimes) and (self._limits.svg or VECTOR not in mimes)

    def prepare(self, blob: Blob, *mimes: str | None) -> Prepared:
        """Decode the image that the blob holds, for which these types are claimed. A PDF or SVG that can't be drawn is
        a file all the same. Raises NotAnImage, BrokenImage, and what reading the blob raises."""
        with self._decoding, self._blobs.open(blob) as reader:
            source = cast(BinaryIO, reader)
            try:
                picture = inspect(source, self._limits)
                source.seek(0)
                made = boxes(source, self._wanted or PROOF, self._limits, self._encoding)
            except (TooLargeImage, TookTooLong, NotReadHere) as error:
                return Prepared(f"kept without images: {error}")
            except ImageError as error:
                source.seek(0)
                if source.read(5) != b"%PDF-" and VECTOR not in mimes:
                    raise
                return Prepared(f"kept without images: {error}")
            pyramid = None
            if 0 < self._pyramid_pixels <= picture.width * picture.height:
                pyramid = self._pyramid(blob, source)
        note = f"{picture.format} image of {picture.width} × {picture.height} pixels"
        if pyramid is not None:
            note += f", a pyramid of {pyramid.size} bytes"
        return Prepared(
            note,
            picture.width,
            picture.height,
            picture.pages,
            picture.rights,
            pyramid,
            made if self._wanted else {},
        )

    def _pyramid(self, blob: Blob, source: BinaryIO) -> Blob | None:
        """Where the pyramid is kept; None when there is none: it saves time, and an original is whole without."""
        try:
            with self._blobs.create(blob.owner, pyramid_of(blob.attempt)) as writer:
                return writer.commit() if build(source, self._limits, self._encoding, writer.write) else None
        except ImageError as error:
            log.info("original %s stays without a pyramid: %s", blob.owner, error)
            return None
