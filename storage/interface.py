"""The eleven verbs of a storage plugin. Everything else is written once above them.

A plugin is atomic within one partition of one table and promises nothing beyond. Every plugin is thread-safe.
All verbs raise :class:`~storage.errors.Unavailable` when the store can't be reached; writes raise ``Full`` when it
has no room and ``TooLarge`` above the limits of :mod:`storage.table`; a verb of the wrong kind raises ``WrongKind``.
``storage/contract.py`` is the suite that every plugin passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from storage.table import Key, Outcome, Put, Remove, Row, Slice, Table


class Store(Protocol):
    """A plugin's store."""

    @property
    def transactional(self) -> bool:
        """Whether :meth:`unit` is a real transaction, or nothing."""

    def create(self, tables: Sequence[Table]) -> None:
        """Make what is missing. Idempotent, safe from several processes.

        Raises SchemaMismatch when a table of one of these names has another shape.
        """

    def get(self, table: Table, key: Key, columns: Sequence[str] | None = None) -> Row | None:
        """The row of this whole key, or None.

        Sees every write whose call had returned before, from any machine. A write under way may be seen or not, and
        once seen is seen. Rows hold every declared column (or those asked for), None where unset; those of
        compare-and-set tables also hold ``rev``, whatever columns were asked for.
        """

    def fetch(self, requests: Iterable[Slice | tuple[Table, Key]], window: int = 16) -> Iterator[list[Row]]:
        """The one fan-out: keys and slices of any tables, pulled lazily, at most ``window`` in flight, answered in
        the order asked, each by a list of rows. Not a snapshot. Sees what :meth:`get` sees."""

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
        """Up to ``limit`` rows of one partition in clustering order; the arguments are those of :class:`Slice`.

        A single read never shows half of a :meth:`commit`.
        """

    def scan(
        self, table: Table, cursor: bytes | None = None, limit: int = 1000, columns: Sequence[str] | None = None
    ) -> tuple[list[Row], bytes | None]:
        """A page of the whole table and the cursor of the next, None at the end.

        Every row that existed throughout is given at least once; others may be. No order. Where nothing but columns of
        the partition key is asked for, one row may stand for its partition. A page may hold fewer rows than
        ``limit``, even none, before the end. The cursor is opaque and works in another process. For checks and
        migrations only, never in a request.
        """

    def put(self, table: Table, row: Row) -> None:
        """Write one row of a plain table. Durable on return; writing the same row again is harmless."""

    def put_many(self, rows: Iterable[tuple[Table, Row]], window: int = 8) -> None:
        """Write rows of plain tables, pulled lazily, at most ``window`` in flight. Durable on return. Not atomic:
        after an error any subset is there. Safe to repeat."""

    def delete(self, table: Table, key: Key) -> None:
        """Delete one row of a plain table. Its key is never used again. Nothing there: nothing happens."""

    def erase(self, table: Table, partition: Key) -> None:
        """Delete a whole partition of either kind, for ever: its key is an id that is never used again.
        What becomes of any later write to it is undefined."""

    def commit(self, table: Table, partition: Key, changes: Sequence[Put | Remove]) -> Outcome:
        """Compare and set: all of the changes or none. Linearizable for each partition, atomic and isolated in it.

        All rows are of this partition, each at most once, and at least one change is conditional (else ValueError).
        The plugin decides unknown outcomes itself, by a serial read for its own ``rev``; raises Unknown only when even
        that read fails.
        """

    def unit(self) -> AbstractContextManager[None]:
        """One serialisable transaction of this thread where the plugin is transactional, else nothing. A unit within a
        unit joins it. No fetching from elsewhere, rendering or threads inside."""

    def close(self) -> None:
        """Let go of connections. Idempotent."""


@runtime_checkable
class Watchful(Protocol):
    """An optional capability: to tell whether anything was written, for less than reading it again costs."""

    def state(self) -> object:
        """Equal to what the same thread was told before only if no write of any process took effect in between.

        Reads that follow see all writes up to this state, and maybe later ones. Raises what reads raise.
        """


@dataclass(frozen=True)
class Advice:
    """A danger, and what an operator can do about it."""

    text: str
    remedy: str


@runtime_checkable
class Advising(Protocol):
    """An optional capability: to tell what threatens what is kept here."""

    def advice(self) -> Iterator[Advice]:
        """Raises StoreErrors."""
