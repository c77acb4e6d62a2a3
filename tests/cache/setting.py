"""What the tests of the cache share: what it keeps, its folder seen from outside, and another process that has it."""

import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, contextmanager

SMALL = b"in the database"
LARGE = bytes(range(256)) * 4096  # 1 MiB: a file
LOG = 10 << 20  # what the write-ahead log may take on top


class Clock:
    def __init__(self, now):
        self.now = now

    def __call__(self):
        return self.now


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
