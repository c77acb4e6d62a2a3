"""Clients who never end their head, their body or their connection don't stop the others."""

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


@pytest.mark.stress
def test_a_head_without_end_is_cut(tree):
    with client(tree) as one:
        one.sendall(LIVE)
        with suppress(ConnectionResetError):  # for what it sent was never read
            assert one.recv(1) == b""
