"""A request of the IIIF Image API, 2.1 or 3.0: ``{region}/{size}/{rotation}/{quality}.{format}``.

``parse`` reads the text, ``Request.resolve`` says what it comes to for one picture: pixels, and the canonical form
(section 4.7 of both). All rounding happens here, so that info.json, the canonical address and the image agree.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final

from imaging import region, rotation, size
from imaging.errors import BadRequest
from imaging.region import Rect, Region
from imaging.rotation import Rotation
from imaging.size import Bounds, Enlarged, Max, Size, Width

VERSIONS: Final = (2, 3)
FORMATS: Final = ("jpg", "png", "webp", "tif", "gif", "avif", "jp2", "pdf")
"""What may be asked for; which of these can be written is a matter of the libraries (``imaging.outputs``)."""
_FILE: Final = re.compile(rf"(default|color|gray|bitonal)\.({'|'.join(FORMATS)})")


class Quality(StrEnum):
    DEFAULT = "default"
    COLOR = "color"
    GRAY = "gray"
    BITONAL = "bitonal"


@dataclass(frozen=True)
class Request:
    region: Region
    size: Size
    rotation: Rotation
    quality: Quality
    format: str

    def resolve(self, width: int, height: int, most: Bounds) -> Order:
        """What it comes to for a picture of these displayed dimensions. BadRequest."""
        crop = self.region.crop(width, height)
        scaled = self.size.fit(crop.width, crop.height, most)
        whole = crop == Rect(0, 0, width, height)
        return Order(
            crop,
            scaled,
            self.rotation,
            self.quality,
            self.format,
            whole,
            _size_v2(crop, scaled),
            _size_v3(crop, scaled, most),
        )


@dataclass(frozen=True)
class Order:
    """A request for one picture, in its pixels."""

    region: Rect
    size: tuple[int, int]
    """Width and height in pixels, before it is turned."""
    rotation: Rotation
    quality: Quality
    format: str
    whole: bool
    """The region is the whole picture."""
    size_v2: str
    size_v3: str

    @cached_property
    def key(self) -> str:
        """One for all spellings in both versions."""
        return self._text(f"{self.size[0]},{self.size[1]}")

    def canonical(self, version: int) -> str:
        """The canonical form of the request's path."""
        return self._canonical[version]

    @cached_property
    def _canonical(self) -> dict[int, str]:
        return {2: self._text(self.size_v2), 3: self._text(self.size_v3)}

    @cached_property
    def plain(self) -> bool:
        """Neither turned nor mirrored, in the default quality, as a JPEG."""
        return self.rotation == Rotation() and self.quality is Quality.DEFAULT and self.format == "jpg"

    def _text(self, size: str) -> str:
        crop = self.region
        part = "full" if self.whole else f"{crop.x},{crop.y},{crop.width},{crop.height}"
        return f"{part}/{size}/{self.rotation.text}/{self.quality}.{self.format}"


def parse(version: int, region_text: str, size_text: str, rotation_text: str, file: str) -> Request:
    """The request that these percent-decoded segments make in version 2 or 3. BadRequest."""
    match = _FILE.fullmatch(file)
    if match is None:
        raise BadRequest(
            f"quality and format: expected default, color, gray or bitonal, and one of {', '.join(FORMATS)}"
        )
    return Request(
        region.parse(region_text),
        size.parse(size_text) if version == 2 else size.parse_v3(size_text),
        rotation.parse(rotation_text),
        Quality(match[1]),
        match[2],
    )


def _size_v2(crop: Rect, scaled: tuple[int, int]) -> str:
    """``full``, ``w,`` where it leads to the same height, else ``w,h`` (2.1, 4.7)."""
    if scaled == (crop.width, crop.height):
        return "full"
    if Width(scaled[0]).pixels(crop.width, crop.height) == scaled:
        return f"{scaled[0]},"
    return f"{scaled[0]},{scaled[1]}"


def _size_v3(crop: Rect, scaled: tuple[int, int], most: Bounds) -> str:
    """``max``, ``^max`` or ``w,h``, with ``^`` where something is enlarged (3.0, 4.7)."""
    if scaled == Max().fit(crop.width, crop.height, most):
        return "max"
    if scaled[0] <= crop.width and scaled[1] <= crop.height:
        return f"{scaled[0]},{scaled[1]}"
    if scaled == Enlarged(Max()).fit(crop.width, crop.height, most):
        return "^max"
    return f"^{scaled[0]},{scaled[1]}"
