"""The SQL of a table for SQLite: texts made once for each shape of a question, so that prepared statements are found
again. Pure text; storage/sqlite.py runs it.

Small rows lie in the tree of their primary key itself (WITHOUT ROWID); large values lie beside an index of the key, so
that a walk over keys doesn't read them. Text is compared by its UTF-8 bytes (BINARY), which is the interface's order.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TypeAlias

from storage.table import Kind, Table, Type

_TYPES = {Type.TEXT: "TEXT", Type.INT: "INTEGER", Type.TIMESTAMP: "INTEGER", Type.BLOB: "BLOB"}

Select: TypeAlias = tuple[str, tuple[str, ...]]
"""A text, and the names of the columns of its answer."""

SHAPES = """CREATE TABLE IF NOT EXISTS magazin_tables (
    name TEXT NOT NULL PRIMARY KEY, shape TEXT NOT NULL
) STRICT, WITHOUT ROWID"""


class Statements:
    """The texts for one table. Their parameters are positional, in the order of the columns that they name."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._name = _quoted(table.name)
        self._columns = (*table.columns, "rev") if table.kind is Kind.CAS else tuple(table.columns)
        columns, marks = ", ".join(map(_quoted, self._columns)), ", ".join("?" * len(self._columns))
        self.put = f"INSERT OR REPLACE INTO {self._name} ({columns}) VALUES ({marks})"
        self._by_key = f"FROM {self._name} WHERE {_all_equal(table.key)}"
        self.delete = f"DELETE {self._by_key}"
        self.erase = f"DELETE FROM {self._name} WHERE {_all_equal(table.partition)}"
        self._selects: dict[tuple[object, ...], Select] = {}
        self.get_all = self._select(None, self._by_key)

    def create(self) -> str:
        kinds = [
            f"{_quoted(name)} {_TYPES[kind]}{' NOT NULL' if name in self.table.key else ''}"
            for name, kind in self.table.columns.items()
        ]
        if self.table.kind is Kind.CAS:
            kinds.append('"rev" TEXT NOT NULL')
        key = ", ".join(map(_quoted, self.table.key))
        layout = "STRICT" if self.table.chunks else "STRICT, WITHOUT ROWID"
        return f"CREATE TABLE {self._name} ({', '.join(kinds)}, PRIMARY KEY ({key})) {layout}"

    def add(self, column: str) -> str:
        return f"ALTER TABLE {self._name} ADD COLUMN {_quoted(column)} {_TYPES[self.table.columns[column]]}"

    def get(self, columns: Sequence[str]) -> Select:
        """The row of a whole key."""
        question = ("get", *columns)
        if question not in self._selects:
            self._selects[question] = self._select(columns, self._by_key)
        return self._selects[question]

    def read(self, columns: Sequence[str] | None, prefix: int, after: int, before: int, reverse: bool) -> Select:
        """Rows of a partition; numbers say how many columns the prefix and the bounds name, 0 for no bound.
        Parameters: partition, prefix, after, before, limit."""
        question = ("read", columns and tuple(columns), prefix, after, before, reverse)
        if question not in self._selects:
            rest = self.table.clustering[prefix:]
            conditions = [_all_equal(self.table.partition + self.table.clustering[:prefix])]
            conditions += [_compared(rest[:after], ">")] if after else []
            conditions += [_compared(rest[:before], "<")] if before else []
            self._selects[question] = self._select(
                columns, f"FROM {self._name} WHERE {' AND '.join(conditions)}{_ordered(rest, reverse)} LIMIT ?"
            )
        return self._selects[question]

    def scan(self, columns: Sequence[str] | None, begun: bool) -> Select:
        """Rows in the order of the key, when begun those past one; the whole key is in the answer.
        Parameters: the key, if begun; limit."""
        question = ("scan", columns and tuple(columns), begun)
        if question not in self._selects:
            wanted = None if columns is None else tuple(dict.fromkeys((*columns, *self.table.key)))
            where = f" WHERE {_compared(self.table.key, '>')}" if begun else ""
            self._selects[question] = self._select(
                wanted, f"FROM {self._name}{where}{_ordered(self.table.key, False)} LIMIT ?"
            )
        return self._selects[question]

    def _select(self, columns: Sequence[str] | None, rest: str) -> Select:
        names = self._columns
        if columns is not None:
            unknown = set(columns) - set(self._columns)
            if unknown:
                raise ValueError(f"table {self.table.name} has no column {', '.join(sorted(unknown))}")
            names = tuple(columns)
            if self.table.kind is Kind.CAS and "rev" not in names:
                names = (*names, "rev")
        return f"SELECT {', '.join(map(_quoted, names)) or 'NULL'} {rest}", names


def shape_of(table: Table) -> str:
    """What must agree between two declarations of one table, as text. ``hint`` and ``chunks`` may differ."""
    return json.dumps(
        {
            "kind": table.kind.value,
            "partition": table.partition,
            "clustering": table.clustering,
            "columns": {name: kind.value for name, kind in table.columns.items()},
        }
    )


def added(present: str, wanted: str) -> list[str] | None:
    """The columns that ``wanted`` has beyond ``present``; None when they differ in anything else."""
    old, new = json.loads(present), json.loads(wanted)
    names = [name for name in new["columns"] if name not in old["columns"]]
    for name in names:
        del new["columns"][name]
    return names if old == new else None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _all_equal(names: Sequence[str]) -> str:
    return " AND ".join(f"{_quoted(name)} = ?" for name in names)


def _compared(names: Sequence[str], sign: str) -> str:
    if len(names) == 1:
        return f"{_quoted(names[0])} {sign} ?"
    return f"({', '.join(map(_quoted, names))}) {sign} ({', '.join('?' * len(names))})"


def _ordered(names: Sequence[str], reverse: bool) -> str:
    way = " DESC" if reverse else ""
    return f" ORDER BY {', '.join(_quoted(name) + way for name in names)}" if names else ""
