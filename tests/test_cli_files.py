"""``magazin files``: what each command does, prints and ends with."""

import fcntl
import hashlib
import io
import json
import logging
import os
import random
import shlex
import signal
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from cli import transfers
from cli.main import main
from cli.settings import Settings
from cli.supervisor import python
from cli.wiring import Magazin
from storage.bucket_tables import tables_of
from storage.table import Key
from tests.tree import ENVIRON, Tree

CHUNK = 261_120


def noise(size, seed=0):
    return random.Random(seed).randbytes(size)


@pytest.fixture
def magazin(tmp_path, monkeypatch):
    """Run ``magazin files …`` in a folder of its own: exit status, standard output as bytes, standard error."""
    monkeypatch.chdir(tmp_path)
    before = logging.root.handlers[:], logging.root.level

    def run(*arguments, data=None):
        words = ["files", *arguments, "--data", str(tmp_path / "data")]
        done = CliRunner().invoke(main, words, input=data, prog_name="magazin")
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, done.stdout_bytes, done.stderr

    yield run
    logging.root.handlers[:], logging.root.level = before


@pytest.fixture
def bucket(tmp_path):
    parts = Magazin(Settings(data=tmp_path / "data"))
    yield parts.buckets.open("fs")
    parts.close()


def put(magazin, data, name, *more):
    status, out, err = magazin("put", "-", name, *more, data=data)
    assert (status, err) == (0, "")
    return out.decode().strip()


def lines(out):
    return out.decode().splitlines()


def test_put_and_get(magazin, tmp_path, bucket):
    data = noise(600_000)
    (tmp_path / "report.bin").write_bytes(data)
    status, out, err = magazin("put", "report.bin")
    assert (status, err) == (0, "")
    record = bucket.get_by_name("report.bin")
    assert (out.decode(), record.sha256) == (f"{record.id}\n", hashlib.sha256(data).hexdigest())
    (tmp_path / "report.bin").unlink()
    assert magazin("get", "report.bin") == (0, b"", "")
    assert (tmp_path / "report.bin").read_bytes() == data
    (tmp_path / "folder").mkdir()
    assert magazin("get", "report.bin", "folder")[0] == 0
    assert magazin("get", record.id, "other", "--id")[0] == 0
    assert (tmp_path / "folder/report.bin").read_bytes() == data == (tmp_path / "other").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "folder", "other", "report.bin"]


def test_standard_streams(magazin):
    data = noise(600_000)
    put(magazin, data, "a/b")
    assert magazin("get", "a/b", "-") == (0, data, "")
    assert magazin("put", "-", data=b"x")[0] == 2


def test_what_is_put_beside_the_bytes(magazin, bucket):
    put(magazin, b"12345", "a", "--metadata", '{"title": "Ä"}', "--chunk-size", "2")
    record = bucket.get_by_name("a")
    assert (record.metadata, record.chunk_size_bytes) == ({"title": "Ä"}, 2)
    shown = json.loads(put(magazin, b"", "b", "--json"))
    assert (shown["filename"], shown["length"], shown["status"]) == ("b", 0, "Complete")
    status, out, err = magazin("put", "-", "a", "--if-absent", data=b"x")
    assert (status, out, "there is a 'a'" in err) == (1, b"", True)
    assert len(bucket.revisions("a")) == 1
    put(magazin, b"x", "c", "--if-absent")


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["put", "missing.bin"], 1, "missing.bin: No such file or directory"),
        (["put", "-", "x\ny"], 2, "control characters"),
        (["put", "-", ""], 2, "0 bytes"),
        (["put", "-", "x", "--metadata", "{"], 2, "--metadata"),
        (["put", "-", "x", "--chunk-size", "2 MiB"], 2, "chunk size"),
        (["put", "-", "x", "--bucket", "Nowhere"], 2, "--bucket"),
        (["put", "-", "x", "--bucket", "nowhere"], 1, "bucket nowhere: there is no such bucket"),
        (["get", "missing"], 1, "file 'missing': there is no such file"),
        (["get", "missing", "--id"], 1, "file missing: there is no such file"),
        (["rm", "missing"], 1, "there is no such file"),
        (["mv", "missing", "x"], 1, "there is no such file"),
        (["mv", "missing", "x\0"], 2, "control characters"),
        (["ls", "--pattern", "("], 2, "pattern"),
        (["revisions", "missing"], 1, "there is no such file"),
        (["init", "1x"], 2, "bucket '1x'"),
        (["check", "--bucket", "nowhere"], 1, "there is no such bucket"),
    ],
)
def test_what_goes_wrong_is_one_clear_line(magazin, arguments, status, said):
    found, _, err = magazin(*arguments, data=b"x")
    assert (found, said in err) == (status, True), err
    assert "Traceback" not in err


