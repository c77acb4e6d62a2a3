"""The contract of rows, second part: the verbs that write plain rows, and the end of a handle."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import pytest

from storage.contract_rows import CELLS, LINES, MARKS, NOTES, PIECES, RowContract, fresh, line, together
from storage.errors import BrokenPromise, WrongKind
from storage.interface import Store
from storage.table import ABSENT, Put, Remove, Row, Table


class PlainContract(RowContract):
    """The promises of put, put_many, delete, erase and close."""

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
