"""Files of buckets over HTTP."""

import base64
import hashlib
import json
import threading
from urllib.parse import quote

import pytest

from app.options import Options
from storage.bucket_tables import tables_of
from tests.app_stock import Stock

KEYS = {
    "id",
    "filename",
    "length",
    "chunkSizeBytes",
    "sha256",
    "status",
    "startedAt",
    "finishedAt",
    "deletedAt",
    "metadata",
}
DATA = bytes(range(256)) * 40


@pytest.fixture
def stock(tmp_path):
    return Stock(tmp_path)


@pytest.fixture
def app(stock):
    return stock.app()


@pytest.fixture
def bucket(stock):
    return stock.buckets.open("fs")


def put(app, name, data=DATA, **headers):
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return app.put(f"/files/fs/{quote(name)}", data, headers=fields, status=201).json


def names(answer):
    return [one["filename"] for one in answer.json]


# putting


@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_a_file_is_put_and_read(app, method):
    answer = app.request("/files/fs/a.bin", method=method, body=DATA, status=201)
    record = answer.json
    assert record.keys() == KEYS
    assert (record["filename"], record["length"], record["status"]) == ("a.bin", len(DATA), "Complete")
    assert (record["sha256"], record["chunkSizeBytes"]) == (hashlib.sha256(DATA).hexdigest(), 261120)
    assert record["startedAt"] < record["finishedAt"] and record["startedAt"].startswith("2023-11-14T22:13:20.")
    assert record["finishedAt"].endswith("Z") and (record["deletedAt"], record["metadata"]) == (None, None)
    assert answer.headers["Location"] == f"/files/fs/id/{record['id']}"
    for path in (answer.headers["Location"], "/files/fs/a.bin", "/files/fs/a.bin?revision=0"):
        read = app.get(path, status=200)
        assert read.body == DATA
        assert read.headers["ETag"] == f'"{record["sha256"]}"'
        assert read.headers["Content-Length"] == str(len(DATA))
        assert read.headers["Last-Modified"] == "Tue, 14 Nov 2023 22:13:20 GMT"
        assert read.headers["Repr-Digest"] == f"sha-256=:{base64.b64encode(hashlib.sha256(DATA).digest()).decode()}:"
        head = app.head(path, status=200)
        assert (head.body, head.headers["Content-Length"]) == (b"", str(len(DATA)))
        assert head.headers["ETag"] == read.headers["ETag"]
    assert app.get("/files/fs/a.bin").headers["Content-Location"] == answer.headers["Location"]


def test_caches_ask_again_for_names_and_keep_ids(app):
    record = put(app, "a")
    assert app.get("/files/fs/a").headers["Cache-Control"] == "no-cache"
    assert app.get(f"/files/fs/id/{record['id']}").headers["Cache-Control"] == "public, max-age=3600"
    assert app.get("/files/fs/b", status=404).headers["Cache-Control"] == "no-store"


def test_an_empty_file(app):
    assert put(app, "empty", b"")["length"] == 0
    answer = app.get("/files/fs/empty", status=200)
    assert (answer.body, answer.headers["Content-Length"]) == (b"", "0")
    app.get("/files/fs/empty", headers={"Range": "bytes=0-"}, status=416)


def test_a_body_without_a_length_is_refused(app):
    answer = app.request("/files/fs/a", method="PUT", environ={"CONTENT_LENGTH": ""}, status=411)
    assert "Content-Length" in answer.json["detail"]


def test_revisions(app):
    for number in range(3):
        put(app, "a", b"%d" % number)
    for revision, body in ((0, b"0"), (1, b"1"), (-1, b"2"), (-3, b"0"), (2, b"2")):
        assert app.get(f"/files/fs/a?revision={revision}").body == body
    assert app.get("/files/fs/a").body == b"2"
    for revision in (3, -4):
        assert "no revision" in app.get(f"/files/fs/a?revision={revision}", status=404).json["detail"]
    assert "no such file" in app.get("/files/fs/b", status=404).json["detail"]
    for wrong in ("x", "", "1.0", "9999999999", "--1", "0&revision=1"):
        assert app.get(f"/files/fs/a?revision={wrong}", status=400).json["field"] == "revision"


