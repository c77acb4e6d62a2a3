"""The cache on a real disk, with real processes, and what may happen to its folder."""

import json
import logging
import os
import pickle
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import diskcache
import pytest

from storage.cache import Busy, Cache

SMALL = b"in the database"
LARGE = bytes(range(256)) * 4096  # 1 MiB: a file
LOG = 10 << 20  # what the write-ahead log may take on top


class Clock:
    def __init__(self, now):
        self.now = now

    def __call__(self):
        return self.now


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def cache(folder):
    with closing(Cache(folder, size_limit=64 << 20, file_limit=100)) as cache:
        yield cache


def unmade():
    raise AssertionError("made, though it was there")


def until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        os.sched_yield()


def value_files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.glob("*/*.val"))


def disk_use(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@contextmanager
def database(folder):
    """The database, behind the cache's back."""
    with closing(sqlite3.connect(folder / "cache.db", isolation_level=None)) as connection:
        yield connection


def known_files(folder):
    with database(folder) as rows:
        return sorted(name for (name,) in rows.execute("SELECT filename FROM Cache WHERE filename IS NOT NULL"))


@contextmanager
def process(code, folder, **more):
    """A Python process that has `cache` and `say`; killed at the end if it still runs."""
    prelude = (
        "import os, sys, threading\nfrom pathlib import Path\nfrom storage.cache import Busy, Cache\n"
        "say = lambda text: print(text, flush=True)\n"
        "cache = Cache(Path(sys.argv[1]), size_limit=64 << 20, file_limit=100)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", prelude + code, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **more
    )
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


# what it does


@pytest.mark.parametrize("value", [b"", SMALL, LARGE], ids=["empty", "row", "file"])
def test_a_value_comes_back_in_any_cache_on_the_folder(cache, folder, value):
    cache.set("key", value)
    assert cache.get("key") == value
    with closing(Cache(folder, size_limit=64 << 20, file_limit=100)) as other:
        assert other.get("key") == value
    assert len(value_files(folder)) == (value is LARGE)


@pytest.mark.parametrize("before, after", [(SMALL, LARGE), (LARGE, SMALL), (LARGE, LARGE[1:] + b"x" * 9)])
def test_a_value_set_again_replaces_the_first_and_its_file(cache, folder, before, after):
    cache.set("key", before)
    cache.set("key", after)
    assert cache.get("key") == after
    assert value_files(folder) == known_files(folder)


def test_evicted_is_gone_with_file_and_folder(cache, folder):
    cache.set("key", LARGE)
    (name,) = value_files(folder)
    cache.evict("key")
    cache.evict("never there")
    assert cache.get("key") is None
    assert not (folder / name).parent.exists()


def test_keys_are_any_text(cache):
    keys = ["", "a", "A", "a\0b", "a\0c", "ä", "a\u0308", "\ud800", "../../x", "x" * 5000, "'; DROP TABLE Cache"]
    for key in keys:
        cache.set(key, key.encode("utf-8", "surrogatepass"))
    assert [cache.get(key) for key in keys] == [key.encode("utf-8", "surrogatepass") for key in keys]


def test_made_once_then_found(cache):
    assert cache.make("key", lambda: SMALL) == SMALL
    assert cache.make("key", unmade) == SMALL
    assert cache.get("key") == SMALL


def test_what_the_maker_raises_comes_out_and_isnt_kept(cache):
    with pytest.raises(ZeroDivisionError):
        cache.make("key", lambda: 1 // 0)
    assert cache.make("key", lambda: SMALL) == SMALL


def test_counts(cache):
    cache.get("a")
    cache.make("a", lambda: SMALL)
    cache.get("a")
    cache.make("a", unmade)
    counts = cache.counts()
    assert (counts.hits, counts.misses, counts.made, counts.waited) == (2, 2, 1, 0)
    assert (counts.errors, counts.evicted) == (0, 0)


def test_works_on_after_close(cache):
    cache.set("key", SMALL)
    cache.close()
    cache.close()
    assert cache.get("key") == SMALL


def test_nothing_is_touched_before_the_first_use(folder):
    Cache(folder, size_limit=1 << 20, file_limit=1).close()
    assert not folder.exists()


# limits


def test_the_limits_hold_after_every_write(folder):
    size_limit, file_limit = 16 << 20, 5
    chance = random.Random(3)
    with closing(Cache(folder, size_limit=size_limit, file_limit=file_limit)) as cache:
        for number in range(150):
            size = chance.choice([10, 1000, 90_000, 700_000, 1_000_000, 3_000_000])
            cache.set(str(number), chance.randbytes(size))
            assert len(value_files(folder)) <= file_limit
            assert disk_use(folder) <= size_limit + LOG
            with database(folder) as rows:
                (pages,) = rows.execute("PRAGMA page_count").fetchone()
            assert pages * 16384 + sum((folder / name).stat().st_size for name in value_files(folder)) <= size_limit
            assert cache.get(str(number)) is not None  # the newest is there
        counts = cache.counts()
        assert value_files(folder) == known_files(folder)
        assert disk_use(folder) > size_limit // 2  # and room isn't wasted
        with database(folder) as rows:
            assert counts.evicted == 150 - rows.execute("SELECT count(*) FROM Cache").fetchone()[0]
        assert counts.errors == 0


def test_a_large_value_makes_room_among_many_small_ones(folder):
    # diskcache removes ten rows for each that comes, whatever their size
    size_limit = 4 << 20
    with closing(Cache(folder, size_limit=size_limit, file_limit=100)) as cache:
        for number in range(800):
            cache.set(f"small {number}", bytes(4000))
        for number in range(6):
            cache.set(f"large {number}", bytes(950_000))
            with database(folder) as rows:
                (pages,) = rows.execute("PRAGMA page_count").fetchone()
                assert pages * 16384 <= size_limit


def test_the_log_stays_small_while_many_read(cache, folder):
    """SQLite begins it anew only when nobody reads what was there before the last write: here somebody always does."""
    cache.set("key", SMALL)
    done = threading.Event()
    slow = (
        "WITH RECURSIVE n(i) AS (SELECT count(*) FROM Cache UNION ALL SELECT i + 1 FROM n WHERE i < 20000)"
        " SELECT count(*) FROM n"
    )

    def read():
        with database(folder) as one, database(folder) as other:
            while not done.is_set():
                for before, after in ((one, other), (other, one)):
                    after.execute("BEGIN")
                    after.execute(slow).fetchall()
                    if before.in_transaction:
                        before.execute("COMMIT")

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        try:
            for number in range(60):
                cache.set("other", bytes([number]) * 900_000)
                assert (folder / "cache.db-wal").stat().st_size < 16 << 20
        finally:
            done.set()
        for reader in readers:
            reader.result(20)
    assert cache.counts().errors == 0


def test_the_least_recently_stored_goes_first(folder):
    with closing(Cache(folder, size_limit=64 << 20, file_limit=3)) as cache:
        for key in "abc":
            cache.set(key, LARGE)
        cache.set("row", SMALL)
        cache.get("a")
        cache.set("b", LARGE[::-1])
        cache.set("d", LARGE)
        assert [key for key in ("a", "b", "c", "d", "row") if cache.get(key)] == ["b", "c", "d", "row"]


def test_a_value_above_a_quarter_of_the_limit_isnt_kept(folder):
    with closing(Cache(folder, size_limit=4 << 20, file_limit=100)) as cache:
        cache.set("other", SMALL)
        assert cache.make("key", lambda: LARGE + b"x") == LARGE + b"x"
        assert cache.get("key") is None
        assert value_files(folder) == []
        cache.set("key", LARGE)
        assert cache.get("key") == LARGE
        assert cache.get("other") == SMALL
        assert cache.counts().errors == 0


def test_a_lower_limit_holds_from_the_first_write(cache, folder):
    for number in range(20):
        cache.set(str(number), bytes(900_000))
    cache.close()
    with closing(Cache(folder, size_limit=4 << 20, file_limit=100)) as lower:
        lower.set("new", SMALL)
        assert lower.counts().evicted >= 16
        assert lower.get("19") is not None


# nothing in the folder is executed, or leads out of it


class Bomb:
    """Unpickling it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (Path(self.path),)


@pytest.fixture
def crater(tmp_path):
    path = tmp_path / "crater"
    yield path
    assert not path.exists()


@pytest.mark.parametrize("where", ["row", "file", "text file", "unknown mode", "in the place of a value file"])
def test_a_planted_pickle_is_never_loaded(cache, folder, crater, where):
    bomb = pickle.dumps(Bomb(crater))
    cache.set("key", LARGE)
    (name,) = value_files(folder)
    mode = {"row": 4, "file": 4, "text file": 3, "unknown mode": 5, "in the place of a value file": 2}[where]
    with database(folder) as rows:
        if where == "row":
            rows.execute("UPDATE Cache SET mode = 4, filename = NULL, value = ?", (bomb,))
        else:
            (folder / name).write_bytes(bomb)
            rows.execute("UPDATE Cache SET mode = ?", (mode,))
    assert cache.get("key") is None
    assert cache.counts().errors == 1
    with database(folder) as rows:
        assert rows.execute("SELECT count(*) FROM Cache").fetchone() == (0,)
    assert cache.make("key", lambda: SMALL) == SMALL
    assert cache.get("key") == SMALL


def test_the_bomb_is_live(cache, folder, tmp_path):
    """Else the test above shows nothing: bare diskcache does load it."""
    cache.set("key", SMALL)
    with database(folder) as rows:
        rows.execute("UPDATE Cache SET mode = 4, value = ?", (pickle.dumps(Bomb(tmp_path / "here")),))
    with closing(diskcache.Cache(str(folder))) as bare:
        bare.get(b"key")
    assert (tmp_path / "here").exists()


def test_a_pickled_key_is_never_loaded(cache, folder, crater):
    cache.set("key", SMALL)
    with database(folder) as rows:
        rows.execute("UPDATE Cache SET raw = 0, key = ?", (pickle.dumps(Bomb(crater)),))
    assert cache.get("key") is None
    cache.set("other", SMALL)
    assert cache.get("other") == SMALL


@pytest.mark.parametrize(
    "key, value", [("_directory", "/nonexistent"), ("get", "x"), ("disk_fetch", "x"), ("sqlite_writable_schema", 1)]
)
def test_planted_settings_arent_taken(cache, folder, key, value):
    cache.set("key", SMALL)
    cache.close()
    with database(folder) as rows:
        rows.execute("INSERT INTO Settings VALUES (?, ?)", (key, value))
    assert cache.get("key") is None
    cache.set("key", SMALL)
    assert cache.get("key") == SMALL
    assert (folder / "damaged.db").exists()


def test_settings_of_ours_arent_taken_from_the_database(cache, folder):
    cache.set("key", SMALL)
    cache.close()
    with database(folder) as rows:
        rows.execute("UPDATE Settings SET value = 4711 WHERE key NOT IN ('count', 'size', 'sqlite_journal_mode')")
    assert cache.get("key") == SMALL
    with database(folder) as rows:
        taken = {key for (key,) in rows.execute("SELECT key FROM Settings WHERE value = 4711")}
    assert taken == {"hits", "misses"}  # counts that nobody uses


def test_a_planted_file_name_leads_nowhere(cache, folder, tmp_path):
    outside = tmp_path / "outside.val"
    outside.write_bytes(LARGE)
    cache.set("key", LARGE)
    with database(folder) as rows:
        rows.execute("UPDATE Cache SET filename = '../outside.val'")
    assert cache.get("key") is None
    cache.set("key", LARGE)
    with database(folder) as rows:
        rows.execute("UPDATE Cache SET filename = ?", (str(outside),))
    cache.evict("key")
    assert outside.exists()


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "huge"])
def test_what_isnt_a_plain_file_of_possible_size_isnt_read(cache, folder, tmp_path, kind):
    cache.set("key", LARGE)
    (name,) = value_files(folder)
    path = folder / name
    if kind == "huge":
        os.truncate(path, 1 << 40)
    else:
        path.rename(tmp_path / "moved")
        {"link": lambda: path.symlink_to(tmp_path / "moved"), "pipe": lambda: os.mkfifo(path), "folder": path.mkdir}[
            kind
        ]()
    assert cache.get("key") is None
    assert cache.counts().errors == (kind in ("pipe", "huge"))  # the others are as good as gone
    assert cache.counts().errors == 0 or value_files(folder) == []
    cache.set("key", LARGE)
    assert cache.get("key") == LARGE


# damage


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


# the folder


def test_a_folder_removed_while_in_use_is_made_anew(cache, folder):
    other = Cache(folder, size_limit=64 << 20, file_limit=100)
    for one in (cache, other):
        one.set("row", SMALL)
        one.set("file", LARGE)
    shutil.rmtree(folder)
    with closing(other):
        assert cache.get("row") in (None, SMALL)
        assert cache.get("file") is None
        assert cache.make("file", lambda: LARGE) == LARGE
        assert cache.make("file", unmade) == LARGE
        other.set("new", SMALL)
        assert cache.get("new") == SMALL
        assert value_files(folder) == known_files(folder)


def test_a_folder_that_cant_be_made_costs_only_speed(tmp_path, caplog):
    (tmp_path / "file").touch()
    clock = Clock(0.0)
    with closing(Cache(tmp_path / "file" / "cache", size_limit=1 << 20, file_limit=1, clock=clock)) as cache:
        for _ in range(5):
            assert cache.make("key", lambda: SMALL) == SMALL
            cache.set("key", SMALL)
            cache.evict("key")
            assert cache.get("key") is None
        assert cache.counts().errors == 1  # it isn't tried at every call
        (tmp_path / "file").unlink()
        clock.now += 10
        assert cache.make("key", lambda: SMALL) == SMALL
        assert cache.make("key", unmade) == SMALL
    assert len([line for line in caplog.records if "out of order" in line.message]) == 1


@pytest.fixture
def small_disk(tmp_path):
    path = tmp_path / "disk"
    path.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", path], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"needs a small disk, and tmpfs can't be mounted here: {done.stderr.strip()}")
    yield path
    subprocess.run(["umount", "-l", path], check=True)


def test_a_full_disk_costs_only_speed_and_leaks_nothing(small_disk, caplog):
    folder = small_disk / "cache"
    with closing(Cache(folder, size_limit=64 << 20, file_limit=100)) as cache:
        cache.set("before", SMALL)
        (small_disk / "ballast").write_bytes(bytes(3 << 20))
        made = Counter()
        for turn in range(2):
            for number in range(20):
                value = LARGE + bytes([number]) if number % 2 else bytes([number]) * 600_000

                def make(number=number, value=value):
                    made[number] += 1
                    return value

                assert cache.make(str(number), make) == value, turn
                assert value_files(folder) == known_files(folder)
        assert sum(made.values()) > 20  # some weren't kept
        assert cache.counts().errors > 0
        assert cache.get("before") == SMALL
        assert "set aside" not in caplog.text
        (small_disk / "ballast").unlink()
        cache.set("after", LARGE)
        assert cache.get("after") == LARGE


def test_a_disk_with_room_for_the_file_and_not_for_its_row_keeps_neither(small_disk, caplog):
    folder = small_disk / "cache"
    with closing(Cache(folder, size_limit=64 << 20, file_limit=100)) as cache:
        cache.set("before", SMALL)
        room = os.statvfs(small_disk)
        (small_disk / "ballast").write_bytes(bytes(room.f_bavail * room.f_frsize - len(LARGE) - 4096))
        for _ in range(3):
            assert cache.make("key", lambda: LARGE) == LARGE
            assert value_files(folder) == known_files(folder) == []
        assert cache.counts().errors == 3
        assert cache.get("before") == SMALL
    assert "set aside" not in caplog.text
    assert caplog.text.count("keeps nothing for now") == 1


@pytest.mark.parametrize("size_limit", [64 << 20, 4 << 20], ids=["at the commit", "while making room"])
def test_a_write_error_isnt_taken_for_damage(cache, folder, size_limit):
    for number in range(20):
        cache.set(str(number), bytes(900_000))
    cache.close()
    code = f"""
import resource
cache = Cache(Path(sys.argv[1]), size_limit={size_limit}, file_limit=100)
cache.get("none")
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
for key, size in (("row", 400_000), ("file", 1_000_000), ("row again", 400_000)):
    assert cache.make(key, lambda: bytes(size)) == bytes(size)
    assert cache.get(key) is None
assert cache.get("19") == bytes(900_000)
assert cache.counts().errors == 3, cache.counts()
"""
    with process(code, folder, stderr=subprocess.STDOUT) as writer:
        out, _ = writer.communicate(timeout=30)
        assert writer.returncode == 0, out
    assert "set aside" not in out
    assert value_files(folder) == []


def test_a_disk_that_becomes_readable_only_costs_only_speed(small_disk):
    folder = small_disk / "cache"
    with closing(Cache(folder, size_limit=64 << 20, file_limit=100)) as cache:
        cache.set("key", LARGE)
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    with closing(Cache(folder, size_limit=64 << 20, file_limit=100)) as cache:
        assert cache.make("key", lambda: LARGE) == LARGE
        assert cache.make("new", lambda: SMALL) == SMALL
        cache.evict("key")


def test_a_writer_that_hangs_costs_half_a_second_once(cache, folder):
    clock = Clock(100.0)
    cache.set("old", SMALL)
    with closing(Cache(folder, size_limit=64 << 20, file_limit=100, clock=clock)) as other, database(folder) as hung:
        assert other.get("old") == SMALL
        hung.execute("BEGIN IMMEDIATE")
        for number in range(100):
            assert other.make(str(number), lambda: LARGE) == LARGE
        assert other.counts().errors == 1
        assert other.get("old") == SMALL
        assert value_files(folder) == []
        hung.execute("ROLLBACK")
        clock.now += 10
        other.set("new", SMALL)
        assert other.get("new") == SMALL


# what killed writers leave


def test_files_of_dead_writers_are_swept_and_young_ones_left(folder):
    wall, clock = Clock(time.time()), Clock(0.0)
    with closing(Cache(folder, size_limit=64 << 20, file_limit=100, clock=clock, wall_clock=wall)) as cache:
        cache.set("key", LARGE)
        (kept,) = value_files(folder)
        orphan, foreign = folder / "ab" / f"{'0' * 30}.val", folder / "ab" / "notes.txt"
        for path in (orphan, foreign, folder / "mine.val"):
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"x")
        (folder / "cd").mkdir()
        clock.now += 1000
        cache.set("key 2", SMALL)
        assert orphan.exists()  # its writer may be at work
        assert not (folder / "cd").exists()
        wall.now += 1000
        clock.now += 1000
        cache.set("key 3", SMALL)
        assert not orphan.exists()
        assert foreign.exists() and (folder / "mine.val").exists()
        assert value_files(folder) == [kept]
        assert cache.get("key") == LARGE


def test_opening_sweeps(cache, folder):
    cache.set("key", SMALL)
    orphan = folder / "ab" / f"{'0' * 30}.val"
    orphan.parent.mkdir()
    orphan.touch()
    os.utime(orphan, (1, 1))
    cache.close()
    assert cache.get("key") == SMALL
    assert not orphan.parent.exists()


def test_killed_while_caching(folder):
    """Nothing bad is ever handed out, and what lies about is swept."""
    writing = """
import itertools
say("ready")
for number in itertools.count():
    size = 1_100_000 if number % 2 else 300_000
    cache.set(str(number % 10), bytes([number % 10]) * size)
"""
    chance = random.Random(7)
    for _ in range(6):
        with process(writing, folder) as writer:
            writer.stdout.readline()
            ends = time.monotonic() + chance.random() * 0.05
            until(lambda ends=ends: time.monotonic() > ends)
            writer.send_signal(signal.SIGKILL)
            writer.wait()
    wall = Clock(time.time() + 1000)
    with closing(Cache(folder, size_limit=64 << 20, file_limit=100, wall_clock=wall)) as cache:
        for number in range(10):
            value = cache.get(str(number))
            assert value is None or value == bytes([number]) * (1_100_000 if number % 2 else 300_000)
        assert cache.counts().errors == 0
        assert value_files(folder) == known_files(folder)


# threads and processes


def test_many_threads_and_processes_have_every_value_right(folder):
    code = """
import random
from concurrent.futures import ThreadPoolExecutor
def work(seed):
    chance = random.Random(seed)
    for _ in range(60):
        number = chance.randrange(50)
        value = bytes([number]) * (1_000_001 if number % 10 == 0 else 1000 * number)
        if chance.random() < 0.1:
            cache.evict(str(number))
        assert cache.make(str(number), lambda: value) == value
        assert cache.get(str(number)) in (None, value)
with ThreadPoolExecutor(8) as pool:
    list(pool.map(work, range(int(sys.stdin.readline()), 10**9, 100)[:8]))
"""
    talk = {"stderr": subprocess.PIPE}
    with process(code, folder, **talk) as one, process(code, folder, **talk) as other:
        for seed, child in enumerate((one, other)):
            child.stdin.write(f"{seed}\n")
            child.stdin.flush()
        heard = [child.communicate() for child in (one, other)]
        assert (one.returncode, other.returncode) == (0, 0), heard
        assert "is removed" not in str(heard)
        assert "set aside" not in str(heard)
    with database(folder) as rows:
        assert rows.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert value_files(folder) == known_files(folder)


def test_processes_and_threads_make_a_value_once(folder, tmp_path):
    code = """
from concurrent.futures import ThreadPoolExecutor
def maker():
    say("making")
    sys.stdin.readline()
    return b"made"
with ThreadPoolExecutor(5) as pool:
    values = list(pool.map(lambda _: cache.make("key", maker), range(5)))
say(str(values == [b"made"] * 5) + str(cache.counts().made))
"""
    with process(code, folder) as maker:
        assert maker.stdout.readline() == "making\n"
        with process(code, folder) as second, closing(Cache(folder, size_limit=64 << 20, file_limit=100)) as third:
            with ThreadPoolExecutor(3) as pool:
                values = [pool.submit(third.make, "key", unmade) for _ in range(3)]
                until(lambda: third.counts().waited == 3)
                maker.stdin.write("\n")
                maker.stdin.flush()
                assert [value.result(20) for value in values] == [b"made"] * 3
            assert second.stdout.readline() == "True0\n"
        assert maker.stdout.readline() == "True1\n"


def test_when_the_maker_is_killed_the_next_one_gets_in(cache, folder):
    with process('cache.make("key", lambda: (say("making"), sys.stdin.read()))', folder) as maker:
        assert maker.stdout.readline() == "making\n"
        with ThreadPoolExecutor(4) as pool:
            values = [pool.submit(cache.make, "key", lambda: b"mine") for _ in range(4)]
            until(lambda: cache.counts().waited == 4)
            maker.send_signal(signal.SIGKILL)
            assert [value.result(20) for value in values] == [b"mine"] * 4
    assert cache.counts().made == 1


def test_a_maker_that_hangs_makes_others_busy_at_their_deadline_and_blocks_no_other_key(folder):
    with process('cache.make("key", lambda: (say("making"), sys.stdin.read()))', folder) as maker:
        assert maker.stdout.readline() == "making\n"
        with closing(Cache(folder, size_limit=64 << 20, file_limit=100, wait=0.05)) as cache:
            with pytest.raises(Busy):
                cache.make("key", unmade)
            for number in range(300):
                assert cache.make(str(number), lambda: SMALL) == SMALL
            with pytest.raises(Busy):
                cache.make("key", unmade)


def test_what_cant_be_kept_still_reaches_those_who_wait(tmp_path):
    (tmp_path / "file").touch()
    cache = Cache(tmp_path / "file" / "cache", size_limit=1 << 20, file_limit=1)
    goes_on, made = threading.Event(), []

    def maker():
        made.append(1)
        goes_on.wait(20)
        return SMALL

    with ThreadPoolExecutor(4) as pool:
        values = [pool.submit(cache.make, "key", maker) for _ in range(4)]
        until(lambda: cache.counts().waited == 3)
        goes_on.set()
        assert [value.result(20) for value in values] == [SMALL] * 4
    assert len(made) == 1


def test_where_nothing_is_kept_processes_dont_wait_for_each_other(cache, folder, tmp_path):
    """What the other one makes couldn't be found, so that they would only make one after the other."""
    with process(
        """
cache.set("first", b"1")
from storage.cache_rows import Rows, Hindered
with cache._opened()._rows.transact():
    threading.Thread(target=lambda: cache.set("a", b"")).start() or [t.join() for t in threading.enumerate()[1:]]
cache.make("key", lambda: (say("making"), sys.stdin.readline()) and b"theirs")
""",
        folder,
    ) as hindered:
        assert hindered.stdout.readline() == "making\n"
        assert cache.make("key", lambda: b"mine") == b"mine"


FORK = """
import json, threading
cache.set("key", b"value")
other = threading.Thread(target=cache.get, args=("key",))
idle = threading.Event()
def hold():
    cache.get("key")
    cache.make("slow", lambda: idle.wait() and b"slow")
threading.Thread(target=hold, daemon=True).start()
while cache.counts().misses < 1:
    os.sched_yield()
child = os.fork()
if child == 0:
    found = cache.get("key"), cache.make("new", lambda: b"child"), cache.get("new")
    json.dump([list(map(bytes.decode, found)), vars(cache.counts())], sys.stdout)
    sys.stdout.flush()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert cache.get("new") == b"child"
assert cache.get("key") == b"value"
idle.set()
"""


def test_a_cache_in_use_works_on_both_sides_of_a_fork(folder):
    with process(FORK, folder) as parent:
        out, _ = parent.communicate(timeout=30)
        assert parent.returncode == 0
    found, counts = json.loads(out)
    assert found == ["value", "child", "child"]
    assert (counts["hits"], counts["misses"], counts["made"], counts["errors"]) == (2, 1, 1, 0)


def test_warnings_name_the_folder_and_no_value(cache, folder, caplog):
    cache.set("secret key", SMALL)
    with database(folder) as rows:
        rows.execute("UPDATE Cache SET value = x'00'")
    with caplog.at_level(logging.DEBUG):
        cache.get("secret key")
    assert str(folder) in caplog.text
    assert "secret" not in caplog.text
