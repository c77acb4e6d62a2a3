"""The embedded plugin: one SQLite file in WAL mode, for any number of processes of one machine.

A write is durable when its call returns (synchronous FULL). Readers wait for nobody; writers wait ``wait`` seconds
for their turn, then raise Unavailable.

``create`` keeps each table's shape in the file. A declaration with further columns adds them (None in the rows that
are there), so that a newer Magazin opens an older store; anything else that differs raises SchemaMismatch, and so does
an older Magazin on a newer store, whose columns it would lose.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from storage.errors import SchemaMismatch
from storage.sqlite_connections import Connections
from storage.statements import SHAPES, Statements, added, shape_of
from storage.table import ABSENT, Key, Kind, Outcome, Put, Remove, Row, Slice, Table, Type, Value, weigh
from storage.validation import check_changes, check_key, check_slice, require, whole_row

_GROUP = 4 << 20  # bytes that put_many gathers at most


class SqliteStore:
    transactional = True

    def __init__(self, path: Path, *, wait: float = 10.0) -> None:
        self._connections = Connections(path, wait)
        self._statements: dict[str, Statements] = {}

    def create(self, tables: Sequence[Table]) -> None:
        wanted = {table.name: shape_of(table) for table in tables}
        if all(self._shapes().get(name) == shape for name, shape in wanted.items()):
            return
        with self._connections.unit() as connection:
            connection.execute(SHAPES)
            present = self._shapes()
            for table in tables:
                statements, shape = self._of(table), wanted[table.name]
                for text in self._changes(statements, present.get(table.name), shape):
                    connection.execute(text)
                connection.execute("INSERT OR REPLACE INTO magazin_tables VALUES (?, ?)", (table.name, shape))

    def get(self, table: Table, key: Key, columns: Sequence[str] | None = None) -> Row | None:
        check_key(table, key, table.key)
        statements = self._of(table)
        text, names = statements.get_all if columns is None else statements.get(columns)
        rows = self._connections.rows(text, names, key)
        return rows[0] if rows else None

    def fetch(self, requests: Iterable[Slice | tuple[Table, Key]], window: int = 16) -> Iterator[list[Row]]:
        """One after another, as they are taken: nothing here is faster in parallel."""
        for request in requests:
            if isinstance(request, Slice):
                yield self.read(
                    request.table,
                    request.partition,
                    prefix=request.prefix,
                    after=request.after,
                    before=request.before,
                    limit=request.limit,
                    reverse=request.reverse,
                    columns=request.columns,
                )
            else:
                row = self.get(*request)
                yield [] if row is None else [row]

    def read(
        self,
        table: Table,
        partition: Key,
        *,
        prefix: Key = (),
        after: Key | None = None,
        before: Key | None = None,
        limit: int,
        reverse: bool = False,
        columns: Sequence[str] | None = None,
    ) -> list[Row]:
        check_slice(table, partition, prefix, after, before, limit)
        after, before = after or (), before or ()
        text, names = self._of(table).read(columns, len(prefix), len(after), len(before), reverse)
        return self._connections.rows(text, names, (*partition, *prefix, *after, *before, limit))

    def scan(
        self, table: Table, cursor: bytes | None = None, limit: int = 1000, columns: Sequence[str] | None = None
    ) -> tuple[list[Row], bytes | None]:
        limit = max(1, limit)
        text, names = self._of(table).scan(columns, cursor is not None)
        begin = () if cursor is None else _decoded(table, cursor)
        rows = self._connections.rows(text, names, (*begin, limit))
        more = _encoded(table.key_of(rows[-1])) if rows and len(rows) == limit else None
        for name in set() if columns is None else set(table.key) - set(columns):
            for row in rows:
                del row[name]
        return rows, more

    def put(self, table: Table, row: Row) -> None:
        require(table, Kind.PLAIN)
        values = tuple(whole_row(table, row).values())
        with self._connections.transaction() as connection:
            connection.execute(self._of(table).put, values)

    def put_many(self, rows: Iterable[tuple[Table, Row]], window: int = 8) -> None:
        """A transaction for each ``window`` rows, or fewer that are large."""
        stream = iter(rows)
        while group := self._group(stream, window):
            with self._connections.transaction() as connection:
                for text, values in group:
                    connection.execute(text, values)

    def delete(self, table: Table, key: Key) -> None:
        require(table, Kind.PLAIN)
        check_key(table, key, table.key)
        with self._connections.transaction() as connection:
            connection.execute(self._of(table).delete, key)

    def erase(self, table: Table, partition: Key) -> None:
        check_key(table, partition, table.partition)
        with self._connections.transaction() as connection:
            connection.execute(self._of(table).erase, partition)

    def commit(self, table: Table, partition: Key, changes: Sequence[Put | Remove]) -> Outcome:
        checked = check_changes(table, partition, changes)
        statements = self._of(table)
        with self._connections.transaction() as connection:
            met: list[Row | None] = []
            agreed = True
            for change, (key, _) in zip(changes, checked, strict=True):
                if change.expect is not None:
                    rows = connection.rows(*statements.get_all, key)
                    met.append(rows[0] if rows else None)
                    agreed &= not rows if change.expect is ABSENT else bool(rows) and rows[0]["rev"] == change.expect
            if not agreed:
                return Outcome(False, rows=tuple(met))
            rev = os.urandom(16).hex()
            for key, row in checked:
                if row is None:
                    connection.execute(statements.delete, key)
                else:
                    connection.execute(statements.put, (*row.values(), rev))
        return Outcome(True, rev)

    @contextmanager
    def unit(self) -> Iterator[None]:
        with self._connections.unit():
            yield

    def state(self) -> object:
        return self._connections.state()

    def close(self) -> None:
        self._connections.close()

    def _of(self, table: Table) -> Statements:
        found = self._statements.get(table.name)
        if found is None or found.table is not table:
            found = self._statements[table.name] = Statements(table)
        return found

    def _group(self, stream: Iterator[tuple[Table, Row]], window: int) -> list[tuple[str, tuple[Value, ...]]]:
        group: list[tuple[str, tuple[Value, ...]]] = []
        weight = 0
        for table, row in islice(stream, max(1, window)):
            require(table, Kind.PLAIN)
            values = tuple(whole_row(table, row).values())
            group.append((self._of(table).put, values))
            weight += sum(weigh(value) for value in values)
            if weight >= _GROUP:
                break
        return group

    def _shapes(self) -> dict[str, str]:
        exists = "SELECT name FROM sqlite_schema WHERE name = 'magazin_tables'"
        if not self._connections.rows(exists, ("name",), ()):
            return {}
        rows = self._connections.rows("SELECT name, shape FROM magazin_tables", ("name", "shape"), ())
        return {row["name"]: row["shape"] for row in rows}

    def _changes(self, statements: Statements, present: str | None, wanted: str) -> list[str]:
        name = statements.table.name
        if present is None:
            if self._connections.rows("SELECT name FROM sqlite_schema WHERE name = ?", ("name",), (name,)):
                raise SchemaMismatch(f"table {name} exists and was made by something else")
            return [statements.create()]
        new = added(present, wanted)
        if new is None:
            raise SchemaMismatch(f"table {name} exists as {present}, not as {wanted}")
        return [statements.add(column) for column in new]


def _encoded(key: Key) -> bytes:
    return json.dumps([value.hex() if isinstance(value, bytes) else value for value in key]).encode()


def _decoded(table: Table, cursor: bytes) -> Key:
    values: list[Any] = json.loads(cursor)
    kinds = [table.columns[name] for name in table.key]
    key = tuple(bytes.fromhex(value) if kind is Type.BLOB else value for kind, value in zip(kinds, values, strict=True))
    return check_key(table, key, table.key)


def open_store(options: Mapping[str, Any]) -> SqliteStore:
    """``data``: the folder that holds ``store.sqlite``, made if it is missing; ``wait``: seconds, see the module."""
    folder = Path(options["data"])
    folder.mkdir(parents=True, exist_ok=True)
    return SqliteStore(folder / "store.sqlite", wait=float(options.get("wait", 10.0)))
