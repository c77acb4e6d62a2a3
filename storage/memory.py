"""The reference plugin: dicts in this process. For tests; nothing survives the process.

``strict`` makes it as unforgiving as the weakest real store: a non-hint plain key that is written with another value
or again after its delete raises BrokenPromise, and whatever is written to an erased partition vanishes, even when the
write is answered «applied» (Cassandra stamps an erase a day ahead).
"""

from __future__ import annotations

import base64
import bisect
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from storage.errors import BrokenPromise, SchemaMismatch
from storage.table import ABSENT, Expect, Key, Kind, Outcome, Put, Remove, Row, Slice, Table
from storage.validation import check_changes, check_key, check_slice, require, whole_row


class Partition:
    """Rows by clustering key, with the keys kept in order."""

    def __init__(self) -> None:
        self.rows: dict[Key, Row] = {}
        self.order: list[Any] = []

    def set(self, clustering: Key, row: Row | None) -> Row | None:
        """Put or, with None, drop a row; the row that was there."""
        before = self.rows.pop(clustering, None)
        if row is not None:
            self.rows[clustering] = row
            if before is None:
                bisect.insort(self.order, clustering)
        elif before is not None:
            del self.order[bisect.bisect_left(self.order, clustering)]
        return before


class MemoryStore:
    def __init__(
        self, *, strict: bool = False, transactional: bool = True, new_rev: Callable[[], str] = lambda: uuid4().hex
    ) -> None:
        self.transactional = transactional
        self._strict, self._new_rev = strict, new_rev
        self._lock = threading.RLock()
        self._tables: dict[str, Table] = {}
        self._data: dict[str, dict[Key, Partition]] = {}
        self._deleted: set[tuple[str, Key]] = set()
        self._erased: set[tuple[str, Key]] = set()
        self._undo: list[Callable[[], object]] | None = None

    def create(self, tables: Sequence[Table]) -> None:
        with self._lock:
            for table in tables:
                known = self._tables.setdefault(table.name, table)
                if _shape(known) != _shape(table):
                    raise SchemaMismatch(f"table {table.name} exists with another shape")
                self._data.setdefault(table.name, {})

    def get(self, table: Table, key: Key, columns: Sequence[str] | None = None) -> Row | None:
        check_key(table, key, table.key)
        with self._lock:
            row = self._row(table, key)
            return None if row is None else _chosen(table, row, columns)

    def fetch(self, requests: Iterable[Slice | tuple[Table, Key]], window: int = 16) -> Iterator[list[Row]]:
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
        with self._lock:
            held = self._data[table.name].get(partition)
            if held is None:
                return []
            low = 0 if after is None else _past(held.order, prefix + after)
            high = len(held.order) if before is None else _at(held.order, prefix + before)
            if prefix:
                low, high = max(low, _at(held.order, prefix)), min(high, _past(held.order, prefix))
            wanted = held.order[low:high]
            if reverse:
                wanted.reverse()
            return [_chosen(table, held.rows[key], columns) for key in wanted[:limit]]

    def scan(
        self, table: Table, cursor: bytes | None = None, limit: int = 1000, columns: Sequence[str] | None = None
    ) -> tuple[list[Row], bytes | None]:
        with self._lock:
            rows = [row for part in self._data[table.name].values() for row in part.rows.values()]
        rows.sort(key=lambda row: _sortable(table, row))
        if cursor is not None:
            last = json.loads(cursor)
            rows = [row for row in rows if _sortable(table, row) > last]
        page = rows[: max(1, limit)]
        more = _encode(_sortable(table, page[-1])) if len(rows) > len(page) else None
        return [_chosen(table, row, columns) for row in page], more

    def put(self, table: Table, row: Row) -> None:
        require(table, Kind.PLAIN)
        whole = whole_row(table, row)
        with self._lock:
            self._keep_promise(table, whole)
            self._set(table, table.key_of(whole), whole)

    def put_many(self, rows: Iterable[tuple[Table, Row]], window: int = 8) -> None:
        for table, row in rows:
            self.put(table, row)

    def delete(self, table: Table, key: Key) -> None:
        require(table, Kind.PLAIN)
        check_key(table, key, table.key)
        with self._lock:
            if self._strict and not table.hint:
                self._deleted.add((table.name, key))
            self._set(table, key, None)

    def erase(self, table: Table, partition: Key) -> None:
        check_key(table, partition, table.partition)
        with self._lock:
            if self._strict:
                self._erased.add((table.name, partition))
            held = self._data[table.name].pop(partition, None)
            if held is not None and self._undo is not None:
                self._undo.append(lambda: self._data[table.name].__setitem__(partition, held))

    def commit(self, table: Table, partition: Key, changes: Sequence[Put | Remove]) -> Outcome:
        checked = check_changes(table, partition, changes)
        with self._lock:
            met = [(change.expect, self._row(table, key)) for change, (key, _) in zip(changes, checked, strict=True)]
            conditional = [(expect, row) for expect, row in met if expect is not None]
            if not all(
                row is None if expect is ABSENT else row and row["rev"] == expect for expect, row in conditional
            ):
                return Outcome(False, rows=tuple(row and dict(row) for _, row in conditional))
            rev = self._new_rev()
            for key, row in checked:
                self._set(table, key, None if row is None else row | {"rev": rev})
            return Outcome(True, rev)

    @contextmanager
    def unit(self) -> Iterator[None]:
        if not self.transactional:
            yield
            return
        with self._lock:
            if self._undo is not None:
                yield
                return
            self._undo = []
            try:
                yield
            except BaseException:
                for undo in reversed(self._undo):
                    undo()
                raise
            finally:
                self._undo = None

    def close(self) -> None:
        pass

    def _row(self, table: Table, key: Key) -> Row | None:
        split = len(table.partition)
        held = self._data[table.name].get(key[:split])
        return held.rows.get(key[split:]) if held else None

    def _set(self, table: Table, key: Key, row: Row | None) -> None:
        split = len(table.partition)
        if (table.name, key[:split]) in self._erased:
            return
        before = self._data[table.name].setdefault(key[:split], Partition()).set(key[split:], row)
        if self._undo is not None:
            self._undo.append(
                lambda: self._data[table.name].setdefault(key[:split], Partition()).set(key[split:], before)
            )

    def _keep_promise(self, table: Table, row: Row) -> None:
        if not self._strict or table.hint:
            return
        key = table.key_of(row)
        if (table.name, key) in self._deleted:
            raise BrokenPromise(f"table {table.name}: {key!r} was deleted and is written again")
        present = self._row(table, key)
        if present is not None and present != row:
            raise BrokenPromise(f"table {table.name}: {key!r} is written with another value")


