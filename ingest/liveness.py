"""Who refers to an original, and since when not. An index row is a hint; the reference's row and its context decide."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ingest.records import Original, Reference
from storage.ids import moment_of
from storage.interface import Store
from storage.schema import BINARY_REFS, BINARYREFS_ORIGINAL, CONTEXTS
from storage.table import Row, Slice

PAGE = 100


def events(store: Store, original_id: str) -> Iterator[Row]:
    """Attaches and releases of an original, newest first, page by page."""
    before = None
    while True:
        page = store.read(BINARYREFS_ORIGINAL, (original_id,), before=before, limit=PAGE, reverse=True)
        yield from page
        if len(page) < PAGE:
            return
        before = (page[-1]["event"],)


def live_references(store: Store, original_id: str) -> Iterator[Reference]:
    """The references that open this original now, those attached last first."""
    batch: list[str] = []
    seen: set[str] = set()
    for event in events(store, original_id):
        name = event["reference_id"]
        if name and name not in seen:
            seen.add(name)
            batch.append(name)
        if len(batch) == PAGE:
            yield from _live(store, [original_id], batch)
            batch = []
    yield from _live(store, [original_id], batch)


def openings(store: Store, original_ids: Sequence[str]) -> Iterator[Reference | None]:
    """For each original the reference that opens it and was attached last, or None. All are asked for at once what
    tells it for most, whose newest event is that attach."""
    slices = [Slice(BINARYREFS_ORIGINAL, (original_id,), limit=1, reverse=True) for original_id in original_ids]
    newest = [rows[0]["reference_id"] if rows else None for rows in store.fetch(slices)]
    named = _live(store, original_ids, [name for name in newest if name])
    live = {(reference.original_id, reference.reference_id): reference for reference in named}
    for original_id, name in zip(original_ids, newest, strict=True):
        known = None if name is None else live.get((original_id, name))
        yield known if known or name is None else next(live_references(store, original_id), None)


def _live(store: Store, original_ids: Collection[str], names: list[str]) -> Iterator[Reference]:
    rows = [row for rows in store.fetch((BINARY_REFS, (name,)) for name in names) for row in rows]
    found = [Reference.of(row) for row in rows if row["original_id"] in original_ids]
    contexts = store.fetch((CONTEXTS, (reference.context,)) for reference in found)
    for reference, context in zip(found, contexts, strict=True):
        if context and context[0]["generation"] == reference.generation:
            yield reference


def is_referenced(store: Store, original_id: str) -> bool:
    return next(live_references(store, original_id), None) is not None


def last_event(store: Store, original_id: str) -> Row | None:
    """The newest attach or release."""
    return next(events(store, original_id), None)


def last_heard_of(original: Original, event: Row | None) -> int:
    """When it was registered, worked on, stored, or attached to or released (``event``, its newest), whatever came
    last."""
    moments = original.registered, original.lease_until or 0, original.created or 0
    return max(*moments, moment_of(event["event"]) if event else 0)


def is_dead_generation(store: Store, generation: str, context: str) -> bool:
    """Whether the context no longer names this generation."""
    row = store.get(CONTEXTS, (context,))
    return row is None or row["generation"] != generation
