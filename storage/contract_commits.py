"""The contract of rows, fourth part: compare and set, and units."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from storage.contract_rows import CELLS, LINES, MARKS, NOTES, RowContract, fresh, line, together
from storage.errors import TooLarge
from storage.interface import Store
from storage.table import ABSENT, VALUE_LIMIT, Outcome, Put, Remove, Row


def note(name: str, size: int = 0, **more: str | bytes | None) -> Row:
    return {"name": name, "size": size} | more


def cell(row: str, kind: int, column: str = "c", **more: str | bytes | None) -> Row:
    return {"row": row, "kind": kind, "column": column, "value": None, "label": None} | more


def labels(store: Store, row: str) -> dict[tuple[object, object], object]:
    return {(r["kind"], r["column"]): r["label"] for r in store.read(CELLS, (row,), limit=99)}


class CommitContract(RowContract):
    """The promises of commit and unit."""

    def test_the_first_write(self, store: Store, other: Store) -> None:
        name = fresh()
        outcome = store.commit(NOTES, (name,), [Put(note(name, 1, body="b"), ABSENT)])
        assert outcome and outcome.applied and outcome.rev
        assert other.get(NOTES, (name,)) == note(name, 1, body="b", raw=None) | {"at": None, "rev": outcome.rev}

    def test_absent_meets_a_row(self, store: Store, other: Store) -> None:
        name = fresh()
        rev = store.commit(NOTES, (name,), [Put(note(name, 1), ABSENT)]).rev
        outcome = other.commit(NOTES, (name,), [Put(note(name, 2), ABSENT)])
        assert not outcome
        assert outcome.rows == (store.get(NOTES, (name,)),)
        assert outcome.rows[0] is not None
        assert (outcome.rows[0]["size"], outcome.rows[0]["rev"]) == (1, rev)

    def test_rev_changes_at_each_write(self, store: Store, other: Store) -> None:
        name = fresh()
        revs = [store.commit(NOTES, (name,), [Put(note(name), ABSENT)]).rev]
        for _ in range(5):
            outcome = other.commit(NOTES, (name,), [Put(note(name), revs[-1])])
            assert outcome
            revs.append(outcome.rev)
        assert len(set(revs)) == 6
        assert not store.commit(NOTES, (name,), [Put(note(name, 9), revs[0])])
        assert store.get(NOTES, (name,), columns=["size"]) == {"size": 0, "rev": revs[-1]}

    def test_a_rev_meets_nothing(self, store: Store) -> None:
        name = fresh()
        assert store.commit(NOTES, (name,), [Put(note(name), "0" * 32)]) == Outcome(False, rows=(None,))
        assert store.commit(NOTES, (name,), [Remove((name,), "0" * 32)]) == Outcome(False, rows=(None,))
        assert store.get(NOTES, (name,)) is None

    def test_put_replaces_the_whole_row(self, store: Store, other: Store) -> None:
        name = fresh()
        rev = store.commit(NOTES, (name,), [Put(note(name, 1, body="b", raw=b"r"), ABSENT)]).rev
        assert store.commit(NOTES, (name,), [Put({"name": name, "raw": b"s"}, rev)])
        row = other.get(NOTES, (name,))
        assert row is not None
        assert (row["body"], row["size"], row["raw"]) == (None, None, b"s")

    def test_a_row_read_can_be_put_back(self, store: Store) -> None:
        """The rev within it is the store's own and is ignored."""
        name = fresh()
        store.commit(NOTES, (name,), [Put(note(name, 1), ABSENT)])
        row = store.get(NOTES, (name,))
        assert row is not None
        outcome = store.commit(NOTES, (name,), [Put(row | {"size": 2}, row["rev"])])
        assert outcome and outcome.rev != row["rev"]
        assert store.get(NOTES, (name,)) == row | {"size": 2, "rev": outcome.rev}

    def test_remove(self, store: Store, other: Store) -> None:
        name = fresh()
        rev = store.commit(NOTES, (name,), [Put(note(name), ABSENT)]).rev
        conflict = other.commit(NOTES, (name,), [Remove((name,), "0" * 32)])
        assert not conflict and conflict.rows[0] is not None and conflict.rows[0]["rev"] == rev
        assert store.commit(NOTES, (name,), [Remove((name,), rev)])
        assert other.get(NOTES, (name,)) is None
        assert other.commit(NOTES, (name,), [Put(note(name, 7), ABSENT)])
        assert store.commit(NOTES, (name,), [Remove((name,), ABSENT)]).rows[0] is not None

    def test_remove_of_nothing(self, store: Store) -> None:
        assert store.commit(NOTES, (name := fresh(),), [Remove((name,), ABSENT)])
        assert store.get(NOTES, (name,)) is None

    def test_all_or_none(self, store: Store, other: Store) -> None:
        row = fresh()
        first = store.commit(CELLS, (row,), [Put(cell(row, n, label="old"), ABSENT) for n in range(3)])
        assert first
        assert {r["rev"] for r in other.read(CELLS, (row,), limit=9)} == {first.rev}
        changes: list[Put | Remove] = [
            Put(cell(row, 0, label="new"), first.rev),
            Remove((row, 1, "c"), first.rev),
            Put(cell(row, 2, label="new"), "0" * 32),
            Put(cell(row, 3, label="new"), ABSENT),
        ]
        outcome = store.commit(CELLS, (row,), changes)
        assert not outcome
        assert [r and r["kind"] for r in outcome.rows] == [0, 1, 2, None]
        assert labels(other, row) == {(0, "c"): "old", (1, "c"): "old", (2, "c"): "old"}
        changes[2] = Put(cell(row, 2, label="new"), first.rev)
        assert store.commit(CELLS, (row,), changes)
        assert labels(other, row) == {(0, "c"): "new", (2, "c"): "new", (3, "c"): "new"}

    def test_riders(self, store: Store, other: Store) -> None:
        """What has no condition goes with those that have one, and isn't among the rows of a conflict."""
        row = fresh()
        rev = store.commit(
            CELLS, (row,), [Put(cell(row, 0), ABSENT), Put(cell(row, 1, label="x")), Put(cell(row, 2, label="y"))]
        ).rev
        outcome = store.commit(
            CELLS,
            (row,),
            [
                Put(cell(row, 1, label="z")),
                Put(cell(row, 0, label="h"), "0" * 32),
                Remove((row, 2, "c")),
                Remove((row, 9, "c")),
            ],
        )
        assert not outcome and len(outcome.rows) == 1
        assert outcome.rows[0] is not None and outcome.rows[0]["kind"] == 0
        assert labels(other, row) == {(0, "c"): None, (1, "c"): "x", (2, "c"): "y"}
        assert store.commit(
            CELLS,
            (row,),
            [
                Put(cell(row, 1, label="z")),
                Put(cell(row, 0, label="h"), rev),
                Remove((row, 2, "c")),
                Remove((row, 9, "c")),
            ],
        )
        assert labels(other, row) == {(0, "c"): "h", (1, "c"): "z"}

    def test_commits_that_are_refused(self, store: Store) -> None:
        row = fresh()
        wrong: list[list[Put | Remove]] = [
            [],
            [Put(cell(row, 0))],
            [Put(cell(row, 0)), Remove((row, 1, "c"))],
            [Put(cell(row, 0), ABSENT), Put(cell(row, 0, label="x"))],
            [Put(cell(row, 0), ABSENT), Remove((row, 0, "c"))],
            [Put(cell(row, 0), ABSENT), Put(cell(fresh(), 0), ABSENT)],
            [Put(cell(row, 0), ABSENT), Remove((fresh(), 0, "c"))],
            [Put(cell(row, 0), ABSENT), Put({"row": row, "kind": 1}, ABSENT)],
            [Put(cell(row, 0), ABSENT), Put(cell(row, 1) | {"odd": 1}, ABSENT)],
            [Put(cell(row, 0), ABSENT), Remove((row, 1), ABSENT)],
        ]
        for changes in wrong:
            with pytest.raises(ValueError):
                store.commit(CELLS, (row,), changes)
        assert store.read(CELLS, (row,), limit=9) == []

    def test_commits_up_to_eight_mebibytes(self, store: Store, other: Store) -> None:
        row, value = fresh(), b"v" * VALUE_LIMIT
        with pytest.raises(TooLarge):
            store.commit(CELLS, (row,), [Put(cell(row, kind, value=value), ABSENT) for kind in range(8)])
        assert store.read(CELLS, (row,), limit=9) == []
        assert store.commit(CELLS, (row,), [Put(cell(row, kind, value=value), ABSENT) for kind in range(7)])
        assert sum(len(r["value"]) for r in other.read(CELLS, (row,), limit=9)) == 7 * VALUE_LIMIT

    def test_partitions_do_not_meet(self, store: Store) -> None:
        one, two = fresh(), fresh()
        rev = store.commit(CELLS, (one,), [Put(cell(one, 0), ABSENT)]).rev
        assert store.commit(CELLS, (two,), [Put(cell(two, 0), ABSENT)]).rev != rev
        assert not store.commit(CELLS, (two,), [Put(cell(two, 0), rev)])

    def test_one_of_a_hundred_wins(self, store: Store, other: Store) -> None:
        name = fresh()
        rev = store.commit(NOTES, (name,), [Put(note(name), ABSENT)]).rev

        def work(number: int) -> int | None:
            handle = (store, other)[number % 2]
            return number if handle.commit(NOTES, (name,), [Put(note(name, number), rev)]) else None

        winners = [number for number in together(work, times=100) if number is not None]
        row = store.get(NOTES, (name,))
        assert row is not None and [row["size"]] == winners

    def test_a_hundred_increments(self, store: Store, other: Store) -> None:
        """No update is lost, and exactly as many commits win as increments were made."""
        name = fresh()
        store.commit(NOTES, (name,), [Put(note(name, 0), ABSENT)])
        wins: list[str] = []

        def work(number: int) -> None:
            handle = (store, other)[number % 2]
            row = handle.get(NOTES, (name,))
            while row is not None:
                outcome = handle.commit(NOTES, (name,), [Put(note(name, row["size"] + 1), row["rev"])])
                if outcome:
                    wins.append(outcome.rev)
                    return
                [row] = outcome.rows
            raise AssertionError("the row is gone")

        together(work, times=100, threads=10)
        row = other.get(NOTES, (name,))
        assert row is not None and (row["size"], len(set(wins))) == (100, 100)

    def test_a_read_never_shows_half_of_a_commit(self, store: Store, other: Store) -> None:
        row, done = fresh(), threading.Event()
        rev = store.commit(CELLS, (row,), [Put(cell(row, n, label="0"), ABSENT) for n in range(5)]).rev

        def watch() -> set[int]:
            counts = set()
            while not done.is_set():
                counts.add(len({(r["label"], r["rev"]) for r in other.read(CELLS, (row,), limit=99)}))
            return counts

        with ThreadPoolExecutor(1) as pool:
            watcher = pool.submit(watch)
            try:
                for turn in range(1, 40):
                    changes = [Put(cell(row, n, label=str(turn)), rev if n == 0 else None) for n in range(5)]
                    rev = store.commit(CELLS, (row,), changes).rev
            finally:
                done.set()
            assert watcher.result() <= {1}

    def test_unit_keeps_what_it_did(self, store: Store, other: Store) -> None:
        name, book = fresh(), fresh()
        with store.unit():
            store.put(LINES, line(book))
            rev = store.commit(NOTES, (name,), [Put(note(name, 1), ABSENT)]).rev
            assert store.get(LINES, (book, 1, "a")) == line(book)
            with store.unit():
                assert store.commit(NOTES, (name,), [Put(note(name, 2), rev)])
            store.put_many([(MARKS, {"book": book, "tag": str(n)}) for n in range(20)], window=4)
        assert other.get(LINES, (book, 1, "a")) == line(book)
        row = other.get(NOTES, (name,))
        assert row is not None and row["size"] == 2
        assert len(other.read(MARKS, (book,), limit=99)) == 20

    def test_unit_takes_back_what_it_did(self, store: Store, other: Store) -> None:
        name, gone, book, erased = fresh(), fresh(), fresh(), fresh()
        kept = store.commit(NOTES, (name,), [Put(note(name, 1), ABSENT)]).rev
        store.put_many([(LINES, line(erased)), (LINES, line(book, 2))])
        with pytest.raises(ZeroDivisionError), store.unit():
            assert store.commit(NOTES, (name,), [Put(note(name, 2), kept)])
            assert store.commit(NOTES, (gone,), [Put(note(gone, 2), ABSENT)])
            assert not store.commit(NOTES, (gone,), [Put(note(gone, 3), ABSENT)])
            store.put(LINES, line(book))
            store.delete(LINES, (book, 2, "a"))
            with store.unit():
                store.erase(LINES, (erased,))
                store.put_many([(MARKS, {"book": book, "tag": str(n)}) for n in range(20)], window=4)
            raise ZeroDivisionError
        row = other.get(NOTES, (name,))
        assert row is not None
        if not store.transactional:
            assert row["size"] == 2
            return
        assert (row["size"], row["rev"]) == (1, kept)
        assert other.get(NOTES, (gone,)) is None
        assert other.read(LINES, (book,), limit=9) == [line(book, 2)]
        assert other.read(LINES, (erased,), limit=9) == [line(erased)]
        assert other.read(MARKS, (book,), limit=99) == []
        assert store.commit(NOTES, (name,), [Put(note(name, 3), kept)])

    def test_units_follow_each_other(self, store: Store, other: Store) -> None:
        """Serialisable: what a unit has read is still so when it commits."""
        if not store.transactional:
            pytest.skip("unit() is nothing here")
        name = fresh()
        store.commit(NOTES, (name,), [Put(note(name, 0), ABSENT)])

        def work(number: int) -> None:
            handle = (store, other)[number % 2]
            with handle.unit():
                row = handle.get(NOTES, (name,))
                assert row is not None
                assert handle.commit(NOTES, (name,), [Put(note(name, row["size"] + 1), row["rev"])])

        together(work, times=60, threads=6)
        row = other.get(NOTES, (name,))
        assert row is not None and row["size"] == 60
