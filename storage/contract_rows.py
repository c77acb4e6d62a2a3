"""The contract of rows, first part: tables, and what a row may hold. The other parts build on its fixtures."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import pytest

from storage.errors import SchemaMismatch, TooLarge
from storage.interface import Store
from storage.table import ABSENT, VALUE_LIMIT, Put, Row, Table, Type, cas, plain

TEXT, INT, BLOB, TIMESTAMP = Type.TEXT, Type.INT, Type.BLOB, Type.TIMESTAMP

LINES = plain("contract_lines", "book | page line", book=TEXT, page=INT, line=TEXT, note=TEXT, at=TIMESTAMP, raw=BLOB)
"""Text and signed numbers in the key, a column of each type beside it."""
PAIRS = plain("contract_pairs", "first second", first=TEXT, second=INT, note=TEXT)
"""A whole key that is the partition's."""
MARKS = plain("contract_marks", "book | tag", hint=True, book=TEXT, tag=TEXT)
"""Nothing but a key."""
PIECES = plain("contract_pieces", "owner bucket | number", chunks=True, owner=TEXT, bucket=INT, number=INT, data=BLOB)
"""Laid out for large values."""
NOTES = cas("contract_notes", "name", name=TEXT, body=TEXT, size=INT, raw=BLOB, at=TIMESTAMP)
CELLS = cas("contract_cells", "row | kind column", row=TEXT, kind=INT, column=TEXT, value=BLOB, label=TEXT)

TABLES: tuple[Table, ...] = (LINES, PAIRS, MARKS, PIECES, NOTES, CELLS)

WORDS = [
    "",
    "\x00",
    "\x00a",
    "A",
    "a",
    "a\x00",
    "ab",
    "b",
    "z",
    "é",
    "ÿ",
    "Ω",
    "豈",
    "\ue000",
    "\uffff",
    "𐀀",
    "😀",
    "\U0010ffff",
]
"""In the order of their UTF-8 bytes, which is not that of UTF-16 code units: U+10000 comes after U+FFFF."""
NUMBERS = [-(1 << 63), -(1 << 40), -256, -1, 0, 1, 255, 1 << 31, (1 << 63) - 1]


def fresh() -> str:
    """A key of this test alone."""
    return uuid.uuid4().hex


def line(book: str, page: int = 1, line: str = "a", **more: str | int | bytes | None) -> Row:
    return {"book": book, "page": page, "line": line, "note": None, "at": None, "raw": None} | more


def together(work: Callable[[int], object], times: int, threads: int = 20) -> list[object]:
    """The results of ``times`` calls, begun at once in ``threads`` threads."""
    gate = threading.Barrier(min(times, threads))

    def begin(number: int) -> object:
        if number < gate.parties:
            gate.wait()
        return work(number)

    with ThreadPoolExecutor(gate.parties) as pool:
        return list(pool.map(begin, range(times)))


