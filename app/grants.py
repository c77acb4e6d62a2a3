"""What of an image is for everyone, and what a signed address opens.

``[access] public_width`` bounds what an unsigned request sees of an image: no rendition is finer than the whole image
in this size, so that tiles don't lead around it. A context with a watermark shows it on whatever is unsigned.

A signature is a part of the identifier (``{reference_id};until=…;signature=…``), so that info.json and all that follows
from it carry it on: a viewer that is given the signed address needs to know nothing.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus

from app.identifier import Identifier
from app.problems import Problem
from imaging.size import Bounds
from imaging.watermark import Mark
from ingest.records import Original, Reference
from storage.ids import Clock

SECOND = 1_000_000


@dataclass(frozen=True)
class Policy:
    """``public_width``: pixels of the longer side; 0: no bound. ``marks``: by context. Without a key nothing can be
    signed, and what is bounded is closed."""

    key: str = ""
    public_width: int = 0
    marks: Mapping[str, Mark] = field(default_factory=dict)


@dataclass(frozen=True)
class Grant:
    """What one request may have of one image."""

    public: int = 0
    """No finer than the whole image with this longer side, in pixels; 0: no bound."""
    mark: Mark | None = None
    seconds: int | None = None
    """For how long; None: for good."""

    def bounds(self, most: Bounds, picture: tuple[int, int], crop: tuple[int, int]) -> Bounds:
        """``most``, and for this part of a picture what is public of it."""
        if not self.public or self.public >= max(picture):
            return most
        side = max(1, -(-self.public * max(crop) // max(picture)))
        return replace(most, width=min(most.width, side), height=min(most.height, side), stated=True)

    def finest(self, picture: tuple[int, int]) -> int:
        """The factor by which a picture must be reduced, at least."""
        return -(-max(picture) // self.public) if self.public else 1


class Grants:
    def __init__(self, policy: Policy, clock: Clock) -> None:
        self._policy, self._clock = policy, clock

    def of(self, name: Identifier, reference: Reference) -> Grant:
        """Raises a Problem: 403 for a signature that is wrong or too old."""
        if name.signature is None or name.until is None:
            return Grant(self._policy.public_width, self._policy.marks.get(reference.context))
        if not self._policy.key or not hmac.compare_digest(signature(self._policy.key, name), name.signature):
            raise Problem(HTTPStatus.FORBIDDEN, "The signature is not that of this identifier.", field="signature")
        left = name.until - self._clock() // SECOND
        if left <= 0:
            raise Problem(HTTPStatus.FORBIDDEN, "The signature has run out.", field="until")
        return Grant(seconds=left)

    def check_whole(self, reference: Reference, original: Original, pixels: tuple[int, int] | None = None) -> None:
        """Raise 403 unless everyone may have the original, or the whole image unmarked in these pixels."""
        if not original.is_image:
            return
        public = self._policy.public_width
        shown = pixels or (original.width or 1, original.height or 1)
        if reference.context in self._policy.marks or (public and max(shown) > public):
            detail = "Everyone may have less of this image than was asked for: see its /iiif/3/ address."
            raise Problem(HTTPStatus.FORBIDDEN, detail)


def signature(key: str, name: Identifier) -> str:
    """HMAC-SHA256 in hex over ``{reference_id};until={seconds since 1970}``; it is good for all pages."""
    return hmac.digest(key.encode(), f"{name.reference_id};until={name.until}".encode(), "sha256").hex()


def signed(key: str, reference_id: str, until: int) -> Identifier:
    """The identifier that opens everything of an image until then, in seconds since 1970."""
    name = Identifier(reference_id, until=until)
    return replace(name, signature=signature(key, name))
