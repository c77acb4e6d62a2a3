"""The plugin for many machines: Cassandra 5.0 or later.

Consistency: whatever decides is written at QUORUM and SERIAL, and read at QUORUM. Rows of one partition that a commit
may change together are read at SERIAL, so that no read shows half of it (see :mod:`storage.cassandra_statements`). Only
parts (chunk tables) have a choice, ``consistency``: what a read at LOCAL_QUORUM doesn't find is asked for once more, in
each data centre, before it counts as missing.

Writes of plain tables carry this machine's time. That needs no agreement between clocks, because no key has two
values; erase, and delete where keys are never used again, are stamped a day ahead to win over every other write.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from cassandra import ConsistencyLevel
from cassandra.query import UNSET_VALUE

from storage import cassandra_driver as driver
from storage import cassandra_reads as reads
from storage.cassandra_advice import advice
from storage.cassandra_commits import Commit
from storage.cassandra_options import Options
from storage.cassandra_requests import Pending, Request
from storage.cassandra_schema import Schema
from storage.cassandra_session import Sessions
from storage.cassandra_statements import Statements
from storage.errors import StoreError
from storage.ids import Clock, system_clock
from storage.interface import Advice
from storage.table import Key, Kind, Outcome, Put, Remove, Row, Slice, Table, weigh
from storage.validation import check_changes, check_key, require, whole_row

DAY = 86_400_000_000  # µs


class CassandraStore:
    transactional = False

    def __init__(self, options: Options, *, clock: Clock = system_clock) -> None:
        self._options, self._clock = options, clock
        self._sessions = Sessions(options)
        self._parts = getattr(ConsistencyLevel, options.consistency)
        self._statements: dict[str, Statements] = {}

    def create(self, tables: Sequence[Table]) -> None:
        """Makes the keyspace too, and applies the numbered migrations."""
        Schema(self._sessions).create(tables)

    def get(self, table: Table, key: Key, columns: Sequence[str] | None = None) -> Row | None:
        rows = reads.of_key(self._sessions, self._of(table), key, columns, self._parts).rows()
        return rows[0] if rows else None

    def fetch(self, requests: Iterable[Slice | tuple[Table, Key]], window: int = 16) -> Iterator[list[Row]]:
        under_way: deque[reads.Question | None] = deque()
        alone = True
        for request in requests:
            if isinstance(request, Slice):
                question = reads.of_slice(self._sessions, self._of(request.table), request)
            else:
                question = reads.of_key(self._sessions, self._of(request[0]), request[1], None, self._parts)
                if alone and request[0].chunks:
                    question.rows()  # parts are large: beside others the first would come as late as they all
            alone = False
            under_way.append(question)
            if len(under_way) >= window:
                yield _rows(under_way.popleft())
        while under_way:
            yield _rows(under_way.popleft())

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
        chosen = None if columns is None else tuple(columns)
        wanted = Slice(table, partition, prefix, after, before, limit, reverse, chosen)
        return _rows(reads.of_slice(self._sessions, self._of(table), wanted))

    def scan(
        self, table: Table, cursor: bytes | None = None, limit: int = 1000, columns: Sequence[str] | None = None
    ) -> tuple[list[Row], bytes | None]:
        """The cursor is the driver's paging state."""
        select = self._of(table).scan(columns)
        page = reads.page_of(table, select, max(1, limit))
        request = Request(select.text, (), ConsistencyLevel.QUORUM, profile=driver.SLOW, page=page, cursor=cursor)
        answer = Pending(self._sessions, request).result()
        return [select.row(values) for values in answer.current_rows], answer.paging_state

    def put(self, table: Table, row: Row) -> None:
        self._put(table, row).result(writing=True)

    def put_many(self, rows: Iterable[tuple[Table, Row]], window: int = 8) -> None:
        under_way: deque[Pending] = deque()
        try:
            for table, row in rows:
                under_way.append(self._put(table, row))
                if len(under_way) >= window:
                    under_way.popleft().result(writing=True)
        finally:  # whatever happened, nothing is still on its way when this returns
            failures = [error for error in map(_failure, under_way) if error is not None]
        if failures:
            raise failures[0]

    def delete(self, table: Table, key: Key) -> None:
        require(table, Kind.PLAIN)
        check_key(table, key, table.key)
        stamp = self._clock() if table.hint else self._clock() + DAY  # the key of a hint may be used again
        statements = self._of(table)
        values = [stamp, *statements.key_values(table.key, key)]
        Pending(self._sessions, Request(statements.delete, values, ConsistencyLevel.QUORUM)).result(writing=True)

    def erase(self, table: Table, partition: Key) -> None:
        check_key(table, partition, table.partition)
        statements = self._of(table)
        values = [self._clock() + DAY, *statements.key_values(table.partition, partition)]
        Pending(self._sessions, Request(statements.erase, values, ConsistencyLevel.QUORUM)).result(writing=True)

    def commit(self, table: Table, partition: Key, changes: Sequence[Put | Remove]) -> Outcome:
        checked = check_changes(table, partition, changes)
        return Commit(self._sessions, self._of(table), changes, checked).run()

    def unit(self) -> AbstractContextManager[None]:
        return nullcontext()

    def advice(self) -> Iterator[Advice]:
        return advice(self._sessions)

    def close(self) -> None:
        self._sessions.close()

    def _put(self, table: Table, row: Row) -> Pending:
        require(table, Kind.PLAIN)
        whole = whole_row(table, row)
        statements = self._of(table)
        values = [UNSET_VALUE if value is None else value for value in statements.row_values(whole, table.columns)]
        weight = sum(weigh(value) for value in whole.values() if value is not None)
        consistency = self._parts if table.chunks else ConsistencyLevel.QUORUM
        return Pending(self._sessions, Request(statements.put, values, consistency, weight=weight))

    def _of(self, table: Table) -> Statements:
        found = self._statements.get(table.name)
        if found is None or found.table is not table:
            found = self._statements[table.name] = Statements(self._options.keyspace, table)
        return found


def _rows(question: reads.Question | None) -> list[Row]:
    return question.rows() if question is not None else []


def _failure(pending: Pending) -> StoreError | None:
    try:
        pending.result(writing=True)
    except StoreError as error:
        return error
    return None


def open_store(options: Mapping[str, Any]) -> CassandraStore:
    """``options``: those of :meth:`storage.cassandra_options.Options.read`. Nothing is connected before it is used."""
    return CassandraStore(Options.read(options))
