"""``magazin files``: what each command does, prints and ends with."""

import hashlib
import json

import pytest

from tests.cli_files.setting import lines, noise, put


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
