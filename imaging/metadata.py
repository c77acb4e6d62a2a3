"""What of an image's metadata goes into its renditions, and what it says of rights."""

from __future__ import annotations

import re
from typing import Final

import pyvips

from imaging.colour import Image

POLICIES: Final = ("copyright", "all", "none")
_COPYRIGHT: Final = ("exif-ifd0-Copyright", "exif-ifd0-Artist")
_BLOCKS: Final = ("exif-data", "xmp-data", "iptc-data", "photoshop-data", "icc-profile-data")
_TAG: Final = re.compile(r"(.*) \(.*, ASCII, \d+ components, \d+ bytes\)", re.DOTALL)
_LOOKED_AT: Final = 1 << 20
"""Bytes of an XMP packet."""
_RIGHTS: Final = re.compile(
    rb"https?://(creativecommons\.org/(?:licenses|publicdomain)/[a-z+-]{1,40}/[0-9.]{1,5}/?(?:[a-z]{2}/)?"
    rb"|rightsstatements\.org/(?:vocab|page)/[A-Za-z-]{1,40}/1\.0/?)"
)


def labelled(image: Image, policy: str) -> tuple[Image, str]:
    """The image with the metadata that the policy leaves, and the savers' ``keep`` for it.

    ``copyright`` leaves EXIF's Copyright and Artist; ``all`` everything but the profile, which the pixels no longer
    have, and the orientation, which is applied.
    """
    if policy == "none":
        return image, "none"
    image = image.copy()
    if policy == "all":
        image.remove("icc-profile-data")
        return image, "exif:xmp:iptc:other"
    kept = [name for name in _COPYRIGHT if image.get_typeof(name)]
    if not kept:
        return image, "none"
    texts = {name: _text(image.get(name)) for name in kept}
    for name in image.get_fields():
        if name in _BLOCKS or (name.startswith("exif-") and name not in kept):
            image.remove(name)
    for name, text in texts.items():
        image.set_type(pyvips.GValue.gstr_type, name, text)
    return image, "exif"


def _text(value: str) -> str:
    """The text of an ASCII tag, which libvips gives as ``text (text, ASCII, 5 components, 5 bytes)``."""
    match = _TAG.fullmatch(value)
    return match[1].strip() if match else value


def rights(image: Image) -> str | None:
    """The licence of Creative Commons or the statement of rightsstatements.org that the metadata names, as its URI."""
    texts = [image.get("xmp-data")[:_LOOKED_AT]] if image.get_typeof("xmp-data") else []
    texts += [image.get(name).encode() for name in _COPYRIGHT if image.get_typeof(name)]
    for text in texts:
        if match := _RIGHTS.search(text):
            # both registries' URIs begin with http: and name the vocabulary, not its page
            return "http://" + match[1].decode().replace("/page/", "/vocab/")
    return None
