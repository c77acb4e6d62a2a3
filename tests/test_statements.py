"""The SQL of the embedded plugin: right by the contract, and cheap by the plans that SQLite makes of it."""

import itertools
from pathlib import Path

import pytest

from storage.contract import TABLES
from storage.contract_rows import PIECES
from storage.schema import BINARIES
from storage.sqlite import SqliteStore
from storage.statements import Statements, added, shape_of
from storage.table import Table, Type, plain


@pytest.mark.parametrize("table", [*TABLES, *BINARIES], ids=repr)
def test_every_question_is_answered_by_the_key_alone(tmp_path: Path, table: Table) -> None:
    store = SqliteStore(tmp_path / "store.sqlite")
    store.create([table])
    statements = Statements(table)
    rest = len(table.clustering)
    questions = [statements.get_all[0], statements.get(table.key)[0], statements.delete, statements.erase]
    for prefix in range(rest + 1):
        for after, before in itertools.product(range(rest - prefix + 1), repeat=2):
            questions += [statements.read(None, prefix, after, before, way)[0] for way in (False, True)]
    for text in questions:
        values = (None,) * text.count("?")
        plan = [row["d"] for row in store._connections.rows(f"EXPLAIN QUERY PLAN {text}", tuple("abcd"), values)]
        assert len(plan) == 1 and plan[0].startswith(f"SEARCH {table.name} USING"), (text, plan)
    for begun, columns in ((False, None), (True, None), (True, table.key)):
        text = statements.scan(columns, begun)[0]
        values = (None,) * text.count("?")
        plan = [row["d"] for row in store._connections.rows(f"EXPLAIN QUERY PLAN {text}", tuple("abcd"), values)]
        assert len(plan) == 1 and "TEMP" not in plan[0], (text, plan)
        assert begun <= plan[0].startswith("SEARCH")
    store.close()


def test_scan_of_keys_does_not_read_the_parts(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.sqlite")
    store.create([PIECES])
    text = Statements(PIECES).scan(PIECES.key, True)[0]
    [row] = store._connections.rows(f"EXPLAIN QUERY PLAN {text}", tuple("abcd"), (None,) * 4)
    assert "COVERING INDEX" in row["d"]
    store.close()


def test_shapes() -> None:
    old = plain("t", "a | b", a=Type.TEXT, b=Type.INT, c=Type.TEXT)
    assert added(shape_of(old), shape_of(plain("t", "a | b", hint=True, a=Type.TEXT, b=Type.INT, c=Type.TEXT))) == []
    new = plain("t", "a | b", a=Type.TEXT, b=Type.INT, d=Type.BLOB, c=Type.TEXT, e=Type.INT)
    assert added(shape_of(old), shape_of(new)) == ["d", "e"]
    assert added(shape_of(new), shape_of(old)) is None
    assert added(shape_of(old), shape_of(plain("t", "a b", a=Type.TEXT, b=Type.INT, c=Type.TEXT))) is None
    assert added(shape_of(old), shape_of(plain("t", "a | b", a=Type.TEXT, b=Type.TEXT, c=Type.TEXT))) is None


def test_columns_that_are_not_declared_are_refused() -> None:
    statements = Statements(PIECES)
    for ask in (
        lambda c: statements.get(c),
        lambda c: statements.read(c, 0, 0, 0, False),
        lambda c: statements.scan(c, True),
    ):
        with pytest.raises(ValueError, match="nothing"):
            ask(["data", "nothing"])
