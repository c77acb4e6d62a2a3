"""Files over real sockets: bodies that break off, streams that are cut, clients that go away."""

import base64
import hashlib
import http.client
import json
import random
import socket
import threading
from contextlib import closing
from itertools import repeat

import pytest

from storage.blobs import checksum
from storage.bucket import Bucket
from storage.bucket_tables import tables_of
from storage.sqlite import SqliteStore
from tests.test_app_gunicorn import SECONDS, connect, counted, exchange, get, gunicorn

PATIENCE = 5000  # looks
CHUNK = 261_120


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


@pytest.fixture(scope="module")
def port(folder):
    with gunicorn(folder, app="tests.files_served:make()") as port:
        yield port


@pytest.fixture
def bucket(folder, port):
    store = SqliteStore(folder / "store.sqlite")
    yield Bucket(store)
    store.close()


@pytest.fixture
def host(port):
    return f"127.0.0.1:{port}"


def noise(size, seed=1):
    return random.Random(seed).randbytes(size)


def put(port, name, body, **headers):
    return get(port, f"/files/fs/{name}", "PUT", body, Host=f"127.0.0.1:{port}", **headers)


def seen(port, series, more_than):
    """Whether a count goes beyond this within the test's patience."""
    return any(counted(port, series) > more_than for _ in range(PATIENCE))


REFUSED = 'magazin_http_requests_total{method="PUT",route="/files/{bucket}/{filename:path}",status="400"}'


def test_up_and_down(port, bucket):
    data = noise(5_000_000)
    status, headers, body = put(port, "a", data)
    assert status == 201 and json.loads(body)["sha256"] == hashlib.sha256(data).hexdigest()
    assert get(port, headers["location"])[2] == data
    assert get(port, "/files/fs/a", Range="bytes=4999990-")[2] == data[-10:]


def test_a_chunked_body_of_unknown_length(port, bucket):
    pieces = [noise(size, size) for size in (1, 70_000, 3, CHUNK, 2 * CHUNK)]
    data = b"".join(pieces)
    said = f"sha-512=:{base64.b64encode(hashlib.sha512(data).digest()).decode()}:"
    status, _, body = put(port, "chunked", iter(pieces), Content_Digest=said)
    assert (status, json.loads(body)["length"]) == (201, len(data))
    assert get(port, "/files/fs/chunked")[2] == data
    assert put(port, "chunked2", iter(pieces[1:]), Content_Digest=said)[0] == 400
    assert bucket.revisions("chunked2") == []


@pytest.mark.parametrize(
    "head",
    [
        f"Content-Length: {3 * CHUNK}\r\n",
        "Transfer-Encoding: chunked\r\n",
        f"Content-Length: {3 * CHUNK}\r\nIf-None-Match: *\r\n",
    ],
)
def test_a_client_that_vanishes_commits_nothing(port, host, bucket, head):
    before = counted(port, REFUSED)
    chunked = "chunked" in head
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as raw:
        raw.sendall(f"PUT /files/fs/cut HTTP/1.1\r\nHost: {host}\r\n{head}\r\n".encode())
        raw.sendall(b"%x\r\n" % (2 * CHUNK) * chunked + noise(2 * CHUNK) + b"\r\n" * chunked)
        assert any(list(bucket.find(status="Incomplete")) for _ in range(PATIENCE))
    assert seen(port, REFUSED, before)
    assert bucket.revisions("cut") == [] == list(bucket.find(status="Incomplete"))
    assert bucket.check(older_than=0).found == {}


@pytest.mark.parametrize("body", [b"5\r\nhello\r\nzz\r\n", b"5\r\nhelloX\r\n0\r\n\r\n", b"-1\r\n\r\n"])
def test_a_malformed_body_commits_nothing(port, host, bucket, body):
    head = f"PUT /files/fs/bad HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert b" 400 " in exchange(port, head.encode() + body)[:20]
    assert bucket.revisions("bad") == [] == list(bucket.find(status="Incomplete"))


REFUSALS = [({"Host": "evil.example"}, 403), ({"If-Match": "*"}, 412), ({"Content-Digest": "x"}, 400)]


