"""Which formats are read here, proved on a small picture in each: a library may be there and lack a decoder."""

from __future__ import annotations

import base64
import io
from functools import cache
from typing import Final

import pyvips

from imaging.encoding import Encoding
from imaging.errors import ImageError
from imaging.formats import FORMATS, SVG
from imaging.limits import Limits
from imaging.render import render
from imaging.request import parse

COLOUR: Final = (200, 60, 30)
"""Of each of the pictures, 16 by 16 pixels, or a page of 16 by 16 points."""
_FAR: Final = 20
"""Levels that lossy formats may be off."""

_PDF: Final = b"""%PDF-1.4
1 0 obj <</Type /Catalog /Pages 2 0 R>> endobj
2 0 obj <</Type /Pages /Kids [3 0 R] /Count 1>> endobj
3 0 obj <</Type /Page /Parent 2 0 R /MediaBox [0 0 16 16] /Contents 4 0 R>> endobj
4 0 obj <</Length 33>> stream
.784 .235 .118 rg 0 0 16 16 re f
endstream endobj
trailer <</Root 1 0 R>>
"""
_DRAWING: Final = b"""<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16">
<rect width="16" height="16" fill="#c83c1e"/></svg>"""
_ENCODED: Final = {
    "jpeg": (
        "/9j/2wBDAAgGBgcGBQgHBwcJCQgKDBQNDAsLDBkSEw8UHRofHh0aHBwgJC4nICIsIxwcKDcpLDAxNDQ0Hyc5PTgyPC4zNDL/2wBDAQkJCQ"
        "wLDBgNDRgyIRwhMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjL/wAARCAAQABADASIAAhEBAxEB"
        "/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEII0"
        "KxwRVS0fAkM2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVWV1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKTlJWWl5iZ"
        "mqKjpKWmp6ipqrKztLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi4+Tl5ufo6erx8vP09fb3+Pn6/8QAHwEAAwEBAQEBAQEBAQAAAAAAAA"
        "ECAwQFBgcICQoL/8QAtREAAgECBAQDBAcFBAQAAQJ3AAECAxEEBSExBhJBUQdhcRMiMoEIFEKRobHBCSMzUvAVYnLRChYkNOEl8RcYGRom"
        "JygpKjU2Nzg5OkNERUZHSElKU1RVVldYWVpjZGVmZ2hpanN0dXZ3eHl6goOEhYaHiImKkpOUlZaXmJmaoqOkpaanqKmqsrO0tba3uLm6ws"
        "PExcbHyMnK0tPU1dbX2Nna4uPk5ebn6Onq8vP09fb3+Pn6/9oADAMBAAIRAxEAPwDBooor5w/QD//Z"
    ),
    "png": (
        "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAACXBIWXMAAAPoAAAD6AG1e1JrAAAAGUlEQVQokWM4YSNHEmIY1WAzGkonhm"
        "vSAADXFCIQxhmdEQAAAABJRU5ErkJggg=="
    ),
    "gif": "R0lGODlhEAAQAIAAAExpccg8HiH/C05FVFNDQVBFMi4wAwEAAAAh+QQFAAAAACwAAAAAEAAQAAACDoyPqcvtD6OctNqLsz4FADs=",
    "webp": "UklGRjoAAABXRUJQVlA4IC4AAADQAQCdASoQABAAAgA0JaACdLoB+AADsAD+7L2P/FnIxHZ5v/q0PlofLQ/bsAAA",
    "tiff": (
        "SUkqAFYAAACAMgeB6BQSBwWEQeFQaGQmGwuHRGIROHxWJRaKReNRmORiPRuPx2QSORSWQyeSSiTSmWSuXSqYS2Yy+ZTWaTeZzmbTqcTufT"
        "2gTyhReAgKAAABAwABAAAAEAAAAAEBAwABAAAAEAAAAAIBAwADAAAA1AAAAAMBAwABAAAABQAAAAYBAwABAAAAAgAAABEBBAABAAAACAAA"
        "ABUBAwABAAAAAwAAABYBAwABAAAAEAAAABcBBAABAAAATgAAABwBAwABAAAAAQAAAAAAAAAIAAgACAA="
    ),
    "avif": (
        "AAAAHGZ0eXBhdmlmAAAAAG1pZjFhdmlmbWlhZgAAANZtZXRhAAAAAAAAACFoZGxyAAAAAAAAAABwaWN0AAAAAAAAAAAAAAAAAAAAACJpbG"
        "9jAAAAAERAAAEAAQAAAAAA+gABAAAAAAAAACcAAAAjaWluZgAAAAAAAQAAABVpbmZlAgAAAAABAABhdjAxAAAAAA5waXRtAAAAAAABAAAA"
        "VmlwcnAAAAA4aXBjbwAAAAxhdjFDgQAMAAAAABRpc3BlAAAAAAAAABAAAAAQAAAAEHBpeGkAAAAAAwgICAAAABZpcG1hAAAAAAAAAAEAAQ"
        "OBAgMAAAAvbWRhdBIACgkYDP/aICGg0IAyGBlHh4YhgABoAAB1hk3a5ldZQQJkVB0wQA=="
    ),
    "heic": (
        "AAAAHGZ0eXBoZWljAAAAAG1pZjFoZWljbWlhZgAAAXxtZXRhAAAAAAAAACFoZGxyAAAAAAAAAABwaWN0AAAAAAAAAAAAAAAAAAAAACJpbG"
        "9jAAAAAERAAAEAAQAAAAABoAABAAAAAAAAADIAAAAjaWluZgAAAAAAAQAAABVpbmZlAgAAAAABAABodmMxAAAAAA5waXRtAAAAAAABAAAA"
        "/GlwcnAAAADcaXBjbwAAAHVodmNDAQNwAAAAkAAAAAAAHvAA/P34+AAADwNgAAEAGEABDAH//wNwAAADAJAAAAMAAAMAHroCQGEAAQApQg"
        "EBA3AAAAMAkAAAAwAAAwAeoCCBBZbqrprm4CGgwIAAAAyAAAADAIRiAAEABkQBwXPBiQAAABNjb2xybmNseAABAA0ABoAAAAAUaXNwZQAA"
        "AAAAAABAAAAAQAAAAChjbGFwAAAAEAAAAAEAAAAQAAAAAf///9AAAAAC////0AAAAAIAAAAQcGl4aQAAAAADCAgIAAAAGGlwbWEAAAAAAA"
        "AAAQABBYECAwWEAAAAOm1kYXQAAAAuKAGvEyFiY0D1JyL//v+6f/CLJ/0r2WFncrrBW/L6wPZkm8DzqpGegIdppzAVeA=="
    ),
    "jp2": (
        "AAAADGpQICANCocKAAAAFGZ0eXBqcDIgAAAAAGpwMiAAAAAtanAyaAAAABZpaGRyAAAAEAAAABAAAwcHAAAAAAAPY29scgEAAAAAABAAAA"
        "CranAyY/9P/1EALwAAAAAAEAAAABAAAAAAAAAAAAAAABAAAAAQAAAAAAAAAAAAAwcBAQcBAQcBAf9SAA4BAgABAQEEBAAAiIj/XAALQkgk"
        "V9NX01di/2QAJQABQ3JlYXRlZCBieSBPcGVuSlBFRyB2ZXJzaW9uIDIuNS40/5AACgAAAAAAKgAB/5PDhRFQVK+Cx8AwEVBUo2Vdz4BgFA"
        "Bco2r9gICA/9k="
    ),
    "j2k": (
        "/0//UQAvAAAAAAAQAAAAEAAAAAAAAAAAAAAAEAAAABAAAAAAAAAAAAADBwEBBwEBBwEB/1IADgECAAEBAQQEAACIiP9cAAtCSCRX01fTV2"
        "L/ZAAlAAFDcmVhdGVkIGJ5IE9wZW5KUEVHIHZlcnNpb24gMi41LjT/kAAKAAAAAAAqAAH/k8OFEVBUr4LHwDARUFSjZV3PgGAUAFyjav2A"
        "gID/2Q=="
    ),
    "jxl": "/wpDQCQIBAEAbABLGIsVANQTY5yZiXMAEXCMkQEva952cCTWHgw=",
}


@cache
def readable() -> tuple[str, ...]:
    """The names of the formats that are read: SVG too, where its libraries are."""
    samples = {name: base64.b64decode(text) for name, text in _ENCODED.items()} | {"pdf": _PDF, "svg": _DRAWING}
    return tuple(known.name for known in (*FORMATS, SVG) if _reads(samples[known.name]))


def _reads(sample: bytes) -> bool:
    limits = Limits(svg=True)
    order = parse(3, "full", "4,4", "0", "color.png").resolve(16, 16, limits.bounds(16, 16))
    try:
        shown = pyvips.Image.new_from_buffer(render(io.BytesIO(sample), order, limits, Encoding()), "")
    except (ImageError, pyvips.Error):
        return False
    return all(abs(got - want) <= _FAR for got, want in zip(shown[:3](1, 1), COLOUR, strict=True))
