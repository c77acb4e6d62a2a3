"""The seed's boxes as they were made at ingest, wherever a request comes to one."""

from __future__ import annotations

import logging
from functools import lru_cache

from app.media import picture_of
from app.metrics import Metrics
from imaging.size import Within
from ingest.records import Original
from ingest.scaled import DamagedBox, prepared
from storage.errors import Unavailable
from storage.interface import Store
from storage.schema import BOXES

log = logging.getLogger("magazin.http")


class Boxes:
    def __init__(self, store: Store, metrics: Metrics) -> None:
        self._store, self._metrics = store, metrics

    def get(self, original: Original, pixels: tuple[int, int]) -> bytes | None:
        """The JPEG of the whole picture in this size. None where it is missing, damaged or out of reach."""
        box = box_of(picture_of(original), pixels)
        if box is None:
            return None
        try:
            return prepared(self._store, original, box)
        except DamagedBox as error:
            self._metrics.box_damaged()
            log.warning("%s is damaged, and is rendered anew", error)
        except Unavailable:
            pass  # the cache may have it all the same
        return None


@lru_cache(maxsize=4096)
def box_of(picture: tuple[int, int], pixels: tuple[int, int]) -> tuple[int, int] | None:
    """The box that a picture fills with just these pixels: ``800,``, ``800,533`` and ``!800,600`` are one request."""
    return next((box for box in BOXES if Within(*box).fit(*picture) == pixels), None)
