"""Buckets in several processes over one SQLite file, and what they take of memory."""

import hashlib
import random
import signal
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from storage.bucket import Bucket
from storage.schema import BINARIES
from storage.sqlite import SqliteStore

ROOT = Path(__file__).parent.parent
CHUNK = 261_120


@pytest.fixture
def file(tmp_path):
    return tmp_path / "store.sqlite"


@pytest.fixture
def bucket(file):
    store = SqliteStore(file)
    store.create(BINARIES)
    bucket = Bucket(store)
    bucket.init()
    yield bucket
    store.close()


def child(file, source):
    """A Python process in which ``bucket`` is the bucket."""
    begin = (
        f"import sys, time; sys.path.insert(0, {str(ROOT)!r})\n"
        "from storage.bucket import Bucket\nfrom storage.sqlite import SqliteStore\n"
        f"bucket = Bucket(SqliteStore({str(file)!r}))\n"
    )
    return subprocess.Popen([sys.executable, "-c", begin + source], stdout=subprocess.PIPE, text=True)


def test_an_upload_that_its_process_forgets_is_never_complete(file, bucket):
    """At the end of the interpreter everything is collected."""
    source = "stream = bucket.open_upload_stream('a')\nstream.write(b'x' * 5_000_000)\nprint(stream.file_id)"
    with child(file, source) as process:
        file_id = process.stdout.read().strip()
    assert process.returncode == 0
    assert bucket.get(file_id).status == "Incomplete"
    bucket.sweep(file_id, 0)
    assert bucket.check(older_than=0).found == {}


def test_a_killed_upload_leaves_nothing_that_can_be_read(file, bucket):
    source = (
        "stream = bucket.open_upload_stream('a')\n"
        "for number in range(10**9):\n    stream.write(b'x' * 300_000)\n    print(stream.file_id, flush=True)"
    )
    with child(file, source) as process:
        for _ in range(15):
            file_id = process.stdout.readline().strip()
        process.send_signal(signal.SIGKILL)
    assert bucket.revisions("a") == []
    assert bucket.get(file_id).status == "Incomplete"
    report = bucket.check(older_than=0, repair=True)
    assert (report.found, report.is_sound) == ({"abandoned": 1}, True)
    assert bucket.check(older_than=0).found == {}


def test_processes_that_upload_under_one_name(file, bucket):
    source = (
        "for number in range(8):\n"
        "    with bucket.open_upload_stream('a') as stream:\n        stream.write(b'%d' % number)\n"
        "    print(stream.file_id, flush=True)"
    )
    processes = [child(file, source) for _ in range(3)]
    ids = [line.strip() for process in processes for line in process.communicate()[0].splitlines()]
    assert len(ids) == 24
    found = bucket.revisions("a")
    assert sorted(record.id for record in found) == sorted(ids)
    assert len({record.finished_at for record in found}) == 24
    assert bucket.check(older_than=0).found == {}


@pytest.mark.parametrize("mebibytes", [48, pytest.param(400, marks=pytest.mark.stress)])
def test_memory_stays_flat(bucket, mebibytes):
    """That of ten chunks each way, whatever the size of the file."""
    block = random.Random(1).randbytes(1 << 20)
    expected = hashlib.sha256()
    tracemalloc.start()
    try:
        with bucket.open_upload_stream("a") as stream:
            for _ in range(mebibytes):
                stream.write(block)
                expected.update(block)
        assert stream.record.sha256 == expected.hexdigest()
        assert sum(map(len, bucket.pieces(stream.record))) == mebibytes << 20
        with bucket.open_download_stream(stream.file_id) as file:
            assert sum(map(len, iter(lambda: file.read(100_000), b""))) == mebibytes << 20
        assert bucket.check().is_sound
        bucket.delete(stream.file_id, hard=True)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
