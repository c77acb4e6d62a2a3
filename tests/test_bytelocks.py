"""Locks between processes. Another object of the same process stands for another process where that is enough."""

import os
import signal
import subprocess
import sys

import pytest

from storage.bytelocks import ByteLocks

HOLD = """
import sys, time
from pathlib import Path
from storage.bytelocks import ByteLocks
assert ByteLocks(Path(sys.argv[1])).take(b"a") is not None
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "locks"


def test_a_name_is_held_once_and_others_are_free(path):
    one, other = ByteLocks(path), ByteLocks(path)
    token = one.take(b"a")
    assert token is not None
    assert (other.take(b"a"), one.take(b"a")) == (None, None)
    assert other.take(b"b") is not None
    one.free(token)
    assert other.take(b"a") is not None


def test_freeing_one_name_frees_no_other(path):
    # POSIX locks would: closing any descriptor of a file drops all that the process holds in it
    one, other = ByteLocks(path), ByteLocks(path)
    one.take(b"a")
    one.free(one.take(b"b"))
    assert other.take(b"a") is None


def test_a_token_frees_only_once(path):
    locks = ByteLocks(path)
    token = locks.take(b"a")
    locks.free(token)
    again = os.open("/dev/null", os.O_RDONLY)  # likely of the same number
    locks.free(token)
    os.fstat(again)
    os.close(again)


def test_the_file_stays_empty(path):
    locks = ByteLocks(path)
    for number in range(100):
        locks.take(b"%d" % number)
    assert path.stat().st_size == 0


def test_a_killed_holder_holds_nothing(path):
    holder = subprocess.Popen([sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert holder.stdout.readline() == b"held\n"
        assert ByteLocks(path).take(b"a") is None
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.communicate()
    assert ByteLocks(path).take(b"a") is not None


def test_a_forked_child_keeps_no_lock_of_its_parent(path):
    locks, other = ByteLocks(path), ByteLocks(path)
    token = locks.take(b"a")
    ready, done = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        locks.after_fork()
        os.write(ready[1], b".")
        os.read(done[0], 1)
        os._exit(0)
    try:
        os.read(ready[0], 1)
        assert other.take(b"a") is None  # the child closing its copy left the parent's lock alone
        locks.free(token)
        assert other.take(b"a") is not None  # and the child, still alive, holds none
    finally:
        os.write(done[1], b".")
        os.waitpid(child, 0)
        for end in (*ready, *done):
            os.close(end)


def test_after_the_file_was_deleted_all_meet_in_the_new_one(path):
    one, other = ByteLocks(path), ByteLocks(path)
    one.free(one.take(b"a"))
    path.unlink()
    assert one.take(b"a") is not None
    assert other.take(b"a") is None


def test_where_no_lock_can_be_had_it_says_so(tmp_path):
    with pytest.raises(FileNotFoundError):
        ByteLocks(tmp_path / "gone" / "locks").take(b"a")


def test_a_link_isnt_followed(path, tmp_path):
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic"):
        ByteLocks(path).take(b"a")
    assert not (tmp_path / "elsewhere").exists()