def test_if_none_match_refuses_a_second_revision(app, bucket):
    put(app, "a", b"first", If_None_Match="*")
    answer = app.put("/files/fs/a", b"second", headers={"If-None-Match": "*"}, status=412)
    assert answer.json["field"] == "If-None-Match"
    assert [one.length for one in bucket.revisions("a")] == [5]
    app.delete("/files/fs/a", status=204)
    put(app, "a", b"again", If_None_Match="*")


def test_of_many_first_uploads_at_once_one_wins(stock, app):
    ready, statuses = threading.Barrier(4), []

    def upload(number):
        ready.wait(30)
        answer = stock.app().put("/files/fs/a", b"%d" % number, headers={"If-None-Match": "*"}, status="*")
        statuses.append(answer.status_int)

    threads = [threading.Thread(target=upload, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [201, 412, 412, 412]
    assert len(stock.buckets.open("fs").revisions("a")) == 1


def test_preconditions_of_changes(app):
    first = put(app, "a", b"first")
    etag, other = f'"{first["sha256"]}"', f'"{"0" * 64}"'
    put(app, "a", b"second", If_Match=etag)
    app.put("/files/fs/a", b"third", headers={"If-Match": etag}, status=412)
    app.put("/files/fs/new", b"x", headers={"If-Match": "*"}, status=412)
    app.put("/files/fs/a", b"x", headers={"If-None-Match": f'"{hashlib.sha256(b"second").hexdigest()}"'}, status=412)
    put(app, "a", b"third", If_None_Match=other)
    put(app, "a", b"third", If_Modified_Since="Mon, 14 Nov 2033 22:13:20 GMT")
    app.patch_json("/files/fs/a", {"metadata": 1}, headers={"If-Match": etag}, status=412)
    app.delete("/files/fs/a", headers={"If-Match": etag}, status=412)
    app.delete(f"/files/fs/id/{first['id']}", headers={"If-Match": other}, status=412)
    app.delete(f"/files/fs/id/{first['id']}", headers={"If-Match": etag}, status=204)


def digest(algorithm, data=DATA):
    return base64.b64encode(hashlib.new(algorithm, data).digest()).decode()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("Content-Digest", f"sha-256=:{digest('sha256')}:"),
        ("Content-Digest", f"sha-512=:{digest('sha512')}:, unixsum=:AAAA:"),
        ("Content-Digest", f"md5=:{digest('md5')}:;q=1,sha=:{digest('sha1')}:"),
        ("Repr-Digest", f"sha-256=:{digest('sha256')}:"),
        ("Digest", f"SHA-256={digest('sha256')},MD5={digest('md5')}"),
        ("Digest", f"sha={digest('sha1')}"),
    ],
)
def test_a_digest_is_verified(app, bucket, field, value):
    app.put("/files/fs/a", DATA, headers={field: value}, status=201)
    for wrong in (DATA[:-1], DATA + b"x", b"", b"y" + DATA[1:]):
        answer = app.put("/files/fs/b", wrong, headers={field: value}, status=400)
        assert answer.json["field"] == field
    assert list(bucket.find(prefix="b")) == [] == list(bucket.find(status="Incomplete"))


def test_one_wrong_digest_of_several_is_enough(app, bucket):
    right, wrong = f"sha-256=:{digest('sha256')}:", f"sha-512=:{digest('sha512', b'x')}:"
    app.put("/files/fs/a", DATA, headers={"Content-Digest": f"{right}, {wrong}"}, status=400)
    app.put("/files/fs/a", DATA, headers={"Content-Digest": right, "Digest": f"MD5={digest('md5', b'x')}"}, status=400)
    assert list(bucket.find()) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("Content-Digest", "sha-256=abc"),
        ("Content-Digest", "sha-256=:a:"),
        ("Content-Digest", ""),
        ("Content-Digest", "crc32c=:AAAA:"),
        ("Content-Digest", f"SHA-256=:{digest('sha256')}:"),
        ("Digest", "sha-256=:AAAA:"),
        ("Digest", "adler32=03da0195"),
        ("Repr-Digest", "sha-256=:" + "A" * 5000 + ":"),
        ("Content-Digest", ", ".join([f"sha-256=:{digest('sha256')}:"] * 50)),
    ],
)
def test_a_digest_that_can_not_be_verified_is_refused(app, bucket, field, value):
    assert app.put("/files/fs/a", DATA, headers={field: value}, status=400).json["field"] == field
    assert list(bucket.find()) == []


