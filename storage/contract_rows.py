"""The contract of rows, first part: what a single row may hold, and the verbs that write and show it."""

from __future__ import annotations

import itertools
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import pytest

from storage.errors import BrokenPromise, SchemaMismatch, TooLarge, WrongKind
from storage.interface import Store
from storage.table import ABSENT, VALUE_LIMIT, Put, Remove, Row, Table, Type, cas, plain

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
    """What the other parts share, and the promises of create, get, put, put_many, delete, erase and close."""

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

    def test_verbs_are_of_one_kind(self, store: Store) -> None:
        name, book = fresh(), fresh()
        with pytest.raises(WrongKind):
            store.put(NOTES, {"name": name})
        with pytest.raises(WrongKind):
            store.put_many([(NOTES, {"name": name})])
        with pytest.raises(WrongKind):
            store.delete(NOTES, (name,))
        with pytest.raises(WrongKind):
            store.commit(LINES, (book,), [Put(line(book), ABSENT)])
        with pytest.raises(WrongKind):
            store.commit(LINES, (book,), [Remove((book, 1, "a"), ABSENT)])
        assert store.get(NOTES, (name,)) is None
        assert store.get(LINES, (book, 1, "a")) is None

    def test_put_again_is_harmless(self, store: Store, other: Store) -> None:
        row = line(fresh(), note="n", raw=b"r")
        store.put(LINES, row)
        other.put(LINES, row)
        store.put_many([(LINES, row), (LINES, row)])
        assert other.read(LINES, (row["book"],), limit=9) == [row]

    def test_put_many_writes_to_many_tables(self, store: Store, other: Store) -> None:
        book = fresh()
        rows = [line(book, page, "x", note=str(page)) for page in range(50)]
        tags = [{"book": book, "tag": f"{number:03}"} for number in range(50)]
        mixed = itertools.chain.from_iterable(zip([(LINES, r) for r in rows], [(MARKS, t) for t in tags], strict=True))
        store.put_many(mixed, window=4)
        assert other.read(LINES, (book,), limit=99) == rows
        assert other.read(MARKS, (book,), limit=99) == tags
        store.put_many([])

    def test_put_many_pulls_lazily(self, store: Store, other: Store) -> None:
        """The stream behind it may be larger than memory: what lies a window back is written already."""
        book, window = fresh(), 4

        def stream() -> Iterator[tuple[Table, Row]]:
            for page in range(20):
                if page > window:
                    assert other.get(LINES, (book, page - window - 1, "a")) is not None
                yield LINES, line(book, page)

        store.put_many(stream(), window=window)
        assert len(store.read(LINES, (book,), limit=99)) == 20

    def test_put_many_passes_errors_of_the_stream(self, store: Store) -> None:
        book = fresh()

        def stream() -> Iterator[tuple[Table, Row]]:
            for page in range(10):
                yield LINES, line(book, page)
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            store.put_many(stream(), window=2)
        present = store.read(LINES, (book,), limit=99)
        assert all(row == line(book, row["page"]) for row in present)
        store.put_many([(LINES, line(book, page)) for page in range(10)])
        assert len(store.read(LINES, (book,), limit=99)) == 10

    def test_delete_takes_one_row(self, store: Store, other: Store) -> None:
        book = fresh()
        store.put_many([(LINES, line(book, page, text)) for page in (1, 2) for text in ("a", "b")])
        store.delete(LINES, (book, 1, "b"))
        assert other.get(LINES, (book, 1, "b")) is None
        assert [(r["page"], r["line"]) for r in other.read(LINES, (book,), limit=9)] == [(1, "a"), (2, "a"), (2, "b")]
        store.delete(LINES, (book, 1, "b"))
        store.delete(LINES, (fresh(), 1, "b"))

    @pytest.mark.parametrize("table", [LINES, PIECES, CELLS], ids=repr)
    def test_erase_takes_one_partition(self, store: Store, other: Store, table: Table) -> None:
        gone, kept = fresh(), fresh()
        for name in (gone, kept):
            for number in range(5):
                if table is CELLS:
                    cell: Row = {"row": name, "kind": number, "column": "c", "value": b"v"}
                    assert store.commit(CELLS, (name,), [Put(cell, ABSENT)])
                elif table is LINES:
                    store.put(LINES, line(name, number))
                else:
                    store.put(PIECES, {"owner": name, "bucket": 7, "number": number, "data": b"d" * 5000})
        partitions: Sequence[tuple[str, ...] | tuple[str, int]] = (
            [(gone, 7), (kept, 7)] if table is PIECES else [(gone,), (kept,)]
        )
        store.erase(table, partitions[0])
        assert other.read(table, partitions[0], limit=9) == []
        assert len(other.read(table, partitions[1], limit=9)) == 5
        store.erase(table, partitions[0])

    def test_many_threads_share_a_handle(self, store: Store, other: Store) -> None:
        book = fresh()

        def work(number: int) -> None:
            store.put(LINES, line(book, number, note=str(number)))
            seen = other.get(LINES, (book, number, "a"))
            assert seen is not None and seen["note"] == str(number)

        together(work, times=40, threads=8)
        assert [row["page"] for row in other.read(LINES, (book,), limit=99)] == list(range(40))

    def test_broken_promises(self, store: Store) -> None:
        if not self.strict:
            pytest.skip("this store is not strict")
        row = line(fresh(), note="n")
        store.put(LINES, row)
        with pytest.raises(BrokenPromise):
            store.put(LINES, row | {"note": "m"})
        store.delete(LINES, LINES.key_of(row))
        with pytest.raises(BrokenPromise):
            store.put(LINES, row)
        mark: Row = {"book": fresh(), "tag": "t"}
        store.put(MARKS, mark)
        store.delete(MARKS, MARKS.key_of(mark))
        store.put(MARKS, mark)

    def test_close_twice(self, handles: Callable[[], Store], store: Store) -> None:
        handle = handles()
        row = line(fresh())
        handle.put(LINES, row)
        if handle is not store:
            handle.close()
            handle.close()
        assert store.get(LINES, LINES.key_of(row)) == row


def _rev(store: Store, name: str) -> str:
    row = store.get(NOTES, (name,))
    assert row is not None and isinstance(row["rev"], str)
    return row["rev"]
