"""Declarations of tables, and the schema declared with them."""

import pytest

from storage.schema import BINARIES, BOXES, ORIGINALS, ORIGINALS_DATA, SCALED
from storage.table import ABSENT, Kind, Outcome, Put, Type, cas, plain, weigh


def test_a_declaration_names_its_key() -> None:
    table = plain("t", "a b | c d", hint=True, a=Type.TEXT, b=Type.INT, c=Type.BLOB, d=Type.TIMESTAMP, e=Type.TEXT)
    assert (table.kind, table.partition, table.clustering) == (Kind.PLAIN, ("a", "b"), ("c", "d"))
    assert table.key == ("a", "b", "c", "d")
    assert (table.hint, table.chunks) == (True, False)
    row = {"e": "x", "d": 4, "c": b"3", "b": 2, "a": "1"}
    assert table.key_of(row) == ("1", 2, b"3", 4)
    assert table.partition_of(row) == ("1", 2)
    assert cas("t", "a", a=Type.TEXT).clustering == ()


@pytest.mark.parametrize("key", ["", "| a", "b", "a | b", "rev"])
def test_a_key_of_nothing_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="t"):
        plain("t", key, a=Type.TEXT)


def test_rev_is_the_stores_own() -> None:
    with pytest.raises(ValueError, match="rev"):
        cas("t", "a", a=Type.TEXT, rev=Type.TEXT)


def test_equal_declarations_are_one_table() -> None:
    one, two = (plain("t", "a | b", a=Type.TEXT, b=Type.INT) for _ in range(2))
    assert one == two and hash(one) == hash(two)
    assert one.key and one == two and hash(one) == hash(two)  # also when one has worked out its key
    assert one != plain("t", "a | b", a=Type.TEXT, b=Type.TEXT)


def test_outcomes_are_true_when_applied() -> None:
    assert Outcome(True, "r")
    assert not Outcome(False, rows=(None,))
    assert repr(Put({}, ABSENT)) == "Put(row={}, expect=ABSENT)"


@pytest.mark.parametrize(("value", "bytes_"), [("", 0), ("é", 2), ("😀", 4), (b"abc", 3), (5, 8), (None, 8)])
def test_weights(value: object, bytes_: int) -> None:
    assert weigh(value) == bytes_


def test_tables_of_the_schema_have_names_of_their_own() -> None:
    assert len({table.name for table in BINARIES}) == len(BINARIES)


def test_the_seeds_tables_and_columns() -> None:
    assert {f"scaled_{w}x{h}" for w, h in BOXES} == {
        "scaled_800x600",
        "scaled_440x330",
        "scaled_140x105",
        "scaled_116x87",
    }
    assert all(table.chunks and table.partition[0] == "original_id" for table in SCALED.values())
    seeds = {"original_id", "last_modified", "e_tag", "mime", "created", "last_checked", "checksum", "status"}
    assert seeds <= ORIGINALS.columns.keys()
    assert ORIGINALS_DATA.key == ("original_id", "attempt", "bucket", "part")
    names = {table.name for table in BINARIES}
    assert {"binary_refs", "binaryrefs_context", "binaryrefs_original", "urls", "urls_original", "logs"} <= names
