"""What every plugin refuses before it writes, checked in one place so that all refuse the same."""

from __future__ import annotations

from collections.abc import Sequence

from storage.errors import TooLarge, WrongKind
from storage.table import COMMIT_LIMIT, VALUE_LIMIT, Key, Kind, Put, Remove, Row, Table, Value, weigh

_PYTHON: dict[str, type] = {"text": str, "int": int, "timestamp": int, "blob": bytes}


def require(table: Table, kind: Kind) -> None:
    """Raise WrongKind unless the table is of this kind."""
    if table.kind is not kind:
        raise WrongKind(f"table {table.name} is {table.kind.value}; this verb is for {kind.value} tables")


def check_key(table: Table, key: Key, names: tuple[str, ...]) -> Key:
    """The key with its values checked against the columns that they are for."""
    if len(key) != len(names):
        raise ValueError(f"table {table.name}: key {key!r} doesn't fit ({', '.join(names)})")
    for name, value in zip(names, key, strict=True):
        if value is None:
            raise ValueError(f"table {table.name}: key column {name} is None")
        _check_value(table, name, value)
    return key


def check_slice(table: Table, partition: Key, prefix: Key, after: Key | None, before: Key | None, limit: int) -> None:
    """Raise ValueError for a slice that names more than there is, with other types, or less than no rows."""
    check_key(table, partition, table.partition)
    rest = table.clustering[len(prefix) :]
    check_key(table, prefix, table.clustering[: len(prefix)])
    for bound in (after, before):
        if bound is not None:
            check_key(table, bound, rest[: max(1, len(bound))])
    if limit < 0:
        raise ValueError(f"table {table.name}: a limit of {limit} rows")


def whole_row(table: Table, row: Row) -> Row:
    """The row with every declared column, None where unset. Raises ValueError for what doesn't fit, or TooLarge."""
    unknown = row.keys() - table.columns.keys() - {"rev"}
    if unknown:
        raise ValueError(f"table {table.name} has no column {', '.join(sorted(unknown))}")
    check_key(table, tuple(row.get(name) for name in table.key), table.key)
    whole: Row = {}
    for name in table.columns:
        value = row.get(name)
        if value is not None:
            _check_value(table, name, value)
        whole[name] = value
    return whole


def check_changes(table: Table, partition: Key, changes: Sequence[Put | Remove]) -> list[tuple[Key, Row | None]]:
    """The whole key of each change, in order, with the whole row of a Put, or None for a Remove.

    Raises WrongKind, ValueError (another partition, a row twice, no condition at all) or TooLarge.
    """
    require(table, Kind.CAS)
    check_key(table, partition, table.partition)
    if all(change.expect is None for change in changes):
        raise ValueError(f"table {table.name}: a commit needs at least one conditional change")
    checked: list[tuple[Key, Row | None]] = []
    weight = 0
    for change in changes:
        if isinstance(change, Put):
            row = whole_row(table, change.row)
            weight += sum(weigh(value) for value in row.values() if value is not None)
            checked.append((table.key_of(row), row))
        else:
            checked.append((check_key(table, change.key, table.key), None))
    keys = [key for key, _ in checked]
    if len(set(keys)) != len(keys):
        raise ValueError(f"table {table.name}: a commit names one row twice")
    for key in keys:
        if key[: len(partition)] != partition:
            raise ValueError(f"table {table.name}: row {key!r} is not of partition {partition!r}")
    if weight > COMMIT_LIMIT:
        raise TooLarge(f"table {table.name}: a commit of {weight} bytes; the limit is {COMMIT_LIMIT}")
    return checked


def _check_value(table: Table, name: str, value: Value) -> None:
    wanted = _PYTHON[table.columns[name].value]
    if type(value) is not wanted and (isinstance(value, bool) or not isinstance(value, wanted)):
        raise ValueError(f"table {table.name}: column {name} takes {wanted.__name__}, not {type(value).__name__}")
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 63:
            raise ValueError(f"table {table.name}: column {name}: {value} doesn't fit into 64 bits")
    elif weigh(value) > VALUE_LIMIT:
        raise TooLarge(f"table {table.name}: column {name}: {weigh(value)} bytes; the limit is {VALUE_LIMIT}")
