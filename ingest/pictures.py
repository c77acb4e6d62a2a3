"""What ingest asks of an image: that all of it decodes, its dimensions, and the boxes, in bounded memory."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, Final, cast

from imaging.encoding import Encoding
from imaging.errors import TooLargeImage
from imaging.limits import Limits
from imaging.picture import inspect
from imaging.scale import boxes
from storage.blobs import Blob, BlobStore
from storage.schema import BOXES

PROOF: Final = ((116, 87),)  # decoding everything for the smallest box proves an image as well as any
VECTOR: Final = "image/svg+xml"  # never drawn, so it isn't an image here


@dataclass(frozen=True)
class Prepared:
    """``width`` and ``height`` are pixels as displayed, None without images; ``note`` goes into the log."""

    note: str
    width: int | None = None
    height: int | None = None
    pages: int | None = None
    made: Mapping[tuple[int, int], bytes] = field(default_factory=dict)


def is_claimed_image(*mimes: str | None) -> bool:
    """Whether anything says that this is a raster image: the caller, the header, the first bytes."""
    if VECTOR in mimes:
        return False
    return any(mime is not None and mime.startswith("image/") for mime in mimes)


class Pictures:
    """``decoders``: how many images are decoded at once in this process. ``prepare_boxes``: keep the boxes."""

    def __init__(
        self,
        blobs: BlobStore,
        *,
        limits: Limits,
        encoding: Encoding,
        prepare_boxes: bool = True,
        decoders: int = 2,
        wanted: Sequence[tuple[int, int]] = BOXES,
    ) -> None:
        self._blobs, self._limits, self._encoding = blobs, limits, encoding
        self._wanted = tuple(wanted) if prepare_boxes else ()
        self._decoding = threading.BoundedSemaphore(decoders)

    def prepare(self, blob: Blob) -> Prepared:
        """Decode the image that the blob holds. Raises NotAnImage, BrokenImage, and what reading the blob raises."""
        with self._decoding, self._blobs.open(blob) as reader:
            source = cast(BinaryIO, reader)
            try:
                picture = inspect(source, self._limits)
                source.seek(0)
                made = boxes(source, self._wanted or PROOF, self._limits, self._encoding)
            except TooLargeImage as error:
                return Prepared(f"kept without images: {error}")
        note = f"{picture.format} image of {picture.width} × {picture.height} pixels"
        return Prepared(note, picture.width, picture.height, picture.pages, made if self._wanted else {})