class RowContract:
    """The promises of create, of get and of values."""

    strict: ClassVar[bool] = False
    """The store raises BrokenPromise where it can."""

    @pytest.fixture(scope="class")
    @classmethod
    def handles(cls) -> Callable[[], Store]:
        """Overridden: a function that opens another handle to one and the same store. A plugin that lives in one
        process may give the same handle again."""
        raise NotImplementedError("a subclass of StoreContract gives the fixture `handles`")

    @pytest.fixture(scope="class")
    @classmethod
    def store(cls, handles: Callable[[], Store]) -> Iterator[Store]:
        store = handles()
        store.create(TABLES)
        yield store
        store.close()

    @pytest.fixture(scope="class")
    @classmethod
    def other(cls, handles: Callable[[], Store], store: Store) -> Iterator[Store]:
        """Stands for another machine."""
        other = handles()
        yield other
        other.close()

    def test_create_again_changes_nothing(self, store: Store, other: Store) -> None:
        row = line(fresh())
        store.put(LINES, row)
        store.create(TABLES)
        other.create([LINES])
        assert other.get(LINES, LINES.key_of(row)) == row

    def test_create_at_once(self, store: Store, other: Store) -> None:
        tables = [plain(f"contract_new_{number}_{fresh()[:8]}", "a | b", a=TEXT, b=INT, c=BLOB) for number in range(2)]
        together(lambda number: (store, other)[number % 2].create(tables), times=4)
        for table in tables:
            store.put(table, {"a": "x", "b": 1, "c": b"y"})
            assert other.get(table, ("x", 1)) == {"a": "x", "b": 1, "c": b"y"}

    @pytest.mark.parametrize(
        "wrong",
        [
            plain("contract_pairs", "first | second", first=TEXT, second=INT, note=TEXT),
            plain("contract_pairs", "second first", first=TEXT, second=INT, note=TEXT),
            plain("contract_pairs", "first second", first=TEXT, second=TEXT, note=TEXT),
            plain("contract_pairs", "first second", first=TEXT, second=INT, note=BLOB),
            plain("contract_pairs", "first second", first=TEXT, second=INT),
            cas("contract_pairs", "first second", first=TEXT, second=INT, note=TEXT),
        ],
        ids=["clustering", "order", "key type", "type", "column", "kind"],
    )
    def test_another_shape_is_refused(self, store: Store, other: Store, wrong: Table) -> None:
        row: Row = {"first": fresh(), "second": 2, "note": "kept"}
        store.put(PAIRS, row)
        for handle in (store, other):
            with pytest.raises(SchemaMismatch, match="contract_pairs"):
                handle.create([wrong])
        assert store.get(PAIRS, (row["first"], 2)) == row

    def test_get_what_is_not_there(self, store: Store) -> None:
        assert store.get(LINES, (fresh(), 1, "a")) is None
        assert store.get(NOTES, (fresh(),)) is None

    def test_rows_hold_every_column(self, store: Store, other: Store) -> None:
        book = fresh()
        store.put(LINES, {"book": book, "page": 1, "line": "a"})
        assert other.get(LINES, (book, 1, "a")) == line(book)
        store.put(LINES, {"book": book, "page": 2, "line": "b", "note": None, "raw": b"\x00\xff"})
        assert other.get(LINES, (book, 2, "b")) == line(book, 2, "b", raw=b"\x00\xff")

    def test_chosen_columns(self, store: Store) -> None:
        book, name = fresh(), fresh()
        store.put(LINES, line(book, note="n", at=5000))
        assert store.get(LINES, (book, 1, "a"), columns=("at", "raw", "line")) == {"at": 5000, "raw": None, "line": "a"}
        rev = store.commit(NOTES, (name,), [Put({"name": name, "body": "b"}, ABSENT)]).rev
        assert store.get(NOTES, (name,), columns=["body"]) == {"body": "b", "rev": rev}
        assert store.read(NOTES, (name,), limit=1, columns=["size"]) == [{"size": None, "rev": rev}]

    @pytest.mark.parametrize("note", [*WORDS, "x" * 70_000])
    def test_text_comes_back(self, store: Store, other: Store, note: str) -> None:
        row = line(fresh(), 1, note[:100], note=note)
        store.put(LINES, row)
        assert other.get(LINES, LINES.key_of(row)) == row

    @pytest.mark.parametrize("number", NUMBERS)
    def test_numbers_come_back(self, store: Store, other: Store, number: int) -> None:
        first, name = fresh(), fresh()
        store.put(PAIRS, {"first": first, "second": number, "note": None})
        assert other.get(PAIRS, (first, number)) == {"first": first, "second": number, "note": None}
        assert store.commit(NOTES, (name,), [Put({"name": name, "size": number}, ABSENT)])
        assert other.get(NOTES, (name,), columns=["size"]) == {"size": number, "rev": _rev(store, name)}

    @pytest.mark.parametrize("at", [-1_000_000, 0, 1_796_083_200_123_000])
    def test_times_come_back(self, store: Store, other: Store, at: int) -> None:
        row = line(fresh(), at=at)
        store.put(LINES, row)
        assert other.get(LINES, LINES.key_of(row)) == row

    @pytest.mark.parametrize("raw", [b"", b"\x00", bytes(range(256)), b"\xff" * 70_000])
    def test_bytes_come_back(self, store: Store, other: Store, raw: bytes) -> None:
        row = line(fresh(), raw=raw)
        store.put(LINES, row)
        assert other.get(LINES, LINES.key_of(row)) == row

    @pytest.mark.parametrize(
        "wrong",
        [
            {"note": 1},
            {"note": b"1"},
            {"note": "\ud800"},
            {"at": "1"},
            {"at": True},
            {"at": 1.5},
            {"at": 1 << 63},
            {"at": -(1 << 63) - 1},
            {"raw": "x"},
            {"page": None},
            {"page": "1"},
            {"line": None},
            {"extra": "x"},
        ],
        ids=str,
    )
    def test_what_fits_no_column_is_refused(self, store: Store, wrong: Row) -> None:
        book = fresh()
        with pytest.raises(ValueError):
            store.put(LINES, line(book) | wrong)
        with pytest.raises(ValueError):
            store.put_many([(LINES, line(book) | wrong)])
        assert store.read(LINES, (book,), limit=9) == []

    def test_keys_that_do_not_fit_are_refused(self, store: Store) -> None:
        for key in ((), ("a",), ("a", 1, "b", "c"), ("a", "1", "b"), (None, 1, "b"), ("\udfff", 1, "b")):
            with pytest.raises(ValueError):
                store.get(LINES, key)
            with pytest.raises(ValueError):
                store.delete(LINES, key)
        for partition in ((), ("a", 1), (1,), (None,)):
            with pytest.raises(ValueError):
                store.erase(LINES, partition)
            with pytest.raises(ValueError):
                store.read(LINES, partition, limit=1)

    def test_rows_are_the_callers_own(self, store: Store) -> None:
        row = line(fresh(), note="n")
        store.put(LINES, row)
        row["note"] = "changed"
        first = store.get(LINES, LINES.key_of(row))
        assert first is not None and first["note"] == "n"
        first["note"] = "changed"
        again = store.get(LINES, LINES.key_of(row))
        assert again is not None and again["note"] == "n"

    def test_values_up_to_one_mebibyte(self, store: Store, other: Store) -> None:
        owner, name = fresh(), fresh()
        data = bytes(range(256)) * (VALUE_LIMIT // 256)
        store.put(PIECES, {"owner": owner, "bucket": 0, "number": 0, "data": data})
        assert other.get(PIECES, (owner, 0, 0), columns=["data"]) == {"data": data}
        with pytest.raises(TooLarge):
            store.put(PIECES, {"owner": owner, "bucket": 0, "number": 1, "data": data + b"x"})
        with pytest.raises(TooLarge):
            store.put_many([(LINES, line(owner, note="é" * (VALUE_LIMIT // 2) + "x"))])
        with pytest.raises(TooLarge):
            store.commit(NOTES, (name,), [Put({"name": name, "raw": data + b"x"}, ABSENT)])
        assert store.get(PIECES, (owner, 0, 1)) is None
        assert store.get(LINES, (owner, 1, "a")) is None
        assert store.get(NOTES, (name,)) is None


def _rev(store: Store, name: str) -> str:
    row = store.get(NOTES, (name,))
    assert row is not None and isinstance(row["rev"], str)
    return row["rev"]
