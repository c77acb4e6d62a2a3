"""Putting files over HTTP."""

import base64
import hashlib
import json
import threading
from urllib.parse import quote

import pytest

from tests.app_files.setting import DATA, KEYS, put


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
