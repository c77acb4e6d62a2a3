"""The image information document: IIIF Image API 2.1, section 5, level 0 with sizes."""

from __future__ import annotations

from typing import Any, Final

from imaging.size import WIDEST, Bounds, Max, Within

BOXES: Final = ((116, 87), (140, 105), (440, 330), (800, 600))
"""Boxes whose contents are announced, in pixels, smallest first: clients choose by position, so the order stays."""

_CONTEXT: Final = "http://iiif.io/api/image/2/context.json"
_PROTOCOL: Final = "http://iiif.io/api/image"
_LEVEL: Final = "http://iiif.io/api/image/2/level0.json"
_SUPPORTS: Final = ["sizeByW", "sizeByH", "sizeByPct", "sizeByConfinedWh", "sizeByDistortedWh"]


def document(identifier: str, width: int, height: int, most: Bounds = WIDEST) -> dict[str, Any]:
    """What to send as info.json for an image of these displayed dimensions, in pixels.

    ``identifier`` is the absolute address without ``/info.json``. ``most``: of the largest rendition.
    """
    fitted = [Within(*box).fit(width, height, most) for box in BOXES] + [Max().fit(width, height, most)]
    return {
        "@context": _CONTEXT,
        "@id": identifier,
        "protocol": _PROTOCOL,
        "width": width,
        "height": height,
        # a small image fits several boxes in one size
        "sizes": [{"width": wide, "height": high} for wide, high in dict.fromkeys(fitted)],
        "profile": [
            _LEVEL,
            {"formats": ["jpg"], "qualities": ["default"], "maxArea": most.area, "supports": _SUPPORTS},
        ],
    }
