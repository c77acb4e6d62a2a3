"""The keyspace and its tables: made, compared and migrated.

The server's own description is what counts: a table agrees when its key and columns do. A declaration with further
columns adds them; anything else that differs is refused, and so is a keyspace that a newer Magazin has made.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from cassandra.cluster import ResultSet

from storage.cassandra_cql import keyspace_text, state_text
from storage.cassandra_session import Sessions
from storage.cassandra_statements import TYPES, Statements, quoted
from storage.errors import SchemaMismatch, StoreError, Unavailable, Unknown
from storage.table import Kind, Table


@dataclass(frozen=True)
class Migration:
    """What adding tables and columns can't do. ``{keyspace}`` in a statement is the keyspace's name. It may be broken
    off and begun again."""

    number: int
    statements: tuple[str, ...]


MIGRATIONS: tuple[Migration, ...] = ()
"""In order of their numbers, from 1. A new keyspace begins as if all of them had been applied."""

LOCK = 300  # seconds: longer than any one change of the schema takes
"""So long one that was killed keeps the next one waiting."""
SPREAD = 30  # seconds: within which each node knows what was made by way of another


@dataclass(frozen=True)
class Shape:
    """What of a table must agree."""

    partition: tuple[str, ...]
    clustering: tuple[str, ...]
    columns: Mapping[str, str]

    @classmethod
    def of(cls, table: Table) -> Shape:
        columns = {name: TYPES[kind] for name, kind in table.columns.items()}
        return cls(table.partition, table.clustering, columns | ({"rev": "text"} if table.kind is Kind.CAS else {}))

    def lacks(self, wanted: Shape) -> list[str] | None:
        """The columns that ``wanted`` has beyond this; None when they differ in anything else."""
        same = (self.partition, self.clustering) == (wanted.partition, wanted.clustering)
        new = [name for name in wanted.columns if name not in self.columns]
        if not same or "rev" in new or self.columns != {n: k for n, k in wanted.columns.items() if n not in new}:
            return None
        return new

    def __str__(self) -> str:
        columns = ", ".join(f"{name} {kind}" for name, kind in sorted(self.columns.items()))
        return f"(({', '.join(self.partition)}){''.join(f', {name}' for name in self.clustering)}) {columns}"


class Schema:
    def __init__(
        self,
        sessions: Sessions,
        migrations: Sequence[Migration] = MIGRATIONS,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sessions, self._migrations, self._sleep, self._clock = sessions, migrations, sleep, clock
        self._keyspace = sessions.options.keyspace
        self._state = f"{quoted(self._keyspace)}.magazin_schema"

    def create(self, tables: Sequence[Table]) -> None:
        """See :meth:`storage.interface.Store.create`."""
        present = self._shapes()
        if "magazin_schema" not in present or self._todo(tables, present) or self._pending():
            self._change(tables)
        self._sessions.agree()

    def _change(self, tables: Sequence[Table]) -> None:
        if not self._has_keyspace():  # to say it all the same would take the right to make any
            self._sessions.execute(keyspace_text(self._keyspace, self._sessions.options.replication))
        self._spread(state_text(self._keyspace))
        with self._lock() as keep:
            for migration in self._pending():
                for text in migration.statements:
                    keep()
                    self._sessions.execute(text.format(keyspace=quoted(self._keyspace)))
                self._note(migration.number)
            for text in self._todo(tables, self._shapes()):
                keep()
                self._sessions.execute(text)

    def _has_keyspace(self) -> bool:
        query = "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = %s"
        return bool(list(self._sessions.execute(query, self._keyspace)))

    def _todo(self, tables: Sequence[Table], present: Mapping[str, Shape]) -> list[str]:
        """The statements that make what is missing. Raises SchemaMismatch before anything is changed."""
        texts: list[str] = []
        for table in tables:
            statements, wanted = Statements(self._keyspace, table), Shape.of(table)
            shape = present.get(table.name)
            new = [] if shape is None else shape.lacks(wanted)
            if new is None:
                raise SchemaMismatch(f"table {statements.name} exists as {shape}, not as {wanted}")
            texts += [statements.create()] if shape is None else map(statements.add, new)
        return texts

    def _shapes(self) -> dict[str, Shape]:
        rows = self._sessions.execute(
            "SELECT table_name, column_name, kind, position, type FROM system_schema.columns WHERE keyspace_name = %s",
            self._keyspace,
        )
        tables: dict[str, list[tuple[str, str, int, str]]] = {}
        for table, *column in rows:
            tables.setdefault(table, []).append(tuple(column))
        return {name: _shape(columns) for name, columns in tables.items()}

    def _pending(self) -> Sequence[Migration]:
        """The migrations to apply. A keyspace that has no number yet is new, and gets the last one."""
        rows = list(self._spread(f"SELECT version FROM {self._state} WHERE name = 'version'"))
        newest = self._migrations[-1].number if self._migrations else 0
        if not rows:
            self._note(newest)
            return ()
        version: int = rows[0][0]
        if version > newest:
            raise SchemaMismatch(
                f"keyspace {self._keyspace} was made by a newer Magazin: its schema has number {version}, "
                f"and this one knows {newest}"
            )
        return [migration for migration in self._migrations if migration.number > version]

    def _note(self, version: int) -> None:
        self._spread(f"INSERT INTO {self._state} (name, version) VALUES ('version', %s)", version)

    def _spread(self, text: str, *values: object) -> ResultSet:
        """Execute it, again while the node that got it doesn't know the keyspace or the table of its state: another
        process may have made them just now by way of another node."""
        for _ in range(SPREAD):
            try:
                return self._sessions.execute(text, *values)
            except SchemaMismatch:
                self._sleep(1.0)
        return self._sessions.execute(text, *values)

    @contextmanager
    def _lock(self) -> Iterator[Callable[[], None]]:
        """One at a time: two nodes that make a table at once may make two of one name. What it gives is to be called
        before each change: it holds the lock for another while, where much of it has passed."""
        owner = os.urandom(8).hex()
        for _ in range(LOCK):
            held_at = self._clock()
            if self._take(owner):
                break
            self._sleep(1.0)
        else:
            raise Unavailable(f"another process has been changing keyspace {self._keyspace} for {LOCK} s")

        def keep() -> None:
            nonlocal held_at
            now = self._clock()
            if now - held_at > LOCK / 3:
                self._keep(owner)
                held_at = now

        try:
            yield keep
        finally:
            with suppress(StoreError):  # it ends by itself
                self._spread(f"DELETE FROM {self._state} WHERE name = 'lock' IF owner = %s", owner)

    def _keep(self, owner: str) -> None:
        text = f"UPDATE {self._state} USING TTL {LOCK} SET owner = %s WHERE name = 'lock' IF owner = %s"
        for _ in range(SPREAD):
            with suppress(Unknown):  # others ask for the lock at the same time; to say it twice does no harm
                if self._spread(text, owner, owner).was_applied:
                    return
                break
            self._sleep(1.0)
        raise Unavailable(f"this took too long, and another process has begun to change keyspace {self._keyspace}")

    def _take(self, owner: str) -> bool:
        take = f"INSERT INTO {self._state} (name, owner) VALUES ('lock', %s) IF NOT EXISTS USING TTL {LOCK}"
        try:
            answer = self._sessions.execute(take, owner)
        except (Unknown, SchemaMismatch):  # the next answer tells; a node may not know the table yet
            return False
        row = dict(zip(answer.column_names, answer.one(), strict=True))
        return bool(row["[applied]"] or row["owner"] == owner)


def _shape(columns: Sequence[tuple[str, str, int, str]]) -> Shape:
    def of(wanted: str) -> tuple[str, ...]:
        return tuple(
            name for _, name in sorted((position, name) for name, kind, position, _ in columns if kind == wanted)
        )

    return Shape(of("partition_key"), of("clustering"), {name: type_ for name, _, _, type_ in columns})
