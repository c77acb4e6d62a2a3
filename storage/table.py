"""How a table is declared, and the values that the verbs of a store take and give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any, Final, TypeAlias

Value: TypeAlias = str | int | bytes | None
Row: TypeAlias = dict[str, Any]  # column → Value; Any, because the columns are declared where the row is used
Key: TypeAlias = tuple[Value, ...]

VALUE_LIMIT: Final = 1 << 20  # bytes of one value
COMMIT_LIMIT: Final = 8 << 20  # bytes of all values of one commit


class Type(Enum):
    """Types of columns. TEXT is ordered by its UTF-8 bytes, INT is signed with 64 bits, TIMESTAMP is an int of
    microseconds since 1970 whose stores may keep whole milliseconds only."""

    TEXT = "text"
    INT = "int"
    BLOB = "blob"
    TIMESTAMP = "timestamp"


class Kind(Enum):
    """PLAIN: a key is written with one value only, and never again after its delete. CAS: every write compares and
    sets, and each row carries a ``rev`` made by the store."""

    PLAIN = "plain"
    CAS = "cas"


@dataclass(frozen=True)
class Table:
    """A wide-column table: rows under a partition key, ordered by the clustering key within it.

    ``hint``: every row is verified against a CAS row at each read, so that a lost delete costs a read, never an answer.
    ``chunks``: values are large and incompressible; plugins lay such tables out for that.
    """

    name: str
    kind: Kind
    partition: tuple[str, ...]
    clustering: tuple[str, ...]
    columns: Mapping[str, Type] = field(hash=False)
    hint: bool = False
    chunks: bool = False

    def __post_init__(self) -> None:
        missing = [name for name in self.key if name not in self.columns]
        if missing or not self.partition:
            raise ValueError(f"table {self.name}: key columns {missing} are not declared")
        if "rev" in self.columns:
            raise ValueError(f"table {self.name}: rev is the store's own column")

    @cached_property
    def key(self) -> tuple[str, ...]:
        return self.partition + self.clustering

    def key_of(self, row: Mapping[str, Value]) -> Key:
        return tuple(row[name] for name in self.key)

    def partition_of(self, row: Mapping[str, Value]) -> Key:
        return tuple(row[name] for name in self.partition)

    def __repr__(self) -> str:
        return f"<table {self.name}>"


def _declare(name: str, kind: Kind, key: str, columns: dict[str, Type], hint: bool, chunks: bool) -> Table:
    partition, _, clustering = key.partition("|")
    return Table(name, kind, tuple(partition.split()), tuple(clustering.split()), columns, hint, chunks)


def plain(name: str, key: str, /, *, hint: bool = False, chunks: bool = False, **columns: Type) -> Table:
    """Declare a plain table; ``key`` is ``"partition columns | clustering columns"``."""
    return _declare(name, Kind.PLAIN, key, columns, hint, chunks)


def cas(name: str, key: str, /, **columns: Type) -> Table:
    """Declare a compare-and-set table; ``key`` as in :func:`plain`."""
    return _declare(name, Kind.CAS, key, columns, False, False)


@dataclass(frozen=True)
class Slice:
    """Some rows of one partition in clustering order.

    ``prefix`` is equality on the leading clustering columns. ``after`` and ``before`` are exclusive bounds on the
    columns that follow the prefix and may name fewer than there are; a bound that is itself a prefix of a row's key
    excludes that row. They bound clustering order, whichever way it is read.
    """

    table: Table
    partition: Key
    prefix: Key = ()
    after: Key | None = None
    before: Key | None = None
    limit: int = 1000
    reverse: bool = False
    columns: tuple[str, ...] | None = None


class Absent:
    """The type of :data:`ABSENT`."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = Absent()
Expect: TypeAlias = Absent | str | None


@dataclass(frozen=True)
class Put:
    """Replace the whole row if the present one is as expected: ABSENT, a ``rev``, or None to ride on the others."""

    row: Row
    expect: Expect = None


@dataclass(frozen=True)
class Remove:
    """Delete the row of this whole key (partition and clustering values) if it is as expected."""

    key: Key
    expect: Expect = None


@dataclass(frozen=True)
class Outcome:
    """What a commit came to. ``rev`` is the new revision of every row put. On a conflict ``rows`` holds what the
    conditional changes met, in their order, None where there was no row.

    A conflict means «read and decide», not «my write had no effect»: it may have been applied and then overtaken.
    """

    applied: bool
    rev: str = ""
    rows: tuple[Row | None, ...] = ()

    def __bool__(self) -> bool:
        return self.applied


def weigh(value: Any) -> int:
    """The size in bytes at which a value counts against the limits."""
    if isinstance(value, str):
        return len(value.encode("utf-8"))
    return len(value) if isinstance(value, bytes) else 8
