"""The contract of rows, third part: slices, the fan-out and the walk through a whole table."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from storage.contract_rows import CELLS, LINES, MARKS, NOTES, NUMBERS, PAIRS, PIECES, WORDS, RowContract, fresh, line
from storage.interface import Store
from storage.table import ABSENT, Key, Put, Row, Slice, Table, Type, plain


def places(rows: list[Row]) -> list[Key]:
    return [(row["page"], row["line"]) for row in rows]


class ReadContract(RowContract):
    """The promises of read, fetch and scan."""

    @pytest.fixture(scope="class")
    @classmethod
    def book(cls, store: Store) -> str:
        """Three pages, -1 to 1, with four lines each, put in no order."""
        book = fresh()
        store.put_many([(LINES, line(book, page, text)) for text in "cadb" for page in (1, -1, 0)])
        return book

    def test_text_in_the_order_of_its_bytes(self, store: Store, other: Store) -> None:
        book = fresh()
        store.put_many([(MARKS, {"book": book, "tag": word}) for word in sorted(WORDS, key=lambda word: word[::-1])])
        assert [row["tag"] for row in other.read(MARKS, (book,), limit=99)] == WORDS
        assert [row["tag"] for row in other.read(MARKS, (book,), limit=99, reverse=True)] == WORDS[::-1]
        for place, word in enumerate(WORDS):
            assert [row["tag"] for row in store.read(MARKS, (book,), after=(word,), limit=99)] == WORDS[place + 1 :]
            assert [row["tag"] for row in store.read(MARKS, (book,), before=(word,), limit=99)] == WORDS[:place]

    def test_numbers_in_order(self, store: Store, other: Store) -> None:
        book = fresh()
        store.put_many([(LINES, line(book, number)) for number in sorted(NUMBERS, key=str)])
        assert [row["page"] for row in other.read(LINES, (book,), limit=99)] == NUMBERS
        assert [row["page"] for row in other.read(LINES, (book,), after=(-1,), before=(1 << 31,), limit=99)] == [
            0,
            1,
            255,
        ]

    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [
            ({}, [(page, text) for page in (-1, 0, 1) for text in "abcd"]),
            ({"limit": 5}, [(-1, "a"), (-1, "b"), (-1, "c"), (-1, "d"), (0, "a")]),
            ({"limit": 2, "reverse": True}, [(1, "d"), (1, "c")]),
            ({"limit": 0}, []),
            ({"prefix": (0,)}, [(0, text) for text in "abcd"]),
            ({"prefix": (0,), "reverse": True, "limit": 3}, [(0, "d"), (0, "c"), (0, "b")]),
            ({"prefix": (0, "c")}, [(0, "c")]),
            ({"prefix": (0, "e")}, []),
            ({"prefix": (2,)}, []),
            ({"after": (0,)}, [(1, text) for text in "abcd"]),
            ({"after": (0, "b")}, [(0, "c"), (0, "d"), (1, "a"), (1, "b"), (1, "c"), (1, "d")]),
            ({"after": (0, "bb")}, [(0, "c"), (0, "d"), (1, "a"), (1, "b"), (1, "c"), (1, "d")]),
            ({"before": (0,)}, [(-1, text) for text in "abcd"]),
            ({"before": (0, "b")}, [(-1, "a"), (-1, "b"), (-1, "c"), (-1, "d"), (0, "a")]),
            ({"after": (-1,), "before": (1,)}, [(0, text) for text in "abcd"]),
            ({"after": (-1, "c"), "before": (0,)}, [(-1, "d")]),
            ({"after": (-1, "c"), "before": (1,), "limit": 2}, [(-1, "d"), (0, "a")]),
            ({"after": (-1, "c"), "before": (1,), "limit": 2, "reverse": True}, [(0, "d"), (0, "c")]),
            ({"before": (1, "b"), "reverse": True, "limit": 3}, [(1, "a"), (0, "d"), (0, "c")]),
            ({"after": (0, "c"), "reverse": True}, [(1, "d"), (1, "c"), (1, "b"), (1, "a"), (0, "d")]),
            ({"prefix": (0,), "after": ("b",)}, [(0, "c"), (0, "d")]),
            ({"prefix": (0,), "before": ("b",)}, [(0, "a")]),
            ({"prefix": (0,), "after": ("a",), "before": ("d",)}, [(0, "b"), (0, "c")]),
            ({"prefix": (0,), "after": ("a",), "before": ("d",), "reverse": True, "limit": 1}, [(0, "c")]),
            ({"prefix": (0,), "after": ("d",)}, []),
            ({"prefix": (0,), "before": ("a",)}, []),
            ({"after": (1,)}, []),
            ({"after": (0,), "before": (0,)}, []),
            ({"after": (1,), "before": (-1,)}, []),
        ],
        ids=str,
    )
    def test_slices(
        self, store: Store, other: Store, book: str, arguments: dict[str, Any], expected: list[Key]
    ) -> None:
        arguments = {"limit": 99} | arguments
        assert places(other.read(LINES, (book,), **arguments)) == expected
        [fetched] = store.fetch([Slice(LINES, (book,), **arguments)])
        assert places(fetched) == expected

    @pytest.mark.parametrize(
        "arguments",
        [
            {"prefix": (0, "a", "b")},
            {"prefix": (0, "a"), "after": ("b",)},
            {"prefix": ("a",)},
            {"after": ("a",)},
            {"before": (0, 1)},
            {"after": (0, None)},
            {"before": (0, "a", "b")},
            {"after": ()},
            {"limit": -1},
        ],
        ids=str,
    )
    def test_slices_that_do_not_fit_are_refused(self, store: Store, book: str, arguments: dict[str, Any]) -> None:
        with pytest.raises(ValueError):
            store.read(LINES, (book,), **({"limit": 9} | arguments))

    def test_pages_follow_each_other(self, store: Store, book: str) -> None:
        seen: list[Key] = []
        while page := store.read(LINES, (book,), after=seen[-1] if seen else None, limit=5):
            seen += places(page)
        assert seen == [(page, text) for page in (-1, 0, 1) for text in "abcd"]

    def test_a_partition_ends_where_another_begins(self, store: Store) -> None:
        first = fresh()
        store.put_many(
            [(PIECES, {"owner": first, "bucket": b, "number": n, "data": b"x"}) for b in (0, 1) for n in (0, 1)]
        )
        rows = store.read(PIECES, (first, 0), after=(0,), limit=9, columns=["bucket", "number"])
        assert rows == [{"bucket": 0, "number": 1}]
        assert store.read(PIECES, (first, 2), limit=9) == []

    def test_a_partition_of_one_row(self, store: Store) -> None:
        row: Row = {"first": fresh(), "second": 3, "note": "n"}
        store.put(PAIRS, row)
        assert store.read(PAIRS, (row["first"], 3), limit=9) == [row]
        assert store.read(PAIRS, (row["first"], 4), limit=9) == []

    def test_fetch_answers_in_order(self, store: Store, other: Store, book: str) -> None:
        name = fresh()
        rev = store.commit(NOTES, (name,), [Put({"name": name, "body": "b"}, ABSENT)]).rev
        requests: list[Slice | tuple[Table, Key]] = [
            (LINES, (book, 1, "d")),
            Slice(LINES, (book,), prefix=(0,), limit=2, reverse=True, columns=("line",)),
            (LINES, (book, 1, "nothing")),
            (NOTES, (name,)),
            Slice(LINES, (fresh(),)),
            Slice(NOTES, (name,), columns=("size",)),
            (LINES, (book, 1, "d")),
        ]
        for window in (1, 2, 16):
            first, reverse, nothing, note, empty, chosen, again = other.fetch(requests, window=window)
            assert first == again == [line(book, 1, "d")]
            assert reverse == [{"line": "d"}, {"line": "c"}]
            assert nothing == empty == []
            assert note == [{"name": name, "body": "b", "size": None, "raw": None, "at": None, "rev": rev}]
            assert chosen == [{"size": None, "rev": rev}]
        assert list(store.fetch([])) == []

    def test_fetch_pulls_lazily(self, store: Store, book: str) -> None:
        """At most a window beyond what was taken, so that requests may come from a stream without end."""
        pulled = 0

        def endless() -> Iterator[tuple[Table, Key]]:
            nonlocal pulled
            for number in itertools.count():
                pulled += 1
                yield LINES, (book, number % 3 - 1, "a")

        answers = store.fetch(endless(), window=4)
        for taken in range(1, 30):
            assert [row["page"] for row in next(answers)] == [(taken - 1) % 3 - 1]
            assert taken <= pulled <= taken + 4
        assert isinstance(answers, Iterator)
        if hasattr(answers, "close"):
            answers.close()
        assert pulled <= 33

    def test_fetch_passes_errors_of_the_stream(self, store: Store, book: str) -> None:
        def broken() -> Iterator[tuple[Table, Key]]:
            yield LINES, (book, 0, "a")
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            list(store.fetch(broken()))
        with pytest.raises(ValueError):
            list(store.fetch([(LINES, (book, 0))]))

    @pytest.mark.parametrize("limit", [3, 1000])
    @pytest.mark.parametrize("table", [LINES, PIECES, CELLS], ids=repr)
    def test_scan_gives_every_row(self, store: Store, other: Store, table: Table, limit: int) -> None:
        name = fresh()
        keys: set[Key] = set()
        for number in range(-3, 4):
            if table is LINES:
                store.put(LINES, line(name, number, "é"))
                keys.add((name, number, "é"))
            elif table is PIECES:
                store.put(PIECES, {"owner": name, "bucket": number, "number": 0, "data": b"d"})
                keys.add((name, number, 0))
            else:
                store.commit(CELLS, (name,), [Put({"row": name, "kind": number, "column": "c"}, ABSENT)])
                keys.add((name, number, "c"))
        seen: set[Key] = set()
        cursor: bytes | None = None
        for handle in itertools.cycle((store, other)):
            page, cursor = handle.scan(table, cursor, limit=limit)
            assert len(page) <= limit
            seen |= {table.key_of(row) for row in page}
            if cursor is None:
                break
        assert keys <= seen

    def test_scan_page_by_page(self, store: Store) -> None:
        """Also pages of one row come to an end."""
        table = plain(f"contract_scan_{fresh()[:8]}", "a | b", a=Type.TEXT, b=Type.BLOB)
        store.create([table])
        assert store.scan(table) == ([], None)
        keys = {(a, b) for a in ("é", "😀") for b in (b"", b"\x00", b"\xff")}
        store.put_many([(table, {"a": a, "b": b}) for a, b in keys])
        for limit in (1, 2, 6, 7):
            seen: list[Key] = []
            cursor: bytes | None = None
            for _ in range(50):
                page, cursor = store.scan(table, cursor, limit=limit)
                assert len(page) <= limit
                seen += [table.key_of(row) for row in page]
                if cursor is None:
                    break
            assert cursor is None
            assert set(seen) == keys

    def test_scan_while_rows_are_written(self, store: Store, other: Store) -> None:
        """What existed throughout is there, whatever comes and goes meanwhile."""
        stays, comes = fresh(), [fresh() for _ in range(200)]
        store.put_many([(LINES, line(stays, page)) for page in range(30)])
        goes = fresh()
        store.put_many([(LINES, line(goes, page)) for page in range(30)])
        seen: list[Key] = []
        cursor: bytes | None = None
        for step in range(10_000):
            page, cursor = store.scan(LINES, cursor, limit=7, columns=LINES.key)
            seen += [LINES.key_of(row) for row in page]
            if step < 30:
                other.delete(LINES, (goes, step, "a"))
            if step < len(comes):
                other.put(LINES, line(comes[step]))
            if cursor is None:
                break
        assert cursor is None
        assert {key for key in seen if key[0] == stays} == {(stays, page, "a") for page in range(30)}

    def test_scan_chooses_columns(self, store: Store) -> None:
        name = fresh()
        rev = store.commit(NOTES, (name,), [Put({"name": name, "body": "b" * 100}, ABSENT)]).rev
        rows: list[Row] = []
        cursor: bytes | None = None
        while True:
            page, cursor = store.scan(NOTES, cursor, columns=["name"])
            rows += page
            if cursor is None:
                break
        assert {"name": name, "rev": rev} in rows
