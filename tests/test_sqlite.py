"""The embedded plugin keeps the contract; what is its own besides."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from storage.contract import TABLES, StoreContract
from storage.contract_rows import LINES, MARKS, NOTES, PIECES, fresh, line
from storage.errors import SchemaMismatch, StoreError, Unavailable
from storage.interface import Store
from storage.sqlite import SqliteStore, open_store
from storage.sqlite_connections import library_version
from storage.table import ABSENT, Put, Type, cas, plain

TEXT, INT = Type.TEXT, Type.INT


class TestSqlite(StoreContract):
    @pytest.fixture(scope="class")
    @classmethod
    def handles(cls, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Store]:
        path = tmp_path_factory.mktemp("sqlite") / "store.sqlite"
        return lambda: SqliteStore(path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


@pytest.fixture
def store(path: Path):
    store = SqliteStore(path)
    store.create(TABLES)
    yield store
    store.close()


def ask(store: SqliteStore, question: str) -> object:
    [row] = store._connections.rows(question, ("answer",), ())
    return row["answer"]


def open_files(path: Path) -> int:
    """How many descriptors of this process lead to the store."""
    links = (link for link in Path("/proc/self/fd").iterdir() if link.is_symlink())
    return sum(str(link.readlink()).startswith(str(path)) for link in links if link.exists())


def test_options(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        open_store({})
    store = open_store({"data": tmp_path / "new" / "folder", "wait": "0.5"})
    store.create([MARKS])
    store.close()
    assert (tmp_path / "new" / "folder" / "store.sqlite").is_file()


def test_settings_that_promises_rest_on(store: SqliteStore) -> None:
    assert ask(store, "PRAGMA journal_mode") == "wal"
    assert ask(store, "PRAGMA synchronous") == 2  # FULL
    assert ask(store, "PRAGMA page_size") == 16384
    assert ask(store, "PRAGMA encoding") == "UTF-8"
    assert ask(store, "PRAGMA journal_size_limit") == 64 << 20


def test_library_is_free_of_the_wal_reset_bug() -> None:
    assert tuple(map(int, library_version().split("."))) >= (3, 51, 3)


def test_names_may_be_words_of_sql(path: Path) -> None:
    table = cas('se"lect', "from | where", **{"from": TEXT, "where": INT, "group": TEXT, 'or"der': TEXT})
    store = SqliteStore(path)
    store.create([table])
    row = {"from": "a", "where": 1, "group": "x", 'or"der': "y"}
    rev = store.commit(table, ("a",), [Put(row, ABSENT)]).rev
    assert store.read(table, ("a",), after=(0,), limit=9) == [row | {"rev": rev}]
    store.close()


def test_new_columns_are_added(path: Path) -> None:
    old = cas("t", "a", a=TEXT, b=TEXT)
    new = cas("t", "a", a=TEXT, added=INT, b=TEXT, more=Type.BLOB)
    before, after = SqliteStore(path), SqliteStore(path)
    before.create([old])
    first = before.commit(old, ("k",), [Put({"a": "k", "b": "x"}, ABSENT)]).rev
    after.create([new])
    assert after.get(new, ("k",)) == {"a": "k", "added": None, "b": "x", "more": None, "rev": first}
    assert after.commit(new, ("k",), [Put({"a": "k", "added": 5, "more": b"m"}, first)])
    row = before.get(old, ("k",))
    assert row is not None and row["b"] is None
    assert after.get(old, ("k",)) == row
    after.create([new])
    with pytest.raises(SchemaMismatch):
        before.create([old])
    before.close()
    after.close()


def test_a_schema_that_is_there_is_only_looked_at(store: SqliteStore, path: Path) -> None:
    other = SqliteStore(path, wait=0)
    with store.unit():
        other.create(TABLES)
    other.close()


def test_a_schema_is_made_whole_or_not_at_all(path: Path) -> None:
    store = SqliteStore(path)
    store.create([plain("one", "a", a=TEXT)])
    with pytest.raises(SchemaMismatch):
        store.create([plain("two", "a", a=TEXT), plain("one", "a", a=INT)])
    with pytest.raises(StoreError, match="two"):
        store.put(plain("two", "a", a=TEXT), {"a": "x"})
    store.close()


def test_a_table_of_somebody_else_is_refused(path: Path) -> None:
    store = SqliteStore(path)
    store.create([MARKS])
    with store._connections.unit() as connection:
        connection.execute("CREATE TABLE theirs (a TEXT)")
    with pytest.raises(SchemaMismatch, match="something else"):
        store.create([plain("theirs", "a", a=TEXT)])
    store.close()


def test_readers_wait_for_nobody(store: SqliteStore, path: Path) -> None:
    other = SqliteStore(path, wait=0)
    book = fresh()
    with store.unit():
        store.put(LINES, line(book))
        assert store.get(LINES, (book, 1, "a")) is not None
        assert other.get(LINES, (book, 1, "a")) is None
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(store.get, LINES, (book, 1, "a")).result() is None
    assert other.get(LINES, (book, 1, "a")) is not None
    other.close()


def test_writers_wait_no_longer_than_told(store: SqliteStore, path: Path) -> None:
    other = SqliteStore(path, wait=0.02)
    book = fresh()
    with store.unit():
        store.put(LINES, line(book))
        for act in (
            lambda: other.put(LINES, line(book, 2)),
            lambda: other.put_many([(LINES, line(book, 2))]),
            lambda: other.delete(LINES, (book, 1, "a")),
            lambda: other.erase(LINES, (book,)),
            lambda: other.commit(NOTES, (book,), [Put({"name": book}, ABSENT)]),
            lambda: other.create([plain("contract_other", "a", a=TEXT)]),
        ):
            with pytest.raises(Unavailable):
                act()
    assert other.read(LINES, (book,), limit=9) == [line(book)]
    assert other.get(NOTES, (book,)) is None
    other.put(LINES, line(book, 5))
    other.close()


def test_writers_get_their_turn(store: SqliteStore, path: Path) -> None:
    other = SqliteStore(path)
    book = fresh()
    with ThreadPoolExecutor(2) as pool:
        with store.unit():
            waiting = [pool.submit(handle.put, LINES, line(book, page)) for page, handle in ((1, store), (2, other))]
            store.put(LINES, line(book, 3))
            assert not any(one.done() for one in waiting)
        for one in waiting:
            one.result()
    assert [row["page"] for row in store.read(LINES, (book,), limit=9)] == [1, 2, 3]
    other.close()


def test_a_step_that_fails_is_taken_back_alone(store: SqliteStore) -> None:
    """A commit is all or nothing within a unit too, also for one who goes on after its error."""
    book = fresh()
    missing = plain("contract_missing", "a", a=TEXT)
    with store.unit():
        store.put(LINES, line(book))
        with pytest.raises(StoreError):
            store.put_many([(LINES, line(book, 2)), (missing, {"a": "x"})])
        store.put(LINES, line(book, 3))
    assert [row["page"] for row in store.read(LINES, (book,), limit=9)] == [1, 3]


def test_put_many_gathers_no_more_than_fits_in_memory(store: SqliteStore, path: Path) -> None:
    other, owner = SqliteStore(path), fresh()

    def rows():
        for number in range(9):
            if number == 8:
                assert len(other.read(PIECES, (owner, 0), limit=99, columns=["number"])) >= 4
            yield PIECES, {"owner": owner, "bucket": 0, "number": number, "data": bytes(1 << 20)}

    store.put_many(rows(), window=1000)
    other.close()


def test_a_cursor_of_another_table_is_refused(store: SqliteStore) -> None:
    store.put_many((MARKS, {"book": fresh(), "tag": "t"}) for _ in range(2))
    _, cursor = store.scan(MARKS, limit=1)
    assert cursor is not None
    with pytest.raises(ValueError):
        store.scan(LINES, cursor)
    with pytest.raises(ValueError):
        store.scan(MARKS, b"x")


def test_connections_end_with_their_threads(store: SqliteStore, path: Path) -> None:
    store.get(NOTES, ("n",))
    before = open_files(path)
    for _ in range(10):
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(lambda n: store.get(NOTES, (str(n),)), range(12)))
    assert open_files(path) <= before + 3 * 3  # SQLite keeps some descriptors back and uses them again


def test_close_reaches_the_connections_of_all_threads(path: Path) -> None:
    store = SqliteStore(path)
    store.create(TABLES)
    with ThreadPoolExecutor(3) as pool:
        gate = threading.Barrier(3)

        def hold(_: int) -> None:
            store.get(NOTES, ("n",))
            gate.wait()

        list(pool.map(hold, range(3)))
        assert open_files(path) > 3
        store.close()
        assert open_files(path) == 0
        with pytest.raises(Unavailable, match="closed"):
            pool.submit(store.get, NOTES, ("n",)).result()
    with pytest.raises(Unavailable, match="closed"):
        store.put(LINES, line("b"))


class TestState:
    """What tells a reader that nothing was written."""

    def test_it_changes_with_every_write_of_its_own_and_of_others(self, store: SqliteStore, path: Path) -> None:
        other = SqliteStore(path)
        seen = [store.state()]
        assert store.state() == seen[0]
        for number, writer in enumerate((store, other, store, other, other)):
            writer.put(LINES, line(str(number)))
            assert store.state() not in seen
            seen.append(store.state())
        with ThreadPoolExecutor(1) as pool:
            pool.submit(store.put, LINES, line("9")).result()
            assert store.state() not in seen
            assert pool.submit(store.state).result() not in seen
        other.close()

    def test_it_is_no_other_for_what_is_read_or_not_committed(self, store: SqliteStore, path: Path) -> None:
        other, before = SqliteStore(path), store.state()
        other.get(LINES, ("1", 1, "a"))
        with suppress(ZeroDivisionError), other.unit():
            other.put(LINES, line("1"))
            raise ZeroDivisionError
        assert store.state() == before
        other.close()

    def test_within_a_unit_nothing_is_told(self, store: SqliteStore) -> None:
        with store.unit():
            store.put(LINES, line("1"))
            assert store.state() != store.state()
