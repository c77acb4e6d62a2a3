"""What the HTTP layer serves from. Whoever wires the parts fills it in; nothing here chooses an implementation."""

from __future__ import annotations

from dataclasses import dataclass

from app.tokens import Tokens
from imaging.limits import Limits
from imaging.renditions import Renditions
from ingest.logs import Logs
from ingest.recent import Recent
from ingest.references import References
from storage.blobs import BlobStore
from storage.buckets import Buckets
from storage.interface import Store


@dataclass(frozen=True)
class Library:
    store: Store
    blobs: BlobStore
    references: References
    logs: Logs
    recent: Recent
    renditions: Renditions
    limits: Limits
    tokens: Tokens
    buckets: Buckets
