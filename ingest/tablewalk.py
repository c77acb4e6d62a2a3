"""Walks over a whole table, for checks and the command line and never in a request, and over one partition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from storage.interface import Store
from storage.table import Key, Row, Table

PAGE = 500


def every_row(store: Store, table: Table, columns: Sequence[str] | None = None) -> Iterator[Row]:
    """Every row that exists throughout at least once, in no order; others may be."""
    cursor: bytes | None = None
    while True:
        rows, cursor = store.scan(table, cursor, PAGE, columns)
        yield from rows
        if cursor is None:
            return


def rows_of(store: Store, table: Table, partition: Key) -> Iterator[Row]:
    """The rows of a partition in order, read page by page."""
    after: Key | None = None
    while page := store.read(table, partition, after=after, limit=PAGE):
        yield from page
        if len(page) < PAGE:
            return
        after = tuple(page[-1][name] for name in table.clustering)