def test_revisions(magazin):
    ids = [put(magazin, b"%d" % number, "a") for number in range(3)]
    out = magazin("revisions", "a", "--json")[1]
    assert [json.loads(line)["id"] for line in lines(out)] == ids
    assert [line.split()[2] for line in lines(magazin("revisions", "a")[1])] == ids
    for revision, expected in ((0, b"0"), (-1, b"2"), (1, b"1")):
        assert magazin("get", "a", "-", "--revision", str(revision)) == (0, expected, "")
    assert magazin("get", "a", "-", "--revision", "3")[0] == 1


def test_ls(magazin):
    for name in ("b/2", "a", "b/1", "a"):
        put(magazin, b"123", name)
    out = magazin("ls")[1]
    assert [line.split()[3] for line in lines(out)] == ["a", "b/1", "b/2"]
    assert lines(out)[0].split()[0] == "3"
    assert len(lines(magazin("ls", "--all")[1])) == 4
    assert [json.loads(line)["filename"] for line in lines(magazin("ls", "b/", "--json")[1])] == ["b/1", "b/2"]
    assert [line.split()[3] for line in lines(magazin("ls", "--pattern", "[2]$")[1])] == ["b/2"]
    assert len(lines(magazin("ls", "--limit", "2")[1])) == 2
    magazin("rm", "a")
    assert len(lines(magazin("ls", "--deleted")[1])) == 2
    assert magazin("ls", "--incomplete") == (0, b"", "")


def test_rm_and_mv(magazin, bucket):
    ids = [put(magazin, b"%d" % number, "a") for number in range(4)]
    assert magazin("rm", "a", "--revision", "0") == (0, b"", "")
    assert magazin("rm", ids[1], "--id", "--hard")[0] == 0
    assert magazin("mv", "a", "b")[0] == 0
    assert [record.id for record in bucket.revisions("b")] == ids[2:]
    assert magazin("mv", ids[2], "c", "--id")[0] == 0
    assert [record.id for record in bucket.revisions("c")] == ids[2:3]
    assert bucket.get(ids[0]).status == "Deleted"
    assert magazin("rm", "b", "--hard")[0] == 0
    assert magazin("rm", "a", "--hard")[0] == 0
    assert magazin("rm", "a", "--hard")[0] == 1
    assert [record.id for record in bucket.find()] == [ids[2]]


def test_init_makes_buckets(magazin):
    assert magazin("put", "-", "x", "--bucket", "photos", data=b"x")[0] == 1
    assert magazin("init", "photos", "--shards", "2") == (0, b"ready: photos\n", "")
    assert magazin("init", "photos")[0] == 0
    put(magazin, b"here", "x", "--bucket", "photos")
    assert magazin("get", "x", "-", "--bucket", "photos")[1] == b"here"
    assert magazin("get", "x", "-")[0] == 1


def damage(bucket, record, num, data):
    table = tables_of("fs").chunks
    key: Key = (record.id, record.attempt, 0, num)
    row = bucket._store.get(table, key)
    bucket._store.put(table, row | {"data": data(row["data"])})
    return row


def test_check(magazin, bucket):
    put(magazin, noise(3 * CHUNK), "a")
    record = bucket.get_by_name("a")
    status, out, err = magazin("check")
    assert (status, err) == (0, "")
    assert lines(out)[-1] == "nothing is wrong"
    stream = bucket.open_upload_stream("b")
    stream.write(noise(CHUNK * 20))
    damage(bucket, record, 1, lambda data: b"x" + data[1:])
    status, out, _ = magazin("check", "--older-than", "0s")
    assert status == 1
    assert f"damaged: file {record.id}, chunk 1: doesn't match its checksum" in lines(out)
    assert f"abandoned: file {stream.file_id}: the upload of 'b' was broken off" in lines(out)
    assert lines(out)[-1] == "wrong: 1 abandoned, 1 damaged"
    found = json.loads(magazin("check", "--older-than", "0s", "--repair", "--json", "--bucket", "fs")[1])
    assert (found["sound"], found["buckets"]["fs"]["repaired"]) == (False, {"abandoned": 1})
    assert {(one["kind"], one["repaired"]) for one in found["buckets"]["fs"]["findings"]} == {
        ("abandoned", True),
        ("damaged", False),
    }
    magazin("rm", "a", "--hard")
    found = json.loads(magazin("check", "--json")[1])
    assert found["sound"] is True
    assert found["buckets"]["fs"]["files"] == {"Incomplete": 0, "Complete": 0, "Deleted": 0}


