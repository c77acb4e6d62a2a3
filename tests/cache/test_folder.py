"""The folder goes, its disk is full or only readable, and what killed writers leave in it."""

import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from contextlib import closing

import pytest

from storage.cache import Cache
from tests.cache.setting import LARGE, SMALL, Clock, database, known_files, process, unmade, until, value_files


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
