"""``magazin files``: damage is found, named, and never made into a file."""

import json

from storage.bucket_tables import tables_of
from storage.table import Key
from tests.cli_files.setting import CHUNK, lines, noise, put


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
