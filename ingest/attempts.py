"""What is kept under one attempt at an original, beside its bytes: prepared images and a pyramid."""

from __future__ import annotations

from typing import Final

from storage.blobs import BlobStore
from storage.interface import Store
from storage.schema import SCALED

PYRAMID: Final = "-pyramid"


def pyramid_of(attempt: str) -> str:
    """The attempt under which its pyramid is kept."""
    return attempt + PYRAMID


def erase(store: Store, blobs: BlobStore, original_id: str, attempt: str) -> None:
    """All of it, whole or half. Idempotent. Raises StoreError, BlobError."""
    blobs.erase(original_id, attempt)
    blobs.erase(original_id, pyramid_of(attempt))
    for table in SCALED.values():
        store.erase(table, (original_id, attempt))
