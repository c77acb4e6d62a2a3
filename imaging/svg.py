"""SVG made harmless before anything draws it: what it refers to, what it would run, and how large it says it is.

Only elements and attributes that draw are taken over; references lead into the drawing itself, or are raster images
in data: addresses that are within limits. The parsers are defusedxml's and tinycss2's, both extras. The sanitisers of
SVG that there are (svg-hush, ammonia, DOMPurify) keep drawings from harming a page and leave what harms a renderer:
entities, images of gigapixels within data:, sizes. Loops and bombs of ``use`` are left to the renderer, which counts
them, and to the time and memory that it has (``imaging.drawing``).
"""

from __future__ import annotations

import base64
import binascii
import importlib.util
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from imaging.errors import BrokenImage, NotReadHere, TooLargeImage

HEAD: Final = 4096
"""Bytes that ``begins`` wants to see."""
LARGEST: Final = 8 * 1024 * 1024
"""Bytes of a drawing; whoever reads it looks at that."""
LONGER_SIDE: Final = 2000
"""Pixels, whatever the drawing says: it has none of its own."""
_ELEMENTS: Final = 50_000
_DEPTH: Final = 100
_SVG: Final = "{http://www.w3.org/2000/svg}"
_HREF: Final = "{http://www.w3.org/1999/xlink}href"
_SPACE: Final = "{http://www.w3.org/XML/1998/namespace}space"
_NEEDED: Final = ("defusedxml", "tinycss2")

_START: Final = re.compile(rb"<(?:[A-Za-z_][\w.-]{0,40}:)?svg[\s>/]")
_INSIDE: Final = re.compile(r"#[^\s#]{1,200}")
_DATA: Final = re.compile(r"data:image/(?:png|jpe?g|gif|webp);base64,([A-Za-z0-9+/=\s]+)")
_LENGTH: Final = re.compile(
    r"\+?([0-9]{0,9}(?:\.[0-9]{0,12})?(?:e[+-]?[0-9]{1,2})?)(px|pt|pc|mm|cm|in)?", re.IGNORECASE
)
_UNITS: Final = {"": 1.0, "px": 1.0, "pt": 96 / 72, "pc": 16.0, "mm": 96 / 25.4, "cm": 96 / 2.54, "in": 96.0}
_USUAL: Final = (300.0, 150.0)
"""Of what says nothing of its size (CSS 2.2, 10.3.2)."""

_DRAWS: Final = re.compile(
    "svg|g|defs|symbol|use|switch|a|style|path|rect|circle|ellipse|line|polyline|polygon|text|tspan|textPath|image|"
    "marker|pattern|clipPath|mask|linearGradient|radialGradient|stop|filter|"
    "fe(?:Blend|ColorMatrix|ComponentTransfer|Composite|ConvolveMatrix|DiffuseLighting|DisplacementMap|DistantLight|"
    "DropShadow|Flood|Func[ABGR]|GaussianBlur|Image|Merge|MergeNode|Morphology|Offset|PointLight|SpecularLighting|"
    "SpotLight|Tile|Turbulence)"
)
_REFERS_NOT: Final = ("a", "image")
"""Of these, the only ones whose href may not lead into the drawing."""


@dataclass(frozen=True)
class Drawing:
    data: bytes
    """Harmless SVG of exactly these pixels."""
    width: int
    height: int


def begins(head: bytes) -> bool:
    """Whether this may be the beginning of an SVG."""
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"<" and _START.search(head) is not None


def installed() -> bool:
    return all(importlib.util.find_spec(name) is not None for name in _NEEDED)


def cleaned(data: bytes, check: Callable[[bytes], object]) -> Drawing:
    """The drawing without what could do harm. ``check`` raises an ImageError for a raster image that is too large.

    BrokenImage, TooLargeImage, NotReadHere, and what ``check`` raises.
    """
    if not installed():
        raise NotReadHere(f"svg is read by {' and '.join(_NEEDED)}, which aren't installed")
    root = _parsed(data)
    if root.tag != f"{_SVG}svg":
        raise BrokenImage("no SVG")
    _check_extent(root)
    width, height = _size(root)
    if "viewBox" not in root.attrib:
        root.set("viewBox", f"0 0 {width:f} {height:f}")
    by = LONGER_SIDE / max(width, height)
    across, down = max(1, round(width * by)), max(1, round(height * by))
    _clean(root, check)
    root.set("width", str(across))
    root.set("height", str(down))
    return Drawing(ElementTree.tostring(root, "utf-8"), across, down)


def _parsed(data: bytes) -> Element:
    """The root. A DOCTYPE is dropped; one that declares entities, or wants anything from outside, is refused."""
    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import fromstring

    try:
        root: Element = fromstring(data, forbid_dtd=False, forbid_entities=True, forbid_external=True)
    except DefusedXmlException as error:
        raise BrokenImage(f"an SVG with declarations: {type(error).__name__}") from error
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise BrokenImage(f"no XML: {error}") from error
    return root


