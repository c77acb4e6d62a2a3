"""Reading files over HTTP."""

import pytest

from storage.bucket_tables import tables_of
from tests.app_files.setting import DATA, put


def test_inclusive_http_end_against_exclusive_store_end(app):
    put(app, "a", b"0123456789")
    for header, body, content_range in (
        ("bytes=0-0", b"0", "bytes 0-0/10"),
        ("bytes=3-5", b"345", "bytes 3-5/10"),
        ("bytes=8-", b"89", "bytes 8-9/10"),
        ("bytes=-2", b"89", "bytes 8-9/10"),
        ("bytes=0-9", b"0123456789", "bytes 0-9/10"),
        ("bytes=5-99", b"56789", "bytes 5-9/10"),
    ):
        answer = app.get("/files/fs/a", headers={"Range": header}, status=206)
        assert (answer.body, answer.headers["Content-Range"]) == (body, content_range)
        assert answer.headers["Content-Length"] == str(len(body))
    answer = app.get("/files/fs/a", headers={"Range": "bytes=10-"}, status=416)
    assert answer.headers["Content-Range"] == "bytes */10"


def test_conditional_requests(app):
    record = put(app, "a")
    etag = f'"{record["sha256"]}"'
    for path in ("/files/fs/a", f"/files/fs/id/{record['id']}"):
        answer = app.get(path, headers={"If-None-Match": etag}, status=304)
        assert (answer.body, answer.headers["ETag"]) == (b"", etag)
        app.get(path, headers={"If-Modified-Since": "Tue, 14 Nov 2023 22:13:20 GMT"}, status=304)
        app.get(path, headers={"If-Match": '"x"'}, status=412)
        assert app.get(path, headers={"Range": "bytes=0-1", "If-Range": etag}, status=206).body == DATA[:2]
        assert app.get(path, headers={"Range": "bytes=0-1", "If-Range": '"x"'}, status=200).body == DATA
        app.head(path, headers={"If-None-Match": etag}, status=304)


def test_what_is_not_there(stock, app, bucket):
    for path in ("/files/fs/id/unknown", "/files/fs/id/unknown/record", "/files/fs/unknown"):
        app.get(path, status=404)
        app.head(path, status=404)
    assert app.get("/files/fs/id/a%20b", status=400).json["field"] == "file_id"
    stream = bucket.open_upload_stream("a")
    answer = app.get(f"/files/fs/id/{stream.file_id}", status=503)
    assert answer.headers["Retry-After"] == "5"
    assert app.get(f"/files/fs/id/{stream.file_id}/record").json["status"] == "Incomplete"
    app.get("/files/fs/a", status=404)


@pytest.mark.parametrize("name", ["nowhere", "FS", "fs.", "f" * 50, "%C3%A4", "fs_files"])
def test_buckets_are_never_made_by_http(stock, app, name):
    for method, path in (
        ("GET", ""),
        ("GET", "/a"),
        ("HEAD", "/a"),
        ("PUT", "/a"),
        ("POST", "/a"),
        ("PATCH", "/a"),
        ("DELETE", "/a"),
        ("GET", "/id/a"),
        ("GET", "/id/a/record"),
        ("PATCH", "/id/a"),
        ("DELETE", "/id/a"),
    ):
        answer = app.request(
            f"/files/{name}{path}", method=method, body=b"{}" if method[0] == "P" else None, status=404
        )
        assert method == "HEAD" or "bucket" in answer.json["detail"]
    assert list(stock.buckets.names()) == ["fs"]


def damage(stock, record, num):
    table = tables_of("fs").chunks
    attempt = stock.buckets.open("fs").get(record["id"]).attempt
    held = stock.store._data[table.name][(record["id"], attempt, 0)]
    held.set((num,), held.rows[(num,)] | {"data": b"z" * len(held.rows[(num,)]["data"])})


def test_damage_before_the_first_byte_is_a_problem_document(stock, app):
    record = put(app, "a")
    damage(stock, record, 0)
    answer = app.get("/files/fs/a", status=500)
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert "magazin files check" in answer.json["detail"]
    assert "ETag" not in answer.headers and "Content-Disposition" not in answer.headers
    app.get("/files/fs/a", headers={"Range": "bytes=5-6"}, status=500)
