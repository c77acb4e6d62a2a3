"""What only real sockets show: cut connections, paths and headers as they are on the wire, several processes."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from contextlib import closing, contextmanager

import pytest

from tests.app_served import DATA, IDS, LARGE, PART

SECONDS = 30  # after which a test has failed


@contextmanager
def gunicorn(folder, workers=1, app="tests.app_served:make()", **environ):
    """The port of a gunicorn with four threads in each worker."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        command = [sys.executable, "-m", "gunicorn", app, "--no-control-socket"]
        command += ["--worker-class", "gthread", "--threads", "4", "--workers", str(workers)]
        command += ["--bind", f"fd://{listener.fileno()}", "--limit-request-line", "8190", "--log-level", "warning"]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                command,
                env={**os.environ, "SERVED_FOLDER": str(folder), **environ},
                pass_fds=[listener.fileno()],
                stderr=log,
            )
        try:
            port = listener.getsockname()[1]
            assert get(port, "/health/live")[0] == 200
            yield port
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(SECONDS)


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    with gunicorn(tmp_path_factory.mktemp("served")) as port:
        yield port


def connect(port):
    return http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)


def get(port, path, method="GET", body=None, **headers):
    with closing(connect(port)) as connection:
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()


def exchange(port, request):
    """All bytes that come back for these bytes, until the server closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as raw:
        raw.sendall(request)
        raw.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: raw.recv(65536), b""))


def counted(port, series):
    text = get(port, "/metrics")[2].decode()
    return sum(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(series))


def test_whole_originals_and_ranges_on_one_connection(port):
    with closing(connect(port)) as connection:
        for headers, status, body in [
            ({}, 200, DATA),
            ({"Range": f"bytes={PART - 1}-{PART}"}, 206, DATA[PART - 1 : PART + 1]),
            ({"Range": "bytes=-1"}, 206, DATA[-1:]),
            ({"If-Modified-Since": "Tue, 14 Nov 2023 22:13:20 GMT"}, 304, b""),
            ({}, 200, DATA),
        ]:
            connection.request("GET", f"/binary/{IDS['sound']}", headers=headers)
            answer = connection.getresponse()
            assert (answer.status, answer.read()) == (status, body)
        connection.request("HEAD", f"/binary/{IDS['sound']}")
        answer = connection.getresponse()
        assert (answer.read(), answer.getheader("Content-Length")) == (b"", str(len(DATA)))
        connection.request("GET", f"/binary/{IDS['sound']}", headers={"Range": "bytes=999999999-"})
        answer = connection.getresponse()
        assert (answer.status, answer.getheader("Content-Range")) == (416, f"bytes */{len(DATA)}")
        answer.read()
        connection.request("GET", "/health/live")
        assert connection.getresponse().status == 200


def test_a_damaged_first_part_is_a_problem_document(port):
    status, headers, body = get(port, f"/binary/{IDS['damaged']}")
    assert (status, headers["content-type"]) == (500, "application/problem+json")
    assert json.loads(body)["status"] == 500


@pytest.mark.parametrize("path", [f"/binary/{IDS['cut']}", f"/unsized/binary/{IDS['cut']}"])
@pytest.mark.parametrize("headers", [{}, {"Range": "bytes=10-"}])
def test_later_damage_cuts_the_connection(port, path, headers):
    """With a length, and in chunks where something takes it away: nobody can take the beginning for the whole."""
    before = counted(port, 'magazin_http_streams_total{end="cut"}')
    with closing(connect(port)) as connection:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        assert answer.status == (206 if headers else 200)
        assert (answer.getheader("Transfer-Encoding") == "chunked") == path.startswith("/unsized")
        with pytest.raises(http.client.IncompleteRead) as caught:
            answer.read()
    assert DATA[10 if headers else 0 :].startswith(caught.value.partial)
    assert len(caught.value.partial) <= 3 * PART
    assert counted(port, 'magazin_http_streams_total{end="cut"}') == before + 1


def test_later_damage_is_seen_in_http_1_0_too(port):
    answer = exchange(port, f"GET /binary/{IDS['cut']} HTTP/1.0\r\n\r\n".encode())
    head, _, body = answer.partition(b"\r\n\r\n")
    assert f"content-length: {len(DATA)}".encode() in head.lower()
    assert body == DATA[: 3 * PART]
    assert b"\r\n\r\n" not in body  # no second answer behind it


def test_a_range_before_the_damage_is_sound(port):
    status, _, body = get(port, f"/binary/{IDS['cut']}", Range=f"bytes=0-{3 * PART - 1}")
    assert (status, body) == (206, DATA[: 3 * PART])


def test_a_client_that_goes_away_stops_the_reading(port):
    handed, gone = int(get(port, "/handed")[2]), counted(port, 'magazin_http_streams_total{end="gone"}')
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as raw:
        raw.sendall(f"GET /binary/{IDS['large']} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert raw.recv(12) == b"HTTP/1.1 200"
    for _ in range(5000):
        if counted(port, 'magazin_http_streams_total{end="gone"}') > gone:
            break
    assert counted(port, 'magazin_http_streams_total{end="gone"}') == gone + 1
    assert int(get(port, "/handed")[2]) - handed < len(LARGE) // PART // 2


def test_a_slow_client_keeps_nobody_else_waiting_and_gets_everything(port):
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as raw:
        raw.sendall(f"GET /binary/{IDS['large']} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        received = len(raw.recv(1000))
        for _ in range(20):
            assert get(port, "/health/live")[0] == 200
            received += len(raw.recv(1000))
        received += sum(len(data) for data in iter(lambda: raw.recv(1 << 20), b""))
    assert received > len(LARGE)


@pytest.mark.parametrize(
    "target",
    [
        "/binary/..%2f..%2fetc/passwd",
        "/binary/../../etc/passwd",
        "/binary/%2e%2e/%2e%2e/etc/passwd",
        "/binary/%00",
        "/binary/%ff",
        "/binary/%2F",
        "/binary/%252e",
        "/binary/%c0%ae%c0%ae",
        "/binary/%u002e",
        "/binary/" + "x" * 5000,
        "/" + "a/" * 2000,
        "//etc/passwd",
        "/binary/\\..\\x",
        "/binary/%0d%0aX-Evil:1",
        f"/binary/{IDS['sound']}%00.jpg",
        f"/binary/{IDS['sound']}%2finfo.json",
        f"/binaries/..;/binary/{IDS['sound']}",
        f"/binary/x/../{IDS['sound']}",
        "*",
        "http://127.0.0.1/binary/%2e%2e/x",
        "/binary/\xff",
    ],
)
def test_hostile_targets(port, target):
    answer = exchange(port, b"GET " + target.encode("latin-1") + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert int(answer.split(b" ")[1]) in (400, 404, 414), answer[:200]
    assert b"Traceback" not in answer and b"X-Evil" not in answer.partition(b"\r\n\r\n")[0]
    assert DATA[:PART] not in answer


LINES = b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        b"Content-Length: 4\r\nContent-Length: 5\r\n",
        b"Content-Length: 4, 5\r\n",
        b"Content-Length: +4\r\n",
        b"Content-Length: 0x4\r\n",
        b"Transfer-Encoding: xchunked\r\n",
        b"Transfer-Encoding: chunked, identity\r\n",
        b"Transfer-Encoding : chunked\r\n",
        b"X: a\r\n folded\r\n",
        b"X: a\nTransfer-Encoding: chunked\r\n",
        b"X: a\rb\r\n",
        b"X: a\0b\r\n",
        b" Content-Length: 4\r\n",
    ],
)
def test_smuggling_gets_400_and_the_end(port, head):
    start = b"PUT /binaries HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    answer = exchange(port, start + head + b"\r\n0\r\n\r\n" + LINES)
    assert answer.startswith((b"HTTP/1.1 4", b"HTTP/1.1 501")), answer[:100]
    assert answer.count(b"HTTP/1.1") == 1


def test_a_hostile_name_stays_in_its_header(port):
    status, headers, _ = get(port, f"/binary/{IDS['named']}")
    assert status == 200
    assert "Set-Cookie" not in {name.title() for name in headers}
    assert headers["content-disposition"].startswith('attachment; filename="na_meSet-Cookie: x=1; U.txt"; filename*=')


def test_a_chunked_body_is_read_and_bounded(port):
    body = json.dumps({"url": "http://source.example/chunked", "context": "put"}).encode()
    sent = {"method": "PUT", "Content_Type": "application/json", "Host": f"127.0.0.1:{port}"}
    assert get(port, "/binaries", body=iter([body[:10], body[10:]]), **sent)[0] == 202
    assert get(port, "/binaries", body=iter([b" " * 1000] * 66), **sent)[0] == 413


@pytest.mark.parametrize(
    "rest",
    [
        b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n1f4\r\nurl=http://source.example/half&context=put",
        b"Content-Length: 500\r\n\r\nurl=http://source.example/half&context=put",
    ],
)
def test_half_a_body_is_not_taken_for_the_whole(port, rest):
    start = f"PUT /binaries HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    with socket.create_connection(("127.0.0.1", port), SECONDS) as raw:
        raw.sendall(start.encode() + rest)
        raw.shutdown(socket.SHUT_WR)
        answer = raw.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 400"), answer[:100]
    assert b"application/problem+json" in answer


def test_writes_from_this_machine_but_from_no_page(port):
    query = "/binaries?context=put&url=http://source.example/local"
    assert get(port, query, "PUT")[0] == 202
    assert get(port, query, "PUT", Host="evil.example")[0] == 403
    assert get(port, query, "PUT", Origin="http://evil.example")[0] == 403
    assert get(port, query, "PUT", X_Forwarded_For="127.0.0.1")[0] == 403
    answer = exchange(port, f"PUT {query} HTTP/1.0\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.0 403")  # no Host


def test_several_workers_count_together(tmp_path):
    folder = tmp_path / "metrics"
    folder.mkdir()
    with gunicorn(tmp_path, workers=2, PROMETHEUS_MULTIPROC_DIR=str(folder)) as port:
        asked = Counter()
        while len(asked) < 2 and asked.total() < 1000:
            with closing(connect(port)) as connection:  # one connection is served by one process
                connection.request("GET", "/process")
                asked[connection.getresponse().read()] += 1
                connection.request("GET", "/binary/unknown")
                connection.getresponse().read()
        assert len(asked) == 2
        series = 'magazin_http_requests_total{method="GET",route="/binary/{reference_id}",status="404"}'
        assert counted(port, series) == asked.total()
