"""Questions to Cassandra: one row by its key, or a slice of a partition."""

from __future__ import annotations

from collections.abc import Sequence

from cassandra import ConsistencyLevel

from storage import cassandra_driver as driver
from storage.cassandra_requests import Pending, Request
from storage.cassandra_session import Sessions
from storage.cassandra_statements import Select, Statements
from storage.table import Key, Kind, Row, Slice, Table, Type
from storage.validation import check_key, check_slice

PAGE = 1000  # rows of one answer, at most
PARTS, KEYS = 4, 16  # of a chunk table, with and without data; 16 MiB to load at most
LIMIT = (1 << 31) - 1  # Cassandra's own, of rows


class Question:
    """A read under way."""

    def __init__(self, sessions: Sessions, select: Select, request: Request, again: int | None = None) -> None:
        """``again``: the consistency at which to ask once more before nothing counts as nothing."""
        self._sessions, self._select, self._request, self._again = sessions, select, request, again
        self._pending = Pending(sessions, request)
        self._found: list[Row] | None = None

    def rows(self) -> list[Row]:
        """Waits for them. Raises StoreErrors."""
        if self._found is None:
            self._found = self._rows(self._pending)
            if not self._found and self._again is not None:
                self._request.consistency = self._again
                self._found = self._rows(Pending(self._sessions, self._request))
        return self._found

    def _rows(self, pending: Pending) -> list[Row]:
        rows: list[Row] = []
        while True:
            answer = pending.result()
            rows += map(self._select.row, answer.current_rows)
            if answer.paging_state is None:
                return rows
            # A request of its own for each page: the driver's further pages have neither timeout nor second try.
            pending = Pending(self._sessions, self._request.following(answer.paging_state))


def of_key(sessions: Sessions, statements: Statements, key: Key, columns: Sequence[str] | None, parts: int) -> Question:
    """``parts``: the consistency for chunk tables."""
    table, select = statements.table, statements.get(columns)
    values = statements.key_values(table.key, check_key(table, key, table.key))
    if not table.chunks:
        return Question(sessions, select, _request(table, select.text, values))
    again = ConsistencyLevel.EACH_QUORUM if parts == ConsistencyLevel.LOCAL_QUORUM else None
    return Question(sessions, select, Request(select.text, values, parts), again)


def of_slice(sessions: Sessions, statements: Statements, wanted: Slice) -> Question | None:
    """None where nothing is wanted."""
    table, after, before = statements.table, wanted.after or (), wanted.before or ()
    check_slice(table, wanted.partition, wanted.prefix, wanted.after, wanted.before, wanted.limit)
    if wanted.limit == 0:
        return None
    select = statements.read(wanted.columns, len(wanted.prefix), len(after), len(before), wanted.reverse)
    rest = table.clustering[len(wanted.prefix) :]
    limit = min(wanted.limit, LIMIT)
    values = [
        *statements.key_values(table.key, wanted.partition + wanted.prefix),
        *statements.key_values(rest, after),
        *statements.key_values(rest, before),
        limit,
    ]
    page = page_of(table, select, limit) if table.kind is Kind.PLAIN else limit  # a snapshot has one page
    return Question(sessions, select, _request(table, select.text, values, page))


def page_of(table: Table, select: Select, rows: int) -> int:
    """How many rows to ask for at once. A node loads whole rows, also where only their keys are wanted: a page of 1000
    keys of parts has killed one with a small heap."""
    if not table.chunks:
        return min(rows, PAGE)
    return min(rows, PARTS if any(table.columns[name] is Type.BLOB for name in select.names) else KEYS)


def _request(table: Table, text: str, values: Sequence[object], page: int | None = None) -> Request:
    if table.kind is Kind.CAS and table.clustering:
        return Request(text, values, ConsistencyLevel.SERIAL, profile=driver.SERIAL, page=page)
    return Request(text, values, ConsistencyLevel.QUORUM, page=page)
