"""``magazin files``: streams that fail, commands that are killed, and what a person sees meanwhile."""

import io
import itertools
import os
import shlex
import signal
import subprocess

import pytest

from cli import transfers
from cli.settings import Settings
from cli.supervisor import python
from cli.wiring import Magazin
from tests.cli_files.setting import CHUNK, noise, put
from tests.tree import ENVIRON, Tree


def test_a_put_that_fails_leaves_nothing(magazin, bucket):
    class Broken(io.RawIOBase):
        def read(self, size=-1):
            if next(reads) == 30:
                raise OSError(5, "Input/output error")
            return noise(CHUNK)

    reads = itertools.count()
    with pytest.raises(OSError):
        transfers.put(bucket, Broken(), "a", lambda done: None, first=False)
    assert bucket.check(older_than=0).found == {}
    assert list(bucket.find()) == []


@pytest.mark.parametrize(
    ("arguments", "streams", "said"),
    [
        (["get", "a", "-"], ">/dev/full", "No space left on device"),
        (["ls"], ">/dev/full", "No space left on device"),
        (["get", "a", "-"], ">&-", "standard output is closed"),
        (["put", "-", "b"], "<&-", "standard input is closed"),
    ],
)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_streams_that_take_or_give_nothing(magazin, tmp_path, arguments, streams, said, unbuffered):
    put(magazin, b"x", "a")
    words = shlex.join([*python("cli.main"), "files", *arguments, "--data", str(tmp_path / "data")])
    environ = ENVIRON | {"PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run(["sh", "-c", f"exec {words} {streams}"], env=environ, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr.decode().count("\n")) == (1, 1), done.stderr.decode()
    assert said in done.stderr.decode()


def test_a_reader_that_has_had_enough_is_no_error(magazin, tmp_path):
    put(magazin, noise(600_000), "a")
    words = [*python("cli.main"), "files", "get", "a", "-", "--data", str(tmp_path / "data")]
    with subprocess.Popen(words, env=ENVIRON, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.read(10) == noise(600_000)[:10]
        process.stdout.close()
        assert process.stderr.read() == b""


def test_kill_9_midway_leaves_an_upload_that_check_finds(tmp_path):
    data = tmp_path / "data"
    words = [*python("cli.main"), "files", "put", "-", "a", "--data", str(data)]
    with subprocess.Popen(words, env=ENVIRON, stdin=subprocess.PIPE) as process:
        process.stdin.write(noise(60 * CHUNK))
        process.stdin.flush()
        parts = Magazin(Settings(data=data))
        while not any(parts.buckets.open("fs").find(status="Incomplete")):
            pass
        process.send_signal(signal.SIGKILL)
    bucket = parts.buckets.open("fs")
    assert bucket.revisions("a") == []
    assert bucket.check().found == {}
    assert bucket.check(older_than=0).found == {"abandoned": 1}
    assert bucket.check(older_than=0, repair=True).is_sound
    assert bucket.check(older_than=0).found == {}
    parts.close()


def test_kill_9_of_the_server_midway(tmp_path):
    """Nothing of the upload is seen; the sweep takes it away; what was whole stays."""
    parts = Magazin(Settings(data=tmp_path / "data"))
    bucket = parts.buckets.open("fs")
    with Tree(tmp_path / "data", "--no-worker", environ={"MAGAZIN_ACCESS_OPEN_WRITES": "loopback"}) as tree:
        assert tree.ask("PUT", "/files/fs/whole", noise(1000))[0] == 201
        connection = tree.connect()
        connection.putrequest("PUT", "/files/fs/half")
        connection.putheader("Content-Length", str(90 * CHUNK))
        connection.endheaders(noise(60 * CHUNK))
        while not any(bucket.find(status="Incomplete")):
            pass
        tree.process.kill()
        assert tree.ended(30)
    assert bucket.revisions("half") == []
    with bucket.open_download_stream_by_name("whole") as stream:
        assert stream.read() == noise(1000)
    assert parts.sweep.run(0).candidates > 1
    report = bucket.check(older_than=0)
    assert (report.found, report.files) == ({}, {"Incomplete": 0, "Complete": 1, "Deleted": 0})
    parts.close()


def test_progress_is_shown_where_a_person_watches(tmp_path):
    """On a terminal, on standard error; names are text there, never markup."""
    (tmp_path / "a [bold]b").write_bytes(noise(3 * CHUNK))
    main_, side = os.openpty()
    words = [*python("cli.main"), "files", "put", "a [bold]b", "--data", str(tmp_path / "data")]
    with subprocess.Popen(
        words, env=ENVIRON | {"TERM": "xterm", "COLUMNS": "150"}, cwd=tmp_path, stdout=subprocess.PIPE, stderr=side
    ) as process:
        os.close(side)
        shown = b""
        try:
            while piece := os.read(main_, 65536):
                shown += piece
        except OSError:
            pass  # how a terminal says that the other end is closed
        assert process.wait() == 0
        assert len(process.stdout.read().strip()) == 36
    os.close(main_)
    assert b"a [bold]b" in shown
    assert b"MB" in shown or b"kB" in shown