@pytest.mark.parametrize(
    ("field", "value", "status"),
    [
        ("Content-Range", "bytes 0-9/100", 400),
        ("Content-Encoding", "gzip", 415),
        ("Content-Type", "multipart/form-data; boundary=x", 415),
        ("Transfer-Encoding", "gzip, chunked", 501),
    ],
)
def test_bodies_that_are_no_files(app, bucket, field, value, status):
    assert app.put("/files/fs/a", DATA, headers={field: value}, status=status).json["field"] == field
    assert list(bucket.find()) == []


def test_metadata_at_once(app):
    metadata = {"title": "Ä, B", "n": [1, None]}
    answer = app.put(f"/files/fs/a?metadata={quote(json.dumps(metadata))}", DATA, status=201)
    assert answer.json["metadata"] == metadata
    for wrong in ("x", "NaN", "[", "{}&metadata={}", quote("[" * 2000), quote(json.dumps({"a": "\ud800"}))):
        assert app.put(f"/files/fs/b?metadata={wrong}", DATA, status=400).json["field"] == "metadata", wrong
    twice = app.put("/files/fs/b?metadata={}&metadata={}", DATA, status=400)
    assert twice.json["detail"] == "metadata: there more than once"


@pytest.mark.parametrize(
    ("name", "sent", "kept", "given"),
    [
        ("a.txt", None, None, "text/plain"),
        ("a.txt", "text/plain; charset=utf-8", None, "text/plain"),
        ("a.txt", "application/x-www-form-urlencoded", None, "text/plain"),
        ("a.txt", "application/octet-stream", None, "text/plain"),
        ("photo", "image/JPEG", {"contentType": "image/jpeg"}, "image/jpeg"),
        ("a/b.png", None, None, "image/png"),
        ("x.tar.gz", None, None, "application/octet-stream"),
        ("unknown", None, None, "application/octet-stream"),
        ("page.html", None, None, "text/html"),
        ("evil", 'text/html"\x7f', {"contentType": "application/octet-stream"}, "application/octet-stream"),
        ("#a?b.pdf", None, None, "application/pdf"),
    ],
)
def test_types(app, name, sent, kept, given):
    headers = {} if sent is None else {"Content-Type": sent}
    answer = app.put(f"/files/fs/{quote(name)}", DATA, headers=headers, status=201)
    if kept is not None and kept["contentType"] == "application/octet-stream":
        kept = answer.json["metadata"]
    assert answer.json["metadata"] == kept
    read = app.get(answer.headers["Location"])
    assert read.headers["Content-Type"] == given
    shown = given in ("text/plain", "image/jpeg", "image/png", "application/pdf")
    assert read.headers["Content-Disposition"].startswith("inline" if shown else "attachment")
    assert read.headers["X-Content-Type-Options"] == "nosniff"
    assert read.headers["Content-Security-Policy"] == "sandbox"


def test_a_unicode_filename_broke_content_disposition(app):
    name = "Übung/日本語 «x».pdf"
    record = put(app, name)
    assert record["filename"] == name
    read = app.get(f"/files/fs/{quote(name)}")
    assert read.headers["Content-Disposition"] == (
        "inline; filename=\"___ _x_.pdf\"; filename*=UTF-8''%E6%97%A5%E6%9C%AC%E8%AA%9E%20%C2%ABx%C2%BB.pdf"
    )


@pytest.mark.parametrize("name", ["a/b/c", "a//b", "a/", "id", "id/x/y", "logs", "%", "a+b", "a;b=c", "~", "a b"])
def test_names(app, name):
    record = put(app, name, name.encode())
    assert record["filename"] == name
    assert app.get(f"/files/fs/{quote(name)}").body == name.encode()


@pytest.mark.parametrize("name", ["a/../b", "a/./b", "%00", "a%0Ab", "%ff", "x" * 1025, ""])
def test_what_can_not_be_a_name(app, bucket, name):
    assert app.put(f"/files/fs/{name}", DATA, status="*").status_int == 400
    assert list(bucket.find()) == []


# reading


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


# lists


