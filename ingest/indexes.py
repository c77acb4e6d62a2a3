"""References, URLs and their index rows: what must be there is, and what is left over goes.

An index row that is older than :data:`YOUNG` and that its base row doesn't name is stale; a younger one may belong to
a write under way.
"""

from __future__ import annotations

from collections.abc import Iterator

from ingest.findings import Findings, Wrong
from ingest.records import Reference
from ingest.references import References, index_rows
from ingest.tablewalk import every_row
from storage.announcements import Litter
from storage.ids import Clock, moment_of
from storage.interface import Store
from storage.schema import (
    BINARY_REFS,
    BINARYREFS_CONTEXT,
    BINARYREFS_ORIGINAL,
    CONTEXTS,
    ORIGINALS,
    RECENT,
    URLS,
    URLS_ORIGINAL,
)
from storage.table import Remove, Row, Table

YOUNG = 3600 * 1_000_000  # µs


class Indexes:
    def __init__(self, store: Store, references: References, clock: Clock, found: Findings) -> None:
        self._store, self._references, self._clock, self._found = store, references, clock, found

    def check_references(self) -> Iterator[tuple[Litter, str]]:
        """Each live reference has its original and both index rows. Gives dead generations."""
        dead: set[str] = set()
        for row in every_row(self._store, BINARY_REFS):
            reference = Reference.of(row)
            self._found.references += 1
            context = self._store.get(CONTEXTS, (reference.context,))
            if context is None or context["generation"] != reference.generation:
                self._found.dead += 1
                dead.add(f"{reference.generation}/{reference.context}")
            elif self._store.get(ORIGINALS, (reference.original_id,), ("status",)) is None:
                self._dangling(reference)
            else:
                self._indexed(reference)
        return ((Litter.GENERATION, name) for name in dead)

    def check_urls(self) -> None:
        """Each URL's row names an original, which lists the URL."""
        for row in every_row(self._store, URLS):
            original_id, key = row["original_id"], (row["url"],)
            if self._store.get(ORIGINALS, (original_id,), ("status",)) is None:
                # what a PUT would take for absent, too: removing it changes no answer
                self._found.stale += bool(self._store.commit(URLS, key, [Remove(key, row["rev"])]))
            elif self._store.get(URLS_ORIGINAL, (original_id, row["url"])) is None:
                now = self._store.get(URLS, key)
                if now is not None and now["rev"] == row["rev"]:
                    self._found.add(Wrong.INDEX, f"url {row['url']} was missing from {URLS_ORIGINAL.name}")
                    self._store.put(URLS_ORIGINAL, {"original_id": original_id, "url": row["url"]})

    def drop_stale(self) -> Iterator[tuple[Litter, str]]:
        """Delete index rows that no base row names. Gives originals that left events behind."""
        for row in every_row(self._store, BINARYREFS_CONTEXT):
            base = self._store.get(BINARY_REFS, (row["reference_id"],), ("attached", "generation"))
            named = base is not None and (base["attached"], base["generation"]) == (row["attached"], row["generation"])
            if not named and self._is_old(moment_of(row["attached"])):
                self._drop(BINARYREFS_CONTEXT, row)
        for row in every_row(self._store, RECENT):
            base = self._store.get(ORIGINALS, (row["original_id"],), ("created",))
            if (base is None or base["created"] != row["stored"]) and self._is_old(row["stored"]):
                self._drop(RECENT, row)
        left = set()
        for row in every_row(self._store, BINARYREFS_ORIGINAL):
            gone = self._store.get(ORIGINALS, (row["original_id"],), ("status",)) is None
            if gone and self._is_old(moment_of(row["event"])):
                left.add(row["original_id"])
        return ((Litter.ORIGINAL, name) for name in left)

    def _dangling(self, reference: Reference) -> None:
        row = self._store.get(BINARY_REFS, (reference.reference_id,))
        if row is None or row["rev"] != reference.rev:
            return
        text = f"reference {reference.reference_id} ({reference.context}, {reference.url}) has no original"
        self._found.add(Wrong.DANGLING, text)
        if self._is_old(moment_of(reference.attached)):  # else its PUT may be before its second look
            self._references.detach(reference.reference_id)

    def _indexed(self, reference: Reference) -> None:
        rows = index_rows(reference)
        missing = [(table, row) for table, row in rows if self._store.get(table, table.key_of(row)) is None]
        if not missing:
            return
        now = self._store.get(BINARY_REFS, (reference.reference_id,))
        if now is not None and now["rev"] == reference.rev:
            names = ", ".join(table.name for table, _ in missing)
            self._found.add(Wrong.INDEX, f"reference {reference.reference_id} was missing from {names}")
            self._store.put_many(missing)

    def _drop(self, table: Table, row: Row) -> None:
        self._store.delete(table, table.key_of(row))
        self._found.stale += 1

    def _is_old(self, moment: int) -> bool:
        return moment < self._clock() - YOUNG
