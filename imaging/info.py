"""The image information document of the IIIF Image API: 2.1 and 3.0 (section 5 of both)."""

from __future__ import annotations

from typing import Any, Final

from imaging.outputs import outputs
from imaging.pyramid import TILE
from imaging.request import Quality
from imaging.size import MAX_SIDE, WIDEST, Bounds, Max, Within

BOXES: Final = ((116, 87), (140, 105), (440, 330), (800, 600))
"""Boxes whose contents are announced, in pixels, smallest first: clients choose by position, so the order stays."""

_CONTEXTS: Final = {2: "http://iiif.io/api/image/2/context.json", 3: "http://iiif.io/api/image/3/context.json"}
PROFILES: Final = {2: "http://iiif.io/api/image/2/level2.json", 3: "http://iiif.io/api/image/3/level2.json"}
_PROTOCOL: Final = "http://iiif.io/api/image"
_LEVEL_0: Final = "http://iiif.io/api/image/2/level0.json"
_SIZES: Final = ["sizeByW", "sizeByH", "sizeByPct", "sizeByConfinedWh", "sizeByDistortedWh"]
_BEYOND: Final = ["canonicalLinkHeader", "mirroring", "profileLinkHeader", "rotationArbitrary"]
_QUALITIES: Final = [str(quality) for quality in Quality]
_LEVEL_2_FORMATS: Final = ("jpg", "png")


def document(identifier: str, width: int, height: int, most: Bounds = WIDEST) -> dict[str, Any]:
    """What to send as info.json where only whole images are offered: 2.1, level 0 with sizes.

    ``identifier`` is the absolute address without ``/info.json``; ``width`` and ``height`` are as displayed, in pixels;
    ``most`` of the largest rendition.
    """
    profile = {"formats": ["jpg"], "qualities": ["default"], "maxArea": most.area, "supports": _SIZES}
    return _head(2, identifier, width, height) | {
        "sizes": _sizes(width, height, most),
        "profile": [_LEVEL_0, profile],
    }


def service(
    version: int,
    identifier: str,
    width: int,
    height: int,
    most: Bounds,
    rights: str | None = None,
    finest: int = 1,
) -> dict[str, Any]:
    """What to send as info.json where everything is offered, in version 2 or 3.

    ``rights``: a URI. ``finest``: the least factor of tiles.
    """
    factors = scale_factors(width, height)
    factors = [by for by in factors if by >= finest] or factors[-1:]
    formats = list(outputs())
    body = _head(version, identifier, width, height) | {
        "sizes": _sizes(width, height, most),
        "tiles": [{"width": TILE, "height": TILE, "scaleFactors": factors}],
    }
    if version == 2:
        supports = [*_SIZES, *_BEYOND, "baseUriRedirect", "cors", "jsonldMediaType", "regionSquare"]
        profile = {"formats": formats, "qualities": _QUALITIES, **_limits(most), "supports": supports}
        licence = {"license": rights} if rights else {}
        return body | {"profile": [PROFILES[2], profile]} | licence
    return (
        body
        | {"type": "ImageService3", "profile": "level2"}
        | _limits(most)
        | ({"rights": rights} if rights else {})
        | {
            "preferredFormats": ["jpg"],
            "extraFormats": [name for name in formats if name not in _LEVEL_2_FORMATS],
            "extraQualities": [name for name in _QUALITIES if name != Quality.DEFAULT],
            "extraFeatures": [*_BEYOND, "sizeUpscaling"],
        }
    )


def scale_factors(width: int, height: int) -> list[int]:
    """1, 2, 4 … up to the one with which the whole image fits one tile."""
    factors = [1]
    while max(width, height) > factors[-1] * TILE:
        factors.append(2 * factors[-1])
    return factors


def _head(version: int, identifier: str, width: int, height: int) -> dict[str, Any]:
    name = "@id" if version == 2 else "id"
    head = {"@context": _CONTEXTS[version], name: identifier, "protocol": _PROTOCOL}
    return head | {"width": width, "height": height}


def _sizes(width: int, height: int, most: Bounds) -> list[dict[str, int]]:
    fitted = [Within(*box).fit(width, height, most) for box in BOXES] + [Max().fit(width, height, most)]
    # a small image fits several boxes in one size
    return [{"width": wide, "height": high} for wide, high in dict.fromkeys(fitted)]


def _limits(most: Bounds) -> dict[str, int]:
    """A width alone would count for the height, too (2.1, 5.3; 3.0, 5.4)."""
    if not most.stated:
        return {}
    sides = {"maxWidth": most.width, "maxHeight": most.height} if min(most.width, most.height) < MAX_SIDE else {}
    return sides | {"maxArea": most.area}