def test_a_list(app):
    for name in ("b/1", "a", "b/2", "ä", "a"):
        put(app, name)
    answer = app.get("/files/fs")
    assert names(answer) == ["a", "a", "b/1", "b/2", "ä"]
    assert answer.json[0]["finishedAt"] > answer.json[1]["finishedAt"]
    assert all(one.keys() == KEYS for one in answer.json)
    assert "Link" not in answer.headers
    assert names(app.get("/files/fs?prefix=b/")) == ["b/1", "b/2"]
    assert names(app.get(f"/files/fs?prefix={quote('ä')}")) == ["ä"]
    assert names(app.get("/files/fs?filename=a")) == ["a", "a"]
    assert names(app.get(f"/files/fs?pattern={quote('^b/[2-9]$')}")) == ["b/2"]
    assert names(app.get("/files/fs?prefix=nothing")) == []
    app.delete("/files/fs/a?revision=0", status=204)
    assert names(app.get("/files/fs?filename=a")) == ["a"]


@pytest.mark.parametrize("query", ["", "prefix=a&", "pattern=%5Ea.*%5B0-9%5D&", "filename=a/%C3%A9%201&"])
def test_pages(app, query):
    for number in range(7):
        put(app, "a/é 1" if query.startswith("filename") else f"a/é {number}")
    put(app, "b")
    seen, path = [], f"/files/fs?{query}limit=3"
    while path:
        answer = app.get(path)
        assert len(answer.json) <= 3
        seen += [one["id"] for one in answer.json]
        link = answer.headers.get("Link")
        assert link is None or (link.startswith("</files/fs?") and link.endswith('>; rel="next"'))
        path = link and link[1:].partition(">")[0]
    assert len(seen) == len(set(seen)) == (7 if query else 8)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=x", "limit"),
        ("after=!", "after"),
        ("after=abcd", "after"),
        ("after=" + base64.urlsafe_b64encode(b'["a", "b", "c"]').decode(), "after"),
        ("after=" + base64.urlsafe_b64encode(b'["a", 1e300, "c"]').decode(), "after"),
        ("after=" + base64.urlsafe_b64encode(b'["a", 99999999999999999999, "c"]').decode(), "after"),
        ("after=" + base64.urlsafe_b64encode(b"[" * 3000).decode(), "after"),
        ("pattern=(", "pattern"),
        ("pattern=(%3F%3Da)", "pattern"),
        ("pattern=" + "x" * 1001, "pattern"),
        ("prefix=a&prefix=b", "prefix"),
    ],
)
def test_bad_lists(app, query, field):
    assert app.get(f"/files/fs?{query}", status=400).json["field"] == field


def test_a_record(app):
    record = put(app, "a")
    assert app.get(f"/files/fs/id/{record['id']}/record").json == record
    app.delete("/files/fs/a", status=204)
    deleted = app.get(f"/files/fs/id/{record['id']}/record").json
    assert deleted == record | {"status": "Deleted", "deletedAt": deleted["deletedAt"]}
    assert deleted["deletedAt"] > record["finishedAt"]


# changing


def test_rename_by_id(app):
    one, two = put(app, "a", b"1"), put(app, "a", b"2")
    answer = app.patch_json(f"/files/fs/id/{one['id']}", {"filename": "b/ü"})
    assert answer.json == one | {"filename": "b/ü"}
    assert (app.get("/files/fs/b/%C3%BC").body, app.get("/files/fs/a?revision=0").body) == (b"1", b"2")
    assert names(app.get("/files/fs?filename=a")) == ["a"]
    assert two["filename"] == "a"


def test_rename_by_name_takes_all_revisions(app):
    for number in range(3):
        put(app, "a", b"%d" % number)
    assert app.patch_json("/files/fs/a", {"filename": "b"}).json["filename"] == "b"
    app.get("/files/fs/a", status=404)
    assert [app.get(f"/files/fs/b?revision={number}").body for number in range(3)] == [b"0", b"1", b"2"]
    app.patch_json("/files/fs/b?revision=1", {"filename": "c"})
    assert [app.get(f"/files/fs/{path}").body for path in ("b?revision=0", "b?revision=1", "c")] == [b"0", b"2", b"1"]


def test_metadata(app):
    one, two = put(app, "a"), put(app, "a")
    assert app.patch_json("/files/fs/a", {"metadata": {"x": [1]}}).json == two | {"metadata": {"x": [1]}}
    assert app.patch_json(f"/files/fs/id/{one['id']}", {"metadata": "y"}).json["metadata"] == "y"
    both = app.patch_json("/files/fs/a", {"filename": "b", "metadata": None}).json
    assert (both["id"], both["filename"], both["metadata"]) == (two["id"], "b", None)


