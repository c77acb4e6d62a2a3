"""The embedded plugin among processes: several at once, killed ones, forked ones."""

import ctypes
import os
import random
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from storage.errors import Unavailable
from storage.sqlite import SqliteStore
from storage.table import ABSENT, Put, Type, cas, plain

ENTRIES = plain("entries", "writer | number", writer=Type.TEXT, number=Type.INT, note=Type.TEXT)
COUNTS = cas("counts", "name", name=Type.TEXT, value=Type.INT)
TABLES = (ENTRIES, COUNTS)

WRITER = """
from pathlib import Path
from storage.sqlite import SqliteStore
from storage.table import ABSENT, Put, Type, cas, plain
ENTRIES = plain("entries", "writer | number", writer=Type.TEXT, number=Type.INT, note=Type.TEXT)
COUNTS = cas("counts", "name", name=Type.TEXT, value=Type.INT)
store = SqliteStore(Path({path!r}))
store.create([ENTRIES, COUNTS])
number = 0
while True:
    with store.unit():
        row = store.get(COUNTS, ("all",))
        value = row["value"] + 1 if row else 1
        assert store.commit(COUNTS, ("all",), [Put({{"name": "all", "value": value}}, row["rev"] if row else ABSENT)])
        store.put(ENTRIES, {{"writer": {name!r}, "number": number, "note": "x" * 2000}})
    store.put(ENTRIES, {{"writer": {name!r} + "-plain", "number": number}})
    print(number, flush=True)
    number += 1
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


def start(path: Path, name: str) -> subprocess.Popen[str]:
    source = WRITER.format(path=str(path), name=name)
    return subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True)


def killed(process: subprocess.Popen[str]) -> int:
    """The last number that the writer told of."""
    process.send_signal(signal.SIGKILL)
    out, _ = process.communicate()
    numbers = [int(text) for text in out.splitlines(keepends=True) if text.endswith("\n")]
    return numbers[-1] if numbers else -1


def assert_sound(path: Path) -> None:
    with closing(apsw.Connection(str(path))) as database:
        assert database.execute("PRAGMA integrity_check").get == "ok"


@pytest.mark.parametrize("kills", [5, pytest.param(25, marks=pytest.mark.stress)])
def test_writers_that_are_killed_lose_nothing(path: Path, kills: int) -> None:
    """Two or three write at once; at a random moment one dies and another takes its place."""
    chance = random.Random(7)
    writers = {name: start(path, name) for name in ("w0", "w1")}
    told: dict[str, int] = {}
    try:
        for turn in range(kills):
            victim = chance.choice(sorted(writers))
            stdout = writers[victim].stdout
            assert stdout is not None
            for _ in range(chance.randrange(1, 15)):
                assert stdout.readline()
            writers[f"w{turn + 2}"] = start(path, f"w{turn + 2}")
            told[victim] = killed(writers.pop(victim))
    finally:
        for name, process in writers.items():
            told[name] = killed(process)
    store = SqliteStore(path)
    total = 0
    for name, last in told.items():
        numbers = [row["number"] for row in store.read(ENTRIES, (name,), limit=1_000_000)]
        assert numbers == list(range(len(numbers)))
        assert len(numbers) > last
        assert len(store.read(ENTRIES, (f"{name}-plain",), limit=1_000_000)) > last
        total += len(numbers)
    count = store.get(COUNTS, ("all",))
    assert count is not None and count["value"] == total
    store.close()
    assert_sound(path)


def test_processes_that_begin_at_once(path: Path) -> None:
    """A new file is made by whoever comes first."""
    names = [f"w{number}" for number in range(6)]
    writers = [start(path, name) for name in names]
    try:
        for writer in writers:
            assert writer.stdout is not None and writer.stdout.readline() == "0\n"
    finally:
        last = [killed(writer) for writer in writers]
    store = SqliteStore(path)
    assert all(store.get(ENTRIES, (name, 0)) for name in names)
    assert len(last) == 6
    store.close()
    assert_sound(path)


def test_a_new_file_that_another_process_is_writing_to(path: Path) -> None:
    """SQLite refuses the switch to WAL at once, without asking its busy handler."""
    with closing(apsw.Connection(str(path))) as first, ThreadPoolExecutor(1) as pool:
        first.execute("CREATE TABLE t (a)")
        first.execute("BEGIN IMMEDIATE")
        patient = SqliteStore(path)
        waiting = pool.submit(patient.create, TABLES)
        with pytest.raises(Unavailable):
            SqliteStore(path, wait=0.1).create(TABLES)
        assert not waiting.done()
        first.execute("COMMIT")
        waiting.result()
        patient.close()


def in_fork(work, fork=os.fork) -> int:
    """The exit status of a forked process: 0 unless ``work`` raised."""
    child = fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    _, ended = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(ended)


def test_a_fork_inherits_no_connection(path: Path) -> None:
    """Nor does its end disturb the parent, whose connections of all threads are made anew."""
    store = SqliteStore(path)
    store.create(TABLES)
    store.put(ENTRIES, {"writer": "parent", "number": 0})
    resume, resumed = threading.Event(), []

    def another() -> None:
        store.get(ENTRIES, ("parent", 0))
        resume.wait()
        resumed.append(store.get(ENTRIES, ("child", 0)))

    thread = threading.Thread(target=another)
    thread.start()
    inherited = [link for link in Path("/proc/self/fd").iterdir() if link.exists() and link.resolve() == path]
    assert inherited

    def work() -> None:
        assert not [link for link in Path("/proc/self/fd").iterdir() if link.exists() and link.resolve() == path]
        assert store.get(ENTRIES, ("parent", 0))
        store.put(ENTRIES, {"writer": "child", "number": 0})

    assert in_fork(work) == 0
    resume.set()
    thread.join()
    assert resumed[0] is not None
    store.put(ENTRIES, {"writer": "parent", "number": 1})
    store.close()
    assert_sound(path)


def test_a_fork_that_python_did_not_see(path: Path) -> None:
    """A server written in C may fork by itself: its children must not touch what they inherit."""
    store = SqliteStore(path)
    store.create(TABLES)
    inherited = store._connections._process.connection
    assert inherited is not None

    def work() -> None:
        store.put(ENTRIES, {"writer": "child", "number": 0})
        assert store._connections._process.connection is not inherited
        assert not inherited.closed

    assert in_fork(work, ctypes.PyDLL(None).fork) == 0
    assert store.get(ENTRIES, ("child", 0)) is not None
    assert store._connections._process.connection is inherited
    store.close()


def test_a_child_goes_on_when_its_parent_closes(path: Path) -> None:
    """With inherited connections the parent's last close would delete the log under the child's feet."""
    store = SqliteStore(path)
    store.create(TABLES)
    store.put(ENTRIES, {"writer": "parent", "number": 0})
    ask, answer = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            store.put(ENTRIES, {"writer": "child", "number": 0})
            os.write(answer[1], b"x")
            os.read(ask[0], 1)
            for number in range(1, 50):
                store.put(ENTRIES, {"writer": "child", "number": number})
            status = 0
        finally:
            os._exit(status)
    assert os.read(answer[0], 1) == b"x"
    store.put(ENTRIES, {"writer": "parent", "number": 1})
    store.close()
    late = SqliteStore(path)
    late.put(ENTRIES, {"writer": "parent", "number": 2})
    late.close()
    os.write(ask[1], b"x")
    _, ended = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(ended) == 0
    for end in (*ask, *answer):
        os.close(end)
    after = SqliteStore(path)
    assert len(after.read(ENTRIES, ("child",), limit=99)) == 50
    assert len(after.read(ENTRIES, ("parent",), limit=99)) == 3
    after.close()
    assert_sound(path)


def test_a_fork_in_the_middle_of_anothers_unit(path: Path) -> None:
    store = SqliteStore(path, wait=0.05)
    store.create(TABLES)
    begun, end = threading.Event(), threading.Event()

    def hold() -> None:
        with store.unit():
            store.put(ENTRIES, {"writer": "parent", "number": 0})
            begun.set()
            end.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    begun.wait()

    def work() -> None:
        assert store.get(ENTRIES, ("parent", 0)) is None
        with pytest.raises(Unavailable):
            store.put(ENTRIES, {"writer": "child", "number": 0})

    try:
        assert in_fork(work) == 0
    finally:
        end.set()
        thread.join()
    assert store.get(ENTRIES, ("parent", 0)) is not None
    store.close()
    assert_sound(path)


def test_a_fork_within_a_unit(path: Path) -> None:
    """Its child has no part in it."""
    store = SqliteStore(path, wait=0.05)
    store.create(TABLES)

    def work() -> None:
        assert store.get(ENTRIES, ("parent", 0)) is None

    with store.unit():
        store.put(ENTRIES, {"writer": "parent", "number": 0})
        assert in_fork(work) == 0
        store.put(ENTRIES, {"writer": "parent", "number": 1})
    assert len(store.read(ENTRIES, ("parent",), limit=9)) == 2
    assert store.commit(COUNTS, ("n",), [Put({"name": "n", "value": 1}, ABSENT)])
    store.close()
    assert_sound(path)
