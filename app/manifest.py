"""What a manifest says (IIIF Presentation API 3.0): a canvas for each image or page, painted with its image service.

iiif-prezi3 checks it against the specification's own schema. It is an extra: importing this module fails without it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

import iiif_prezi3

CONTEXT: Final = "http://iiif.io/api/presentation/3/context.json"
JPEG: Final = "image/jpeg"
Pixels = tuple[int, int]
"""Width and height."""


@dataclass(frozen=True)
class Leaf:
    """An image, or a page of one, that goes on a canvas of its own."""

    identifier: str
    label: str
    size: Pixels
    """As displayed."""
    largest: Pixels
    """What ``max`` gives everyone."""
    thumbnail: Pixels
    rights: str | None
    level: int
    """Of compliance with the Image API."""


def written(base: str, context: str, query: str, leaves: tuple[Leaf, ...], more: str) -> bytes:
    """The document. ``base``: this server's absolute address; ``query``: what follows the manifest's own address, such
    as ``?after=…``; ``more``: the same of the manifest that goes on, or nothing."""
    own = f"{base}/iiif/presentation/3/{context}"
    rights = {leaf.rights for leaf in leaves}
    told: dict[str, Any] = {
        "id": f"{own}/manifest{query}",
        "label": {"none": [context]},
        "items": [canvas(base, own, leaf) for leaf in leaves],
    }
    if len(rights) == 1:
        told |= _rights(*rights)
    if query or more:
        where = f"More of them: {own}/manifest{more}" if more else "The last part."
        told["summary"] = {"en": [f"A part of the images of {context}. {where}"]}
    manifest = iiif_prezi3.Manifest(**told)
    body = manifest.model_dump(mode="json", by_alias=True, exclude_none=True)
    return json.dumps({"@context": CONTEXT} | body, ensure_ascii=False).encode()


def canvas(base: str, own: str, leaf: Leaf) -> dict[str, Any]:
    where, service = f"{own}/canvas/{leaf.identifier}", f"{base}/iiif/3/{leaf.identifier}"
    image = _image(f"{service}/full/max/0/default.jpg", leaf.largest)
    image["service"] = [{"id": service, "type": "ImageService3", "profile": f"level{leaf.level}"}]
    painting = {
        "id": f"{where}/painting",
        "type": "Annotation",
        "motivation": "painting",
        "body": image,
        "target": where,
    }
    small = ",".join(map(str, leaf.thumbnail))
    return {
        "id": where,
        "type": "Canvas",
        "label": {"none": [leaf.label]},
        **_sides(leaf.size),
        **_rights(leaf.rights),
        "thumbnail": [_image(f"{service}/full/{small}/0/default.jpg", leaf.thumbnail)],
        "items": [{"id": f"{where}/page", "type": "AnnotationPage", "items": [painting]}],
    }


def _image(address: str, size: Pixels) -> dict[str, Any]:
    return {"id": address, "type": "Image", "format": JPEG, **_sides(size)}


def _sides(size: Pixels) -> dict[str, int]:
    return dict(zip(("width", "height"), size, strict=True))


def _rights(uri: str | None) -> dict[str, str]:
    """An address, as the specification wants it; words are left out."""
    return {"rights": uri} if uri and uri.startswith(("http://", "https://")) else {}