def test_a_damaged_file_is_never_made(magazin, tmp_path, bucket):
    put(magazin, noise(3 * CHUNK), "a")
    row = damage(bucket, bucket.get_by_name("a"), 2, lambda data: b"x" + data[1:])
    status, _, err = magazin("get", "a")
    assert (status, "chunk 2" in err, (tmp_path / "a").exists()) == (1, True, False)
    status, out, err = magazin("get", "a", "-")
    assert (status, out, "chunk 2" in err) == (1, noise(3 * CHUNK)[: 2 * CHUNK], True)
    bucket._store.put(tables_of("fs").chunks, row)
    assert magazin("get", "a")[0] == 0
    assert (tmp_path / "a").read_bytes() == noise(3 * CHUNK)


class TestGet:
    """What is broken off goes on where it was."""

    @pytest.fixture
    def record(self, magazin, bucket):
        put(magazin, noise(5 * CHUNK + 10), "a")
        return bucket.get_by_name("a")

    @pytest.fixture
    def partial(self, tmp_path, record):
        return tmp_path / f".magazin-{record.id}.part"

    @pytest.mark.parametrize("there", [0, 1, CHUNK, 2 * CHUNK + 5, 5 * CHUNK + 10])
    def test_it_resumes(self, magazin, bucket, tmp_path, record, partial, there):
        partial.write_bytes(noise(5 * CHUNK + 10)[:there])
        shown = []
        assert transfers.get(bucket, record, tmp_path / "a", shown.append) == there // CHUNK * CHUNK
        assert (tmp_path / "a").read_bytes() == noise(5 * CHUNK + 10)
        assert shown == sorted(shown) and shown[-1] == record.length
        assert not partial.exists()

    def test_it_begins_again_when_what_was_there_is_not_right(self, magazin, bucket, tmp_path, record, partial):
        partial.write_bytes(bytes(3 * CHUNK))
        assert transfers.get(bucket, record, tmp_path / "a", lambda done: None) == 0
        assert (tmp_path / "a").read_bytes() == noise(5 * CHUNK + 10)

    def test_longer_rubbish_is_cut(self, magazin, bucket, tmp_path, record, partial):
        partial.write_bytes(noise(5 * CHUNK + 10) + b"more")
        transfers.get(bucket, record, tmp_path / "a", lambda done: None)
        assert (tmp_path / "a").read_bytes() == noise(5 * CHUNK + 10)

    def test_one_at_a_time(self, magazin, bucket, tmp_path, record, partial):
        with partial.open("wb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            status, _, err = magazin("get", "a")
        assert (status, "another command" in err, (tmp_path / "a").exists()) == (1, True, False)

    def test_an_interrupted_one_is_finished_by_the_next(self, magazin, bucket, tmp_path, record, partial):
        class Interrupt(Exception):
            pass

        def interrupt(done):
            if done > 3 * CHUNK:
                raise Interrupt

        with pytest.raises(Interrupt):
            transfers.get(bucket, record, tmp_path / "a", interrupt)
        assert 3 * CHUNK <= partial.stat().st_size < record.length
        assert not (tmp_path / "a").exists()
        assert transfers.get(bucket, record, tmp_path / "a", lambda done: None) >= 3 * CHUNK
        assert (tmp_path / "a").read_bytes() == noise(5 * CHUNK + 10)

    def test_a_target_is_replaced_when_all_is_there(self, magazin, tmp_path, record):
        (tmp_path / "a").write_bytes(b"old")
        assert magazin("get", "a")[0] == 0
        assert (tmp_path / "a").read_bytes() == noise(5 * CHUNK + 10)

    def test_where_it_can_not_be_put(self, magazin, record):
        status, _, err = magazin("get", "a", "nowhere/a")
        assert (status, "nowhere/.magazin-" in err) == (1, True)


@pytest.mark.parametrize("name", ["..", "a/..", "a/", "."])
def test_names_that_would_leave_the_folder(name):
    with pytest.raises(click.ClickException, match="say where"):
        transfers.local_name(name)


def test_a_put_that_fails_leaves_nothing(magazin, bucket):
    class Broken(io.RawIOBase):
        def read(self, size=-1):
            if self.tell_calls():
                raise OSError(5, "Input/output error")
            return noise(CHUNK)

        def tell_calls(self, calls=[]):  # noqa: B006
            calls.append(1)
            return len(calls) > 30

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


assert sys.platform == "linux"
