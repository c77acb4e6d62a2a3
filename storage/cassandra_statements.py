"""The CQL of a table: texts made once for each shape of a question, and their values as Cassandra takes them.

Pure text; :mod:`storage.cassandra` runs it. Text is compared by its UTF-8 bytes, which is the interface's order.

Whole rows are asked for, whatever columns are wanted, but of chunk tables. For what a read finds on fewer replicas
than it should be on it mends, of the columns that it asked for alone: then half of a row would be on more of them than
the other half, and for a while others could read a mixture of two commits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from storage.table import Key, Kind, Row, Table, Type, Value

TYPES = {Type.TEXT: "text", Type.INT: "bigint", Type.BLOB: "blob", Type.TIMESTAMP: "timestamp"}
_EPOCH = datetime(1970, 1, 1)
_TIMES = range(-62_135_596_800_000, 253_402_300_800_000)  # ms: the years 1 to 9999, which the driver can read


@dataclass(frozen=True)
class Select:
    """A text; what its answer's columns are; which of them are times; which of them were wanted, None for all."""

    text: str
    names: tuple[str, ...]
    times: tuple[int, ...]
    wanted: tuple[str, ...] | None

    def row(self, values: Sequence[Any]) -> Row:
        row = dict(zip(self.names, values, strict=True))
        for place in self.times:
            row[self.names[place]] = microseconds(values[place])
        return row if self.wanted is None else {name: row[name] for name in self.wanted}


class Statements:
    """The texts for one table. Their parameters are positional; times among them are milliseconds, see
    :meth:`key_values`."""

    def __init__(self, keyspace: str, table: Table) -> None:
        self.table = table
        self.name = f"{quoted(keyspace)}.{quoted(table.name)}"
        self.columns = (*table.columns, "rev") if table.kind is Kind.CAS else tuple(table.columns)
        self.regular = tuple(name for name in table.columns if name not in table.key)
        self._by_key = f"WHERE {_all_equal(table.key)}"
        self._of_partition = f"WHERE {_all_equal(table.partition)}"
        self._selects: dict[tuple[object, ...], Select] = {}

    @cached_property
    def put(self) -> str:
        """Parameters: every column in the table's order."""
        marks = ", ".join("?" * len(self.columns))
        return f"INSERT INTO {self.name} ({', '.join(map(quoted, self.columns))}) VALUES ({marks})"

    @cached_property
    def delete(self) -> str:
        """One row. Parameters: timestamp, key."""
        return f"DELETE FROM {self.name} USING TIMESTAMP ? {self._by_key}"

    @cached_property
    def erase(self) -> str:
        """A partition. Parameters: timestamp, partition."""
        return f"DELETE FROM {self.name} USING TIMESTAMP ? {self._of_partition}"

    @cached_property
    def set(self) -> str:
        """Parameters: ``regular`` columns, rev, key."""
        return f"UPDATE {self.name} SET {', '.join(f'{quoted(n)} = ?' for n in (*self.regular, 'rev'))} {self._by_key}"

    @cached_property
    def remove(self) -> str:
        """Parameters: key."""
        return f"DELETE FROM {self.name} {self._by_key}"

    @staticmethod
    def if_rev(text: str) -> str:
        """``text`` with the condition that the row's rev is one more parameter; null says that there is no row, for
        every row has a rev."""
        return f'{text} IF "rev" = ?'

    def get(self, columns: Sequence[str] | None) -> Select:
        """The row of a whole key."""
        return self._select(columns, ("get",), self._by_key)

    def rows(self, count: int) -> Select:
        """So many rows of one partition, at once. Parameters: partition, and each one's clustering values."""
        clustering = self.table.clustering
        marks = f"({', '.join('?' * len(clustering))})"
        among = f" AND ({', '.join(map(quoted, clustering))}) IN ({', '.join([marks] * count)})" if clustering else ""
        return self._select(None, ("rows", count), self._of_partition + among)

    def read(self, columns: Sequence[str] | None, prefix: int, after: int, before: int, reverse: bool) -> Select:
        """Rows of a partition; numbers say how many columns the prefix and the bounds name, 0 for no bound.
        Parameters: partition, prefix, after, before, limit."""
        clustering = self.table.clustering
        rest = clustering[prefix:]
        where = f"WHERE {_all_equal(self.table.partition + clustering[:prefix])}"
        where += f" AND {_compared(rest[:after], '>')}" if after else ""
        where += f" AND {_compared(rest[:before], '<')}" if before else ""
        if reverse and clustering:
            where += f" ORDER BY {', '.join(f'{quoted(name)} DESC' for name in clustering)}"
        return self._select(columns, ("read", prefix, after, before, reverse), f"{where} LIMIT ?")

    def scan(self, columns: Sequence[str] | None) -> Select:
        """Of the partition key alone, one row for each partition."""
        if columns is not None and set(columns) <= set(self.table.partition) and self.table.kind is Kind.PLAIN:
            return self._select(columns, ("partitions",), "", self.table.partition)
        return self._select(columns, ("scan",), "")

    def create(self) -> str:
        columns = [f"{quoted(name)} {TYPES[kind]}" for name, kind in self.table.columns.items()]
        columns += ['"rev" text'] if self.table.kind is Kind.CAS else []
        key = ", ".join([f"({', '.join(map(quoted, self.table.partition))})", *map(quoted, self.table.clustering)])
        options = " AND ".join(f"{name} = {value}" for name, value in options_of(self.table).items())
        lines = ",\n  ".join([*columns, f"PRIMARY KEY ({key})"])
        return f"CREATE TABLE IF NOT EXISTS {self.name} (\n  {lines}\n) WITH {options}"

    def add(self, column: str) -> str:
        return f"ALTER TABLE {self.name} ADD IF NOT EXISTS {quoted(column)} {TYPES[self.table.columns[column]]}"

    def key_values(self, names: Iterable[str], key: Key) -> list[Value]:
        """The values as parameters."""
        columns = self.table.columns
        return [
            milliseconds(value) if columns[name] is Type.TIMESTAMP else value
            for name, value in zip(names, key, strict=False)
        ]

    def row_values(self, row: Row, names: Iterable[str]) -> list[Value]:
        return [milliseconds(row[name]) if self.table.columns[name] is Type.TIMESTAMP else row[name] for name in names]

    def _select(
        self, columns: Sequence[str] | None, question: tuple[object, ...], rest: str, distinct: tuple[str, ...] = ()
    ) -> Select:
        question = (columns and tuple(columns), *question)
        if question not in self._selects:
            wanted = None
            if columns is not None:
                unknown = set(columns) - set(self.columns)
                if unknown:
                    raise ValueError(f"table {self.table.name} has no column {', '.join(sorted(unknown))}")
                wanted = tuple(columns)
                if self.table.kind is Kind.CAS and "rev" not in wanted:
                    wanted = (*wanted, "rev")
            names = distinct or (wanted if wanted and self.table.chunks else self.columns)
            listed = ("DISTINCT " if distinct else "") + ", ".join(map(quoted, names))
            text = f"SELECT {listed} FROM {self.name} {rest}".rstrip()
            times = tuple(n for n, name in enumerate(names) if self.table.columns.get(name) is Type.TIMESTAMP)
            self._selects[question] = Select(text, names, times, None if wanted == names else wanted)
        return self._selects[question]


