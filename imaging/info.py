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
_PROTOCOL: Final = "http://iiif.io/api/image"
_SIZES: Final = ["sizeByW", "sizeByH", "sizeByPct", "sizeByConfinedWh", "sizeByDistortedWh"]
_BEYOND: Final = ["canonicalLinkHeader", "mirroring", "profileLinkHeader", "rotationArbitrary"]
_REGIONS: Final = ["baseUriRedirect", "cors", "jsonldMediaType", "regionByPct", "regionByPx", "regionSquare"]
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
        "profile": [profile_address(2, 0), profile],
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

    ``rights``: a URI. ``finest``: the factor by which the picture must be reduced at least. Beyond 1 there are sizes
    and no tiles, at level 0: whatever viewers are told of tiles, they ask for those of the full size, too.
    """
    level = level_of(finest)
    formats = list(outputs())
    body = _head(version, identifier, width, height) | {"sizes": _sizes(width, height, most)}
    if level:
        body["tiles"] = [{"width": TILE, "height": TILE, "scaleFactors": scale_factors(width, height)}]
    if version == 2:
        # OpenSeadragon makes tiles of whatever has sizes by width
        supports = [*(_SIZES if level else ()), *_BEYOND, *_REGIONS]
        profile = {"formats": formats, "qualities": _QUALITIES, **_limits(most), "supports": supports}
        licence = {"license": rights} if rights else {}
        return body | {"profile": [profile_address(2, level), profile]} | licence
    return (
        body
        | {"type": "ImageService3", "profile": f"level{level}"}
        | _limits(most)
        | ({"rights": rights} if rights else {})
        | {
            "preferredFormats": ["jpg"],
            "extraFormats": [name for name in formats if name not in _LEVEL_2_FORMATS],
            "extraQualities": [name for name in _QUALITIES if name != Quality.DEFAULT],
            "extraFeatures": [*_BEYOND, "sizeUpscaling"] if level else [*_BEYOND, *_REGIONS],
        }
    )


def level_of(finest: int) -> int:
    """The level of compliance of an image that must be reduced by this factor at least."""
    return 2 if finest == 1 else 0


def profile_address(version: int, level: int) -> str:
    return f"http://iiif.io/api/image/{version}/level{level}.json"


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
