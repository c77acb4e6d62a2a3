"""Values and databases that are damaged are found, removed and made anew."""

import os
import shutil
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import diskcache
import pytest

from storage.cache import Cache
from tests.cache.setting import LARGE, SMALL, database, known_files, unmade, value_files


def damage_row(folder, name):
    with database(folder) as rows:
        rows.execute("UPDATE Cache SET value = ? WHERE key = ?", (b"In" + SMALL[2:], b"row"))


def cut_row(folder, name):
    with database(folder) as rows:
        rows.execute("UPDATE Cache SET value = substr(value, 1, 5) WHERE key = ?", (b"row",))


def retype_row(folder, name):
    with database(folder) as rows:
        rows.execute("UPDATE Cache SET value = 'text' WHERE key = ?", (b"row",))


def damage_seal(folder, name):
    with database(folder) as rows:
        rows.execute("UPDATE Cache SET tag = NULL WHERE key = ?", (b"row",))


def swap_rows(folder, name):
    with database(folder) as rows:
        rows.execute(
            "UPDATE Cache SET (value, tag) = (SELECT value, tag FROM Cache WHERE key = ?) WHERE key = ?",
            (b"other", b"row"),
        )


def cut_file(folder, name):
    os.truncate(folder / name, 1000)


def flip_file(folder, name):
    with (folder / name).open("r+b") as file:
        file.seek(500_000)
        file.write(b"\xff\xff")


def empty_file(folder, name):
    os.truncate(folder / name, 0)


ROWS = [damage_row, cut_row, retype_row, damage_seal, swap_rows]


@pytest.mark.parametrize("harm", [*ROWS, cut_file, flip_file, empty_file])
def test_a_damaged_value_is_found_removed_and_made_anew(cache, folder, harm):
    cache.set("file", LARGE)
    cache.set("row", SMALL)
    cache.set("other", SMALL[::-1])
    (name,) = value_files(folder)
    key, value, untouched = ("row", SMALL, "file") if harm in ROWS else ("file", LARGE, "row")
    harm(folder, name)
    assert cache.get(key) is None
    assert cache.counts().errors == 1
    with database(folder) as rows:
        assert rows.execute("SELECT count(*) FROM Cache WHERE key = ?", (key.encode(),)).fetchone() == (0,)
    assert value_files(folder) == known_files(folder)
    assert cache.make(key, lambda: value) == value
    assert cache.get(key) == value
    assert cache.make(untouched, unmade)
    assert cache.make("other", unmade) == SMALL[::-1]


def test_a_file_that_is_gone_is_a_miss(cache, folder):
    cache.set("key", LARGE)
    shutil.rmtree((folder / value_files(folder)[0]).parent)
    assert cache.make("key", lambda: LARGE) == LARGE
    assert cache.make("key", unmade) == LARGE
    assert value_files(folder) == known_files(folder)


def overwrite_header(path):
    with path.open("r+b") as file:
        file.write(b"\xde\xad\xbe\xef" * 25)


def overwrite_all(path):
    path.write_bytes(b"\xde\xad\xbe\xef" * (path.stat().st_size // 4))


def overwrite_pages(path):
    with path.open("r+b") as file:
        file.seek(16384)
        file.write(b"\xde\xad\xbe\xef" * ((path.stat().st_size - 16384) // 4))


def cut_database(path):
    os.truncate(path, 16384 + 100)


def empty_database(path):
    os.truncate(path, 0)


def replace_tables(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as rows:
        rows.execute("DROP TABLE Cache")
        rows.execute("CREATE TABLE Cache (key, value)")


def another_format(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as rows:
        rows.execute("PRAGMA user_version = 99")


HARMS = [overwrite_header, overwrite_all, overwrite_pages, cut_database, empty_database, replace_tables]


@pytest.mark.parametrize("harm", [*HARMS, another_format])
def test_a_database_found_damaged_is_set_aside_and_rebuilt(cache, folder, harm, caplog):
    for number in range(50):
        cache.set(str(number), bytes(50_000))
    cache.close()
    harm(folder / "cache.db")
    with closing(Cache(folder, size_limit=64 << 20, file_limit=100)) as later:
        for number in range(50):
            assert later.make(str(number), lambda: bytes(50_000)) == bytes(50_000)
        for number in range(50):
            assert later.make(str(number), unmade) == bytes(50_000)
        assert later.get("0") == bytes(50_000)
    if harm is not empty_database:  # one that is empty is as good as new
        assert 0 < (folder / "damaged.db").stat().st_size <= 1 << 20
        assert "set aside" in caplog.text


@pytest.mark.parametrize("harm", HARMS)
def test_a_database_damaged_in_use_never_fails_a_call(cache, folder, harm, caplog):
    other = Cache(folder, size_limit=64 << 20, file_limit=100)
    for number in range(50):
        cache.set(str(number), bytes(50_000))
    assert other.get("7") == bytes(50_000)
    with database(folder) as rows:
        rows.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    harm(folder / "cache.db")
    with closing(other):
        for number in range(100):
            for one in (cache, other):
                assert one.make(str(number), lambda: bytes(50_000)) == bytes(50_000)
                assert one.get(str(number)) in (None, bytes(50_000))
        # both have the one new database now, or still the old one
        assert cache.make("99", unmade) == other.make("99", unmade) == bytes(50_000)
    assert caplog.text.count("set aside") <= 1
    with database(folder) as rows:
        assert rows.execute("PRAGMA quick_check").fetchone() == ("ok",)


def test_several_that_open_a_damaged_database_set_it_aside_once(folder, caplog):
    caches = [Cache(folder, size_limit=64 << 20, file_limit=100) for _ in range(6)]
    start = threading.Barrier(len(caches))

    def use(cache):
        start.wait(20)
        value = cache.make("key", lambda: SMALL)
        cache.close()
        return value

    with ThreadPoolExecutor(len(caches)) as pool:
        for turn in range(5):
            assert list(pool.map(use, caches)) == [SMALL] * len(caches)
            assert caplog.text.count("set aside") == turn
            overwrite_header(folder / "cache.db")
    assert sum(cache.counts().errors for cache in caches) == 0


def test_another_programs_database_is_left_alone(folder, caplog):
    folder.mkdir()
    with closing(diskcache.Cache(str(folder))) as theirs:
        theirs.set("their", "value")
    with closing(Cache(folder, size_limit=64 << 20, file_limit=100)) as cache:
        assert cache.make("key", lambda: SMALL) == SMALL
        assert cache.get("key") is None
    assert "another program" in caplog.text
    with closing(diskcache.Cache(str(folder))) as theirs:
        assert theirs.get("their") == "value"