def options_of(table: Table) -> Mapping[str, str]:
    """How the table is laid out; an operator may change all of it."""
    options = {
        "compaction": "{'class': 'UnifiedCompactionStrategy', 'scaling_parameters': 'T4'}",
        # The defaults, 99p alone, are seconds after a node was lost, and then the next one that hangs is waited for.
        "speculative_retry": "'MIN(99p,100ms)'",
        "additional_write_policy": "'MIN(99p,100ms)'",
    }
    if table.chunks:  # large, incompressible, and read whole: 1.3 times as fast without
        options["compression"] = "{'enabled': 'false'}"
    if table.hint:  # a deleted row that comes back costs a read; as long as nodes keep hints for each other
        options["gc_grace_seconds"] = "10800"
    if table.kind is Kind.CAS and table.clustering:
        # The one setting under which a replica has all rows of a commit or none: mending what a read found on too few
        # replicas, row by row, would break it. Such tables are read at SERIAL, which finishes whole commits.
        options["read_repair"] = "'NONE'"
    return options


def milliseconds(value: Value) -> Value:
    if not isinstance(value, int):
        return value
    if value // 1000 not in _TIMES:
        raise ValueError(f"a time of {value} µs; Cassandra's driver knows the years 1 to 9999")
    return value // 1000


def microseconds(value: Any) -> int | None:
    """Of a time as the driver gives it, a datetime in UTC; exact up to the year 9999."""
    if value is None:
        return None
    since: timedelta = value - _EPOCH
    return (since.days * 86_400_000 + since.seconds * 1000 + (since.microseconds + 500) // 1000) * 1000


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _all_equal(names: Sequence[str]) -> str:
    return " AND ".join(f"{quoted(name)} = ?" for name in names)


def _compared(names: Sequence[str], sign: str) -> str:
    return f"({', '.join(map(quoted, names))}) {sign} ({', '.join('?' * len(names))})"
