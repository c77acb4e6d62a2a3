"""The embedded plugin on a full disk, and on what is no database or no longer a sound one."""

from contextlib import closing
from pathlib import Path

import apsw
import pytest

from storage.chunks import ChunkBlobs
from storage.contract import TABLES
from storage.contract_blobs import fresh, noise, stored, whole
from storage.contract_rows import CELLS, LINES, NOTES, PIECES, line
from storage.errors import Full, StoreError, Unavailable
from storage.schema import ORIGINALS_DATA
from storage.sqlite import SqliteStore
from storage.table import ABSENT, Put
from tests.disks import disk_of


@pytest.fixture
def small_disk(tmp_path: Path):
    with disk_of("12m", tmp_path) as mount:
        yield mount


def fill(store: SqliteStore, size: int = 100_000) -> int:
    """How many pieces there was room for."""
    number = 0
    with pytest.raises(Full):
        while True:
            store.put(PIECES, {"owner": "o", "bucket": 0, "number": number, "data": noise(size)})
            number += 1
    return number


def assert_sound(path: Path) -> None:
    with closing(apsw.Connection(str(path))) as database:
        assert database.execute("PRAGMA integrity_check").get == "ok"


def test_a_full_disk(small_disk: Path) -> None:
    """What was written stays readable, nothing of the failed write is seen, and with room it goes on."""
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(6 << 20))
    store = SqliteStore(small_disk / "store.sqlite")
    store.create(TABLES)
    rev = store.commit(NOTES, ("n",), [Put({"name": "n", "size": 1}, ABSENT)]).rev
    count = fill(store)
    assert count > 5
    assert [row["number"] for row in store.read(PIECES, ("o", 0), limit=999, columns=["number"])] == list(range(count))
    big = [Put({"row": "r", "kind": kind, "column": "c", "value": noise(500_000)}, ABSENT) for kind in range(4)]
    with pytest.raises(Full):
        store.commit(CELLS, ("r",), big)
    assert store.read(CELLS, ("r",), limit=9) == []
    other = SqliteStore(small_disk / "store.sqlite")
    row = other.get(PIECES, ("o", 0, count - 1))
    assert row is not None and row["data"] == noise(100_000)
    ballast.unlink()
    store.put(PIECES, {"owner": "o", "bucket": 0, "number": count, "data": noise(100_000)})
    assert store.commit(NOTES, ("n",), [Put({"name": "n", "size": 2}, rev)])
    assert other.get(NOTES, ("n",), columns=["size"])["size"] == 2  # type: ignore[index]
    other.close()
    store.close()
    assert_sound(small_disk / "store.sqlite")


def test_a_unit_on_a_full_disk_is_all_or_nothing(small_disk: Path) -> None:
    """Also for a caller who goes on after the error: SQLite may have ended the transaction by itself."""
    store = SqliteStore(small_disk / "store.sqlite")
    store.create(TABLES)
    with pytest.raises(StoreError), store.unit():
        store.put(LINES, line("book"))
        fill(store, 1 << 20)
        for page in range(2, 30):
            store.put(LINES, line("book", page, note="x" * 1_000_000))
    assert store.read(LINES, ("book",), limit=99) == []
    assert store.read(PIECES, ("o", 0), limit=99) == []
    store.put(LINES, line("book", 3))
    store.close()
    assert_sound(small_disk / "store.sqlite")


def test_a_blob_on_a_full_disk(small_disk: Path) -> None:
    store = SqliteStore(small_disk / "store.sqlite")
    store.create([ORIGINALS_DATA])
    blobs = ChunkBlobs(store, part_size=100_000)
    kept = stored(blobs, noise(250_000))
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(4 << 20))
    key = fresh()
    with pytest.raises(Full), blobs.create(*key) as writer:
        for _ in range(100):
            writer.write(noise(100_000))
    assert whole(blobs, kept) == noise(250_000)
    ballast.unlink()
    blobs.erase(*key)
    assert {(found.owner, found.attempt) for found in blobs.scan()} == {(kept.owner, kept.attempt)}
    assert whole(blobs, stored(blobs, noise(500_000))) == noise(500_000)
    store.close()


def test_no_room_for_the_first_file(small_disk: Path) -> None:
    (small_disk / "ballast").write_bytes(bytes((12 << 20) - 8192))
    store = SqliteStore(small_disk / "store.sqlite")
    with pytest.raises(Full):
        store.create(TABLES)
    (small_disk / "ballast").unlink()
    store.create(TABLES)
    store.put(LINES, line("book"))
    store.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


def test_a_folder_that_is_missing(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "missing" / "store.sqlite")
    with pytest.raises(Unavailable, match="missing"):
        store.get(NOTES, ("n",))
    (tmp_path / "missing").mkdir()
    store.create(TABLES)
    assert store.get(NOTES, ("n",)) is None
    store.close()


def test_a_file_that_is_no_database(path: Path) -> None:
    path.write_bytes(noise(50_000))
    store = SqliteStore(path)
    for act in (lambda: store.get(NOTES, ("n",)), lambda: store.create(TABLES)):
        with pytest.raises(StoreError, match=r"store\.sqlite.*damaged"):
            act()
    assert path.read_bytes() == noise(50_000)
    store.close()


def test_a_damaged_database_is_named(path: Path) -> None:
    store = SqliteStore(path)
    store.create(TABLES)
    store.put_many([(LINES, line("book", page, note="x" * 3000)) for page in range(200)], window=200)
    store.close()
    data = bytearray(path.read_bytes())
    for begin in range(16384, len(data), 16384):
        data[begin : begin + 500] = noise(500)
    path.write_bytes(data)
    store = SqliteStore(path)
    with pytest.raises(StoreError, match=r"store\.sqlite.*damaged"):
        store.read(LINES, ("book",), limit=999)
    with pytest.raises(StoreError, match=r"store\.sqlite.*damaged"):
        store.put(LINES, line("book", 5, "b"))
    store.close()


def test_a_table_that_was_not_created(path: Path) -> None:
    store = SqliteStore(path)
    with pytest.raises(StoreError, match="contract_notes"):
        store.get(NOTES, ("n",))
    store.close()
