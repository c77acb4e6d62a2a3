"""What the cache keeps, for how long, and what it tells."""

import logging
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from storage.cache import Cache
from tests.cache.setting import LARGE, LOG, SMALL, database, disk_use, known_files, unmade, value_files


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


def test_warnings_name_the_folder_and_no_value(cache, folder, caplog):
    cache.set("secret key", SMALL)
    with database(folder) as rows:
        rows.execute("UPDATE Cache SET value = x'00'")
    with caplog.at_level(logging.DEBUG):
        cache.get("secret key")
    assert str(folder) in caplog.text
    assert "secret" not in caplog.text


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