def _is_as(expect: Expect, row: Row | None) -> bool:
    if expect is ABSENT:
        return row is None
    return row is not None and row["rev"] == expect


def _shape(table: Table) -> tuple[object, ...]:
    return table.partition, table.clustering, table.kind, dict(table.columns)


def _at(order: list[Any], bound: Key) -> int:
    """Where the keys that begin with ``bound`` start. A tuple sorts before the longer ones that it begins."""
    return bisect.bisect_left(order, bound)


def _past(order: list[Any], bound: Key) -> int:
    """Where the keys that begin with ``bound`` end."""
    return bisect.bisect_right(order, bound, key=lambda key: key[: len(bound)])


def _chosen(table: Table, row: Row, columns: Sequence[str] | None) -> Row:
    if columns is None:
        return dict(row)
    chosen = {name: row[name] for name in columns}
    if table.kind is Kind.CAS:
        chosen["rev"] = row["rev"]
    return chosen


def _sortable(table: Table, row: Row) -> list[Any]:
    return [base64.b64encode(value).decode() if isinstance(value, bytes) else value for value in table.key_of(row)]


def _encode(key: list[Any]) -> bytes:
    return json.dumps(key).encode()


def open_store(options: Mapping[str, Any]) -> MemoryStore:
    return MemoryStore(strict=bool(options.get("strict", False)))