@pytest.mark.parametrize(
    "change",
    [
        b"",
        b"x",
        b"[]",
        b"{}",
        b'{"name": "x"}',
        b'{"filename": 1}',
        b'{"filename": ""}',
        b'{"filename": null}',
        b'{"filename": "a\\u0000"}',
        b'{"filename": "\\ud800"}',
        b'{"metadata": NaN}',
        b"[" * 5000,
        b'{"metadata": "' + b"x" * 70_000 + b'"}',
        b'{"metadata": ' + b"[" * 101 + b"]" * 101 + b"}",
        b'{"filename": "b", "metadata": "' + b"x" * 70_000 + b'"}',
        b'{"filename": "", "metadata": 1}',
    ],
)
def test_bad_changes(app, change):
    record = put(app, "a")
    for path in ("/files/fs/a", f"/files/fs/id/{record['id']}"):
        app.patch(path, change, headers={"Content-Type": "application/json"}, status=400)
    assert app.get(f"/files/fs/id/{record['id']}/record").json == record


def test_changes_of_other_types_or_too_long(app):
    put(app, "a")
    app.patch("/files/fs/a", b"{}", headers={"Content-Type": "text/plain"}, status=415)
    app.patch("/files/fs/a", b" " * 200_000, headers={"Content-Type": "application/json"}, status=413)
    app.patch_json("/files/fs/unknown", {"metadata": 1}, status=404)


def test_delete(app, bucket):
    ids = [put(app, "a", b"%d" % number)["id"] for number in range(4)]
    app.delete(f"/files/fs/id/{ids[0]}", status=204)
    app.get(f"/files/fs/id/{ids[0]}", status=404)
    assert app.get("/files/fs/a?revision=0").body == b"1"
    app.delete("/files/fs/a?revision=-1", status=204)
    assert app.get("/files/fs/a").body == b"2"
    app.delete("/files/fs/a", status=204)
    app.get("/files/fs/a", status=404)
    app.delete("/files/fs/a", status=404)
    assert {record.id for record in bucket.find(status="Deleted")} == set(ids)
    app.delete(f"/files/fs/id/{ids[0]}", status=204)
    app.delete(f"/files/fs/id/{ids[0]}?hard=true", status=204)
    app.delete(f"/files/fs/id/{ids[0]}?hard=true", status=404)
    app.delete("/files/fs/a?hard=true", status=204)
    assert bucket.check().files == {"Incomplete": 0, "Complete": 0, "Deleted": 0}
    for wrong in ("1", "yes", "", "true&hard=true"):
        assert app.delete(f"/files/fs/a?hard={wrong}", status=400).json["field"] == "hard"


# who may


def test_writes_need_a_token_and_delivery_none(stock):
    app, token = stock.app(Options()), stock.tokens.issue("test")
    allowed = {"Authorization": f"Bearer {token}"}
    app.put("/files/fs/a", DATA, status=403)
    wrong = token[:-1] + ("1" if token.endswith("0") else "0")
    app.put("/files/fs/a", DATA, headers={"Authorization": f"Bearer {wrong}"}, status="4*")
    record = app.put("/files/fs/a", DATA, headers=allowed, status=201).json
    by_id = f"/files/fs/id/{record['id']}"
    for path in ("/files/fs/a", by_id):
        assert app.get(path).body == DATA
        app.delete(path, status=403)
        app.patch_json(path, {"metadata": 1}, status=403)
    app.post("/files/fs/a", DATA, status=403)
    for path in ("/files/fs", f"{by_id}/record"):
        app.get(path, status=403)
        app.get(path, headers=allowed, status=200)
    assert stock.app(Options(open_lists=True)).get("/files/fs").json == [record]
    app.delete(by_id, headers=allowed, status=204)


def test_other_origins_may_read_and_nothing_else(app):
    record = put(app, "a/b")
    for path in ("/files/fs/a/b", f"/files/fs/id/{record['id']}", "/files/fs/unknown"):
        answer = app.get(path, status="*")
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        answer = app.options(path, status="*")
        assert answer.headers["Access-Control-Allow-Methods"] == "GET, HEAD, OPTIONS"
    for answer in (
        app.get("/files/fs"),
        app.get(f"/files/fs/id/{record['id']}/record"),
        app.put("/files/fs/x", b""),
        app.delete("/files/fs/x"),
    ):
        assert "Access-Control-Allow-Origin" not in answer.headers
