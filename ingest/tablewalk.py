"""A walk over a whole table, for checks and the command line; never in a request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from storage.interface import Store
from storage.table import Row, Table

PAGE = 500


def every_row(store: Store, table: Table, columns: Sequence[str] | None = None) -> Iterator[Row]:
    """Every row that exists throughout at least once, in no order; others may be."""
    cursor: bytes | None = None
    while True:
        rows, cursor = store.scan(table, cursor, PAGE, columns)
        yield from rows
        if cursor is None:
            return
