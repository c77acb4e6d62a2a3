"""References: attach one to the present original of a URL, find, list and detach them.

The store's protocols PUT, GET and DELETE. Every step is one write, in an order that a crash or a sweep between any two
of them can't hurt: announce, index rows, the row itself, then a second look. ``unit()`` only makes it faster where the
store is transactional.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Final

from ingest.fetch.guard import Guard
from ingest.fetch.url import host_of, mask, normalise
from ingest.logs import Logs
from ingest.records import Original, Reference, Status, check_context, reference_id_of
from ingest.remembered import Attached, Remembered, Unchanged
from ingest.schedule import queue_rows
from storage.announcements import Litter, announcement
from storage.errors import Unavailable
from storage.ids import Clock, Ids
from storage.interface import Store, Watchful
from storage.schema import (
    BINARY_REFS,
    BINARYREFS_CONTEXT,
    BINARYREFS_ORIGINAL,
    CONTEXTS,
    LOGS,
    ORIGINALS,
    URLS,
    URLS_ORIGINAL,
)
from storage.table import ABSENT, Key, Put, Remove, Row, Table

ROUNDS: Final = 20  # each lost race means that somebody else went on, so that many in a row tell of a sick store
STALE: Final = 60 * 1_000_000  # µs between an index row and its row, after which a new tag is needed
DIGITS: Final = "0123456789abcdef"


class References:
    """What the HTTP layer and the command line do with references.

    ``reference_ttl``: seconds for which this process may answer :meth:`find` from memory; part of the takedown bound.
    """

    def __init__(self, store: Store, *, ids: Ids, clock: Clock, guard: Guard, reference_ttl: float = 0.0) -> None:
        self._store, self._ids, self._clock, self._guard = store, ids, clock, guard
        self._logs = Logs(store, ids=ids, clock=clock)
        self._remembered: Remembered | Unchanged = Remembered(clock, reference_ttl)
        if not reference_ttl and isinstance(store, Watchful):
            self._remembered = Unchanged(store)

    def attach(self, context: str, url: str, mime: str | None = None) -> Attached:
        """The reference of (context, url), attached to the URL's present original; a new one is queued.

        An original that ended in ERROR is queued again, as ``mime`` if that is given now. Raises BadContext,
        InvalidUrl, BlockedUrl, or Unavailable.
        """
        check_context(context)
        url = normalise(url)
        self._guard.check_literal(url)
        return self._attach(context, url, lambda: self._mint(url, mime), None, mime)

    def adopt(self, context: str, original: Original) -> Attached:
        """The reference of (context, the original's URL), with that URL moved to this original.

        For bytes that are in store before anyone refers to them: local files, and new bytes at a known URL.
        """
        check_context(context)
        return self._attach(context, original.url, lambda: original, original.original_id)

    def find(self, reference_id: str) -> Attached | None:
        """The reference and its original, or None when there is no live reference of this id."""
        remembered = self._remembered.get(reference_id)
        if remembered is not None:
            return remembered
        found = self._find(reference_id)
        if found is not None:
            self._remembered.keep(found)
        return found

    def page(self, context: str, *, after: str | None = None, limit: int) -> list[Attached]:
        """Up to ``limit`` live references of a context, ordered by reference_id, each with its original."""
        row = self._store.get(CONTEXTS, (context,))
        if row is None:
            return []
        found: list[Attached] = []
        for entries in self._index_pages(row["generation"], after, limit):
            found += self._verified(entries)
            if len(found) >= limit:
                break
        return found[:limit]

    def detach(self, reference_id: str) -> None:
        """Take a reference down. Nothing there: nothing happens. Its original goes with a later sweep."""
        for _ in range(ROUNDS):
            row = self._store.get(BINARY_REFS, (reference_id,))
            if row is None or self._detach(Reference.of(row)):
                self._remembered.forget(reference_id)
                return
        raise Unavailable(f"reference {reference_id} changes all the time; try again")

    def detach_context(self, context: str) -> None:
        """Take a whole context down, in one write. The sweep works its references off."""
        for _ in range(ROUNDS):
            row = self._store.get(CONTEXTS, (context,))
            if row is None:
                return
            self._store.put(*announcement(Litter.GENERATION, f"{row['generation']}/{context}", self._clock()))
            if self._store.commit(CONTEXTS, (context,), [Remove((context,), row["rev"])]):
                self._remembered.clear()
                return
        raise Unavailable(f"context {context} changes all the time; try again")

    def _attach(
        self, context: str, url: str, mint: Callable[[], Original], adopted: str | None, mime: str | None = None
    ) -> Attached:
        reference_id = reference_id_of(context, url)
        for _ in range(ROUNDS):
            with self._store.unit():
                attached = self._round(reference_id, context, url, mint, adopted, mime)
            if attached is not None:
                self._remembered.forget(reference_id)
                return attached
        raise Unavailable(f"reference {reference_id} could not be attached: its URL or context changes all the time")

    def _round(
        self,
        reference_id: str,
        context: str,
        url: str,
        mint: Callable[[], Original],
        adopted: str | None,
        mime: str | None,
    ) -> Attached | None:
        """One round of PUT; None when somebody else was quicker at any step."""
        rows = self._store.fetch([(URLS, (url,)), (CONTEXTS, (context,)), (BINARY_REFS, (reference_id,))])
        url_row, context_row, reference_row = (found[0] if found else None for found in rows)
        generation = context_row["generation"] if context_row else self._open_context(context)
        if generation is None:
            return None
        original_id = self._present(url, url_row, mint, adopted)
        if original_id is None:
            return None
        present = Reference.of(reference_row) if reference_row else None
        if present is None or (present.original_id, present.generation) != (original_id, generation):
            wanted = Reference(reference_id, original_id, context, generation, url, self._tag())
            present = self._point(present, wanted)
        return None if present is None else self._second_look(present, mime)

    def _open_context(self, context: str) -> str | None:
        generation = self._ids.ordered()
        row: Row = {"context": context, "generation": generation}
        return generation if self._store.commit(CONTEXTS, (context,), [Put(row, ABSENT)]) else None

    def _present(self, url: str, url_row: Row | None, mint: Callable[[], Original], adopted: str | None) -> str | None:
        """The id of the URL's present original; where there is none, a new one. None when another was quicker."""
        if url_row is not None and adopted in (None, url_row["original_id"]):
            row = self._store.get(ORIGINALS, (url_row["original_id"],), ("retired",))
            if row is not None and not row["retired"]:
                return str(url_row["original_id"])
            if adopted is not None:
                raise Unavailable(f"original {adopted} was swept before it was adopted; try again")
        original = mint()
        if adopted is not None:
            self._store.put(URLS_ORIGINAL, {"original_id": adopted, "url": url})
        row = {"url": url, "original_id": original.original_id}
        expect = url_row["rev"] if url_row else ABSENT
        moved = self._store.commit(URLS, (url,), [Put(row, expect)])
        return original.original_id if moved else None

    def _mint(self, url: str, mime: str | None) -> Original:
        """A new original, announced, queued and committed; nothing names it yet."""
        now, host = self._clock(), host_of(url)
        original = Original(
            self._ids.random(), Status.PROCESSING, url, host, registered=now, due=now, mime_declared=mime
        )
        self._store.put_many(
            [
                announcement(Litter.ORIGINAL, original.original_id, now),
                *queue_rows(original),
                (URLS_ORIGINAL, {"original_id": original.original_id, "url": url}),
                self._logs.original_line(original.original_id, f"queued: {mask(url)}"),
            ]
        )
        if not self._store.commit(ORIGINALS, (original.original_id,), [Put(original.row(), ABSENT)]):
            raise Unavailable(f"original id {original.original_id} is in use already; try again")
        return original

    def _tag(self) -> str:
        """Of one attachment, never used again: so a slow deleter can't hit the next one's index rows."""
        return self._ids.ordered()

    def _point(self, present: Reference | None, wanted: Reference) -> Reference | None:
        """Commit a reference between its index rows: the new ones before, the old ones dropped after."""
        started = self._clock()
        writes = index_rows(wanted)
        if present is not None and present.original_id != wanted.original_id:
            writes += self._release(present)
        self._store.put_many(writes)
        if self._clock() - started > STALE:
            return None
        expect = present.rev if present else ABSENT
        outcome = self._store.commit(BINARY_REFS, (wanted.reference_id,), [Put(wanted.row(), expect)])
        if not outcome:
            self._store.delete(BINARYREFS_CONTEXT, BINARYREFS_CONTEXT.key_of(_context_entry(wanted)))
            return None
        if present is not None:
            self._drop_traces(present)
        return dataclasses.replace(wanted, rev=outcome.rev)

    def _second_look(self, reference: Reference, mime: str | None) -> Attached | None:
        """What a sweep or a DELETE may have cut between the first look and the reference's commit."""
        rows = self._store.fetch([(ORIGINALS, (reference.original_id,)), (CONTEXTS, (reference.context,))])
        original_row, context_row = (found[0] if found else None for found in rows)
        if original_row is None or original_row["retired"]:
            return None
        if context_row is None or context_row["generation"] != reference.generation:
            return None
        original = Original.of(original_row)
        if original.status != Status.ERROR:
            return reference, original
        again = original.queued_again(self._clock())
        again = dataclasses.replace(again, mime_declared=mime or original.mime_declared)
        line = self._logs.original_line(original.original_id, "queued again, after an ERROR")
        self._store.put_many([*queue_rows(again), line])
        outcome = self._store.commit(ORIGINALS, (original.original_id,), [Put(again.row(), original.rev)])
        return (reference, dataclasses.replace(again, rev=outcome.rev)) if outcome else None

    def _detach(self, reference: Reference, *, index_too: bool = True) -> bool:
        with self._store.unit():
            self._store.put_many(self._release(reference))
            key = (reference.reference_id,)
            if not self._store.commit(BINARY_REFS, key, [Remove(key, reference.rev)]):
                return False
            self._drop_traces(reference, index_too=index_too)
            return True

    def detach_generation(self, reference_id: str, generation: str) -> bool:
        """Take a reference down if it still is of this dead generation; False when another was quicker. The context's
        index row stays for whoever erases the partition: a sweep that is cut would else have to pass all tombstones."""
        row = self._store.get(BINARY_REFS, (reference_id,))
        if row is None or row["generation"] != generation:
            return False
        return self._detach(Reference.of(row), index_too=False)

    def _release(self, reference: Reference) -> list[tuple[Table, Row]]:
        return [
            announcement(Litter.ORIGINAL, reference.original_id, self._clock()),
            _event(reference.original_id, self._ids.ordered(), ""),
        ]

    def _drop_traces(self, reference: Reference, *, index_too: bool = True) -> None:
        """The log and the context's index row of an attachment that is over."""
        self._store.erase(LOGS, (reference.attached,))
        if index_too:
            self._store.delete(BINARYREFS_CONTEXT, BINARYREFS_CONTEXT.key_of(_context_entry(reference)))

    def _find(self, reference_id: str) -> Attached | None:
        for _ in range(ROUNDS):
            row = self._store.get(BINARY_REFS, (reference_id,))
            if row is None:
                return None
            reference = Reference.of(row)
            rows = self._store.fetch([(ORIGINALS, (reference.original_id,)), (CONTEXTS, (reference.context,))])
            original, context = (found[0] if found else None for found in rows)
            if context is None or context["generation"] != reference.generation:
                return None
            if original is not None:
                return reference, Original.of(original)
            again = self._store.get(BINARY_REFS, (reference_id,), ("original_id",))
            if again is None or again["rev"] == row["rev"]:
                return None  # a PUT that died before its second look left it
        raise Unavailable(f"reference {reference_id} changes all the time; try again")

    def _index_pages(self, generation: str, after: str | None, limit: int) -> Iterator[list[Row]]:
        for digit in DIGITS:
            if after is not None and digit < after[:1]:
                continue
            bound: Key | None = (after,) if after is not None and after[:1] == digit else None
            while True:
                page = self._store.read(BINARYREFS_CONTEXT, (generation, digit), after=bound, limit=limit)
                yield page
                if len(page) < limit:
                    break
                bound = (page[-1]["reference_id"], page[-1]["attached"])

    def _verified(self, entries: list[Row]) -> list[Attached]:
        """The entries whose reference's row agrees, each with its original."""
        rows = self._store.fetch((BINARY_REFS, (entry["reference_id"],)) for entry in entries)
        references = [
            Reference.of(row[0])
            for entry, row in zip(entries, rows, strict=True)
            if row and (row[0]["attached"], row[0]["generation"]) == (entry["attached"], entry["generation"])
        ]
        originals = self._store.fetch((ORIGINALS, (reference.original_id,)) for reference in references)
        return [
            (reference, Original.of(found[0])) for reference, found in zip(references, originals, strict=True) if found
        ]


def index_rows(reference: Reference) -> list[tuple[Table, Row]]:
    """The rows that stand in the indexes for as long as the reference does."""
    return [
        _event(reference.original_id, reference.attached, reference.reference_id),
        (BINARYREFS_CONTEXT, _context_entry(reference)),
    ]


def _event(original_id: str, event: str, reference_id: str) -> tuple[Table, Row]:
    return BINARYREFS_ORIGINAL, {"original_id": original_id, "event": event, "reference_id": reference_id}


def _context_entry(reference: Reference) -> Row:
    return {
        "generation": reference.generation,
        "digit": reference.reference_id[0],
        "reference_id": reference.reference_id,
        "attached": reference.attached,
    }