@pytest.mark.parametrize(
    "rest", [b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", b'Content-Length: 500\r\n\r\n{"metadata": 1}']
)
def test_a_change_that_breaks_off_changes_nothing(port, host, bucket, rest):
    put(port, "changed", b"x")
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as raw:
        raw.sendall(f"PATCH /files/fs/changed HTTP/1.1\r\nHost: {host}\r\n".encode() + rest)
        raw.shutdown(socket.SHUT_WR)
        answer = raw.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 400"), answer[:100]
    assert b"broke off" in answer or b"ended after" in answer
    assert bucket.get_by_name("changed").metadata is None


def test_a_small_refused_upload_leaves_the_connection_usable(port, host):
    with closing(connect(port)) as connection:
        for headers, status in [*REFUSALS, ({}, 201)]:
            connection.request("PUT", "/files/fs/after", noise(50_000), {"Host": host} | headers)
            answer = connection.getresponse()
            assert answer.status == status
            answer.read()


@pytest.mark.parametrize(("headers", "status"), REFUSALS)
def test_the_refusal_of_a_large_upload_arrives(port, host, headers, status):
    with closing(connect(port)) as connection:
        connection.request("PUT", "/files/fs/never", noise(3_000_000), {"Host": host} | headers)
        assert connection.getresponse().status == status


def test_a_body_without_a_length_is_refused(port, host, bucket):
    answer = exchange(port, f"PUT /files/fs/none HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 411 ")
    assert bucket.revisions("none") == []


def test_a_client_that_waits_for_100(port, host):
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as raw:
        head = f"PUT /files/fs/expect HTTP/1.1\r\nHost: {host}\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"
        raw.sendall(head.encode())
        assert raw.recv(100).startswith(b"HTTP/1.1 100 ")
        raw.sendall(b"hello")
        assert raw.recv(12) == b"HTTP/1.1 201"


@pytest.mark.parametrize("how", ["chunk", "whole"])
def test_later_damage_cuts_the_connection(port, bucket, how):
    data = noise(4 * CHUNK)
    put(port, how, data)
    record = bucket.get_by_name(how)
    table = tables_of("fs").chunks
    row = bucket._store.get(table, (record.id, record.attempt, 0, 2))
    forged = bytes(CHUNK)
    crc = row["crc"] if how == "chunk" else checksum(record.id, record.attempt, 2, forged)
    bucket._store.put(table, row | {"data": forged, "crc": crc})
    with closing(connect(port)) as connection:
        connection.request("GET", f"/files/fs/{how}")
        answer = connection.getresponse()
        assert answer.status == 200
        with pytest.raises(http.client.IncompleteRead) as caught:
            answer.read()
    assert len(caught.value.partial) == (2 if how == "chunk" else 3) * CHUNK
    assert get(port, f"/files/fs/{how}", Range="bytes=0-9")[2] == data[:10]
    bucket.delete_by_name(how, hard=True)


def test_a_reader_that_goes_away_stops_the_reading(port):
    put(port, "large", noise(20_000_000))
    series = 'magazin_http_streams_total{end="gone"}'
    before = counted(port, series)
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as raw:
        raw.sendall(b"GET /files/fs/large HTTP/1.1\r\nHost: x\r\n\r\n")
        assert raw.recv(12) == b"HTTP/1.1 200"
    assert seen(port, series, before)


def test_slow_uploads_side_by_side(port, host, bucket):
    """Three under one name, a byte now and then; all three are revisions, and whole."""
    raws = [socket.create_connection(("127.0.0.1", port), timeout=SECONDS) for _ in range(3)]
    for raw in raws:
        head = f"PUT /files/fs/same HTTP/1.1\r\nHost: {host}\r\nContent-Length: 300\r\nConnection: close\r\n\r\n"
        raw.sendall(head.encode())
    for _ in range(3):
        for number, raw in enumerate(raws):
            raw.sendall(b"%d" % number * 100)
    for raw in raws:
        assert raw.recv(12) == b"HTTP/1.1 201"
        raw.close()
    found = {get(port, f"/files/fs/same?revision={revision}")[2] for revision in range(3)}
    assert found == {b"%d" % number * 300 for number in range(3)}


def test_escaped_slashes_are_refused(port, bucket):
    assert put(port, "a%2Fb", b"x")[0] == 400
    assert list(bucket.find(prefix="a/")) == []


def test_readers_beside_an_upload_of_the_same_name(port):
    put(port, "busy", b"0" * 1000)
    stop = threading.Event()
    wrong = []

    def read():
        while not stop.is_set():
            status, _, body = get(port, "/files/fs/busy")
            if status != 200 or body not in map(bytes.__mul__, (b"0", b"1", b"2", b"3"), repeat(1000)):
                wrong.append((status, body[:20]))

    thread = threading.Thread(target=read)
    thread.start()
    for number in range(1, 4):
        put(port, "busy", b"%d" % number * 1000)
    stop.set()
    thread.join()
    assert wrong == []
