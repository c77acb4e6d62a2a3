"""What every plugin refuses alike; the plugins' own side of it is in their contract."""

import pytest

from storage.errors import TooLarge, WrongKind
from storage.table import ABSENT, COMMIT_LIMIT, VALUE_LIMIT, Kind, Put, Remove, Type, cas, plain
from storage.validation import check_changes, check_key, check_slice, require, whole_row

PLAIN = plain("p", "a | b c", a=Type.TEXT, b=Type.INT, c=Type.TEXT, d=Type.BLOB, e=Type.TIMESTAMP)
CAS = cas("c", "a | b", a=Type.TEXT, b=Type.INT, d=Type.BLOB)


def test_kinds() -> None:
    require(PLAIN, Kind.PLAIN)
    with pytest.raises(WrongKind, match="table p is plain; this verb is for cas tables"):
        require(PLAIN, Kind.CAS)


def test_a_whole_row_is_in_the_order_of_its_columns() -> None:
    row = whole_row(PLAIN, {"e": 5, "c": "x", "b": 1, "a": "k"})
    assert list(row.items()) == [("a", "k"), ("b", 1), ("c", "x"), ("d", None), ("e", 5)]
    assert whole_row(CAS, {"a": "k", "b": 1, "rev": "r"}) == {"a": "k", "b": 1, "d": None}


class Text(str):
    """A kind of str is a str."""


@pytest.mark.parametrize("key", [("k", 1, "x"), ("", -(1 << 63), ""), (Text("k"), (1 << 63) - 1, "\x00")])
def test_keys_that_fit(key: tuple[object, ...]) -> None:
    assert check_key(PLAIN, key, PLAIN.key) is key  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "key",
    [
        ("k", 1),
        ("k", 1, "x", "y"),
        ("k", "1", "x"),
        ("k", True, "x"),
        ("k", 1.0, "x"),
        (b"k", 1, "x"),
        (None, 1, "x"),
        ("k", 1 << 63, "x"),
        ("k", -(1 << 63) - 1, "x"),
        ("\ud800", 1, "x"),
        (["k"], 1, "x"),
    ],
    ids=repr,
)
def test_keys_that_do_not_fit(key: tuple[object, ...]) -> None:
    with pytest.raises(ValueError):
        check_key(PLAIN, key, PLAIN.key)  # type: ignore[arg-type]


def test_bounds_follow_the_prefix() -> None:
    check_slice(PLAIN, ("k",), (), (1,), (2, "x"), 0)
    check_slice(PLAIN, ("k",), (1,), ("x",), None, 1)
    for prefix, after, before, limit in [
        ((1,), (1,), None, 1),
        ((1, "x"), ("y",), None, 1),
        ((), ("x",), None, 1),
        ((), None, (1, "x", "y"), 1),
        ((), (), None, 1),
        ((), None, (None,), 1),
        ((1, "x", "y"), None, None, 1),
        ((), None, None, -1),
    ]:
        with pytest.raises(ValueError):
            check_slice(PLAIN, ("k",), prefix, after, before, limit)


def test_sizes_of_values() -> None:
    row = {"a": "k", "b": 1, "c": "x"}
    whole_row(PLAIN, row | {"d": bytes(VALUE_LIMIT)})
    for more in ({"d": bytes(VALUE_LIMIT + 1)}, {"c": "é" * (VALUE_LIMIT // 2 + 1)}):
        with pytest.raises(TooLarge):
            whole_row(PLAIN, row | more)


def test_sizes_of_commits() -> None:
    value, rows = bytes(VALUE_LIMIT), COMMIT_LIMIT // VALUE_LIMIT
    small = Put({"a": "k", "b": rows - 1, "d": value[: VALUE_LIMIT - rows * 9]}, ABSENT)
    fits = [Put({"a": "k", "b": number, "d": value}, ABSENT) for number in range(rows - 1)]
    assert len(check_changes(CAS, ("k",), [*fits, small])) == rows
    with pytest.raises(TooLarge, match="limit"):
        check_changes(CAS, ("k",), [*fits, small, Put({"a": "k", "b": -1})])


def test_changes_are_told_by_whole_keys() -> None:
    changes = [Remove(("k", 2), ABSENT), Put({"b": 1, "a": "k"})]
    assert check_changes(CAS, ("k",), changes) == [(("k", 2), None), (("k", 1), {"a": "k", "b": 1, "d": None})]