def _check_extent(root: Element) -> None:
    layer, count, depth = [root], 1, 0
    while layer:
        layer = [child for element in layer for child in element]
        count, depth = count + len(layer), depth + 1
        if count > _ELEMENTS or depth > _DEPTH:
            raise TooLargeImage(f"an SVG of more than {_ELEMENTS} elements, or {_DEPTH} within each other")


def _size(root: Element) -> tuple[float, float]:
    """Width and height in CSS pixels (SVG 2, 8.2; CSS 2.2, 10.3.2)."""
    box = _view_box(root.get("viewBox", ""))
    width, height = _length(root.get("width", "")), _length(root.get("height", ""))
    usual = box or _USUAL
    if width is None and height is None:
        width, height = usual
    elif width is None or height is None:
        by = usual[0] / usual[1]
        width, height = (height or 1) * by if width is None else width, (width or 1) / by if height is None else height
    if not (0 < width < 1e9 and 0 < height < 1e9):
        raise BrokenImage("an SVG without an area")
    return width, height


def _length(text: str) -> float | None:
    """In CSS pixels; None for a part of whatever is around, and for what is no length."""
    match = _LENGTH.fullmatch(text.strip())
    try:
        return float(match[1]) * _UNITS[(match[2] or "").lower()] if match else None
    except ValueError:
        return None


def _view_box(text: str) -> tuple[float, float] | None:
    try:
        numbers = [float(part) for part in re.split(r"[\s,]+", text.strip())]
    except ValueError:
        return None
    if len(numbers) != 4 or not all(math.isfinite(number) for number in numbers) or min(numbers[2:]) <= 0:
        return None
    return numbers[2], numbers[3]


def _clean(element: Element, check: Callable[[bytes], object]) -> None:
    """Leave only what draws, in this element and those within it."""
    name = element.tag.removeprefix(_SVG)
    for key, value in list(element.attrib.items()):
        kept = _attribute(name, key, value, check)
        if kept is None:
            del element.attrib[key]
        else:
            element.set(key, kept)
    if name == "style":
        element.text = _sheet("".join(element.itertext()))
        element[:] = []
    for child in list(element):
        if isinstance(child.tag, str) and child.tag.startswith(_SVG) and _DRAWS.fullmatch(child.tag.removeprefix(_SVG)):
            _clean(child, check)
        else:
            element.remove(child)


def _attribute(name: str, key: str, value: str, check: Callable[[bytes], object]) -> str | None:
    """The value as it may stay, None for none."""
    if key in ("href", _HREF):
        if name == "image":
            match = _DATA.fullmatch(value.strip())
            if match:
                check(_decoded(match[1]))
            return value if match else None
        return value if name not in _REFERS_NOT and _INSIDE.fullmatch(value.strip()) else None
    if key.startswith("{"):
        return value if key == _SPACE else None
    if key.lower().startswith("on"):
        return None
    if key == "style":
        # the size of the whole is settled
        return _declarations(value, ("width", "height") if name == "svg" else ())
    if "url" in value.lower() or "\\" in value:
        return value if _is_local(_values(value)) else None
    return value


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise BrokenImage(f"an SVG with an image that is none: {error}") from error


def _sheet(text: str) -> str:
    """Rules with their harmless declarations; no @rules: they load, or nothing here knows them."""
    import tinycss2

    return "\n".join(
        f"{tinycss2.serialize(rule.prelude)}{{{_declarations(tinycss2.serialize(rule.content))}}}"
        for rule in tinycss2.parse_stylesheet(text, skip_comments=True, skip_whitespace=True)
        if rule.type == "qualified-rule"
    )


def _declarations(text: str, without: tuple[str, ...] = ()) -> str:
    import tinycss2

    return "".join(
        f"{one.serialize()};"
        for one in tinycss2.parse_declaration_list(text, skip_comments=True, skip_whitespace=True)
        if one.type == "declaration" and one.lower_name not in without and _is_local(one.value)
    )


def _values(text: str) -> Iterator[Any]:
    import tinycss2

    return iter(tinycss2.parse_component_value_list(text))


def _is_local(values: Any) -> bool:
    """Whether all that is referred to lies within the drawing, escapes of CSS resolved."""
    for value in values:
        if value.type == "error":
            return False
        if value.type == "url" and not _INSIDE.fullmatch(value.value):
            return False
        if value.type == "function":
            strings = [one.value for one in value.arguments if one.type == "string"]
            if value.lower_name in ("url", "src") and not (strings and all(map(_INSIDE.fullmatch, strings))):
                return False
            if value.lower_name in ("image", "image-set", "-webkit-image-set", "cross-fade", "element"):
                return False
            if not _is_local(value.arguments):
                return False
        if value.type.endswith(" block") and not _is_local(value.content):
            return False
    return True
