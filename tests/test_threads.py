"""Clients who never end their head, their body or their connection don't stop the others."""

import json
import socket
from contextlib import ExitStack, suppress

import pytest

from tests.tree import Tree

MANY = 40  # five times the threads; gthread itself would rest 2 s for each, longer than Tree.connect waits
LIVE = b"GET /health/live HTTP/1.1\r\nHost: x\r\n"
PUT = b"PUT /binaries HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n{"


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    with Tree(tmp_path_factory.mktemp("threads"), "--no-worker") as tree:
        yield tree


def client(tree):
    return socket.create_connection(("127.0.0.1", tree.port), timeout=60)


def until_closed(sock):
    data = b""
    while piece := sock.recv(65536):
        data += piece
    return data


@pytest.mark.parametrize(
    ("sent", "answered"),
    [
        pytest.param(b"", False, id="nothing"),
        pytest.param(b"GE", False, id="half a line"),
        pytest.param(b"\r\n\r\n", False, id="blank lines"),
        pytest.param(LIVE, False, id="half a head"),
        pytest.param(LIVE + b"\r\n" + LIVE, True, id="a request and half of one"),
        pytest.param(PUT, True, id="half a body that isn't wanted"),
        pytest.param(LIVE + b"Connection: close\r\n\r\n", True, id="a connection that isn't closed"),
    ],
)
def test_many_of_them(tree, sent, answered):
    with ExitStack() as stack:
        clients = [stack.enter_context(client(tree)) for _ in range(MANY)]
        for one in clients:
            one.sendall(sent)
        for one in clients if answered else ():
            assert one.recv(9) == b"HTTP/1.1 "
        assert tree.ask("GET", "/health/live")[0] == 200


def test_a_head_in_pieces_is_a_request(tree):
    with client(tree) as one:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in LIVE + b"Connection: close\r\n\r\n":
            one.sendall(bytes([byte]))
        answer = until_closed(one)
    assert answer.startswith(b"HTTP/1.1 200 OK")
    assert answer.endswith(b'{"status": "live"}')


def test_requests_in_one_packet_and_in_two_are_answered_in_turn(tree):
    with client(tree) as one:
        one.sendall(LIVE + b"\r\n" + LIVE + b"\r\n" + LIVE)
        answer = b""
        while answer.count(b'live"}') < 2:
            answer += one.recv(65536)
        one.sendall(b"Connection: close\r\n\r\n")
        answer += until_closed(one)
    assert answer.count(b"HTTP/1.1 200 OK") == 3


def test_a_refusal_arrives_whole_though_its_request_goes_on(tree):
    with client(tree) as one:
        one.sendall(PUT)
        answer = until_closed(one)
    assert answer.startswith(b"HTTP/1.1 403 Forbidden")
    assert b"magazin token" in answer


LONG = b"x" * 9000


@pytest.mark.parametrize(
    ("sent", "status", "told"),
    [
        pytest.param(b"GET\r\n\r\n", 400, "GET", id="no target"),
        pytest.param(b"G(T / HTTP/1.1\r\n\r\n", 400, "G(T", id="method"),
        pytest.param(b"GET / HTTP/9.9\r\n\r\n", 400, "9", id="version"),
        pytest.param(b"GET /" + LONG + b" HTTP/1.1\r\n\r\n", 414, "", id="long line"),
        pytest.param(LIVE + b"A: " + LONG + b"\r\n\r\n", 431, "", id="long header"),
        pytest.param(LIVE + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "", id="two lengths"),
        pytest.param(LIVE + b"Content-Length: -1\r\n\r\n", 400, "CONTENT-LENGTH", id="length below nothing"),
        pytest.param(LIVE + b"Transfer-Encoding: br\r\n\r\n", 501, "br", id="coding"),
    ],
)
def test_what_is_not_http_gets_a_problem_document(tree, sent, status, told):
    with client(tree) as one:
        one.sendall(sent)
        head, _, body = until_closed(one).partition(b"\r\n\r\n")
    line, *headers = head.decode().split("\r\n")
    assert line.split(" ", 2)[:2] == ["HTTP/1.1", str(status)]
    assert {"Content-Type: application/problem+json", "Access-Control-Allow-Origin: *", "Cache-Control: no-store"} <= {
        *headers
    }
    problem = json.loads(body)
    assert problem["status"] == status
    assert told in problem["detail"]
    assert len(problem["detail"]) <= 200


@pytest.mark.stress
def test_a_head_without_end_is_cut(tree):
    with client(tree) as one:
        one.sendall(LIVE)
        with suppress(ConnectionResetError):  # for what it sent was never read
            assert one.recv(1) == b""
