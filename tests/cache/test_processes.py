"""Many threads and real processes on one folder."""

import json
import signal
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from storage.cache import Busy, Cache
from tests.cache.setting import SMALL, database, known_files, process, unmade, until, value_files


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
