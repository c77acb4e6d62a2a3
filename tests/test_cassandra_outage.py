"""A server and a worker whose store isn't there: at the start, in the middle of an answer, and when it comes back."""

from __future__ import annotations

import http.client
import json
import random
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cassandra_proxy import Proxy
from tests.source import Source
from tests.source import http as page
from tests.tree import Tree, magazin

LARGE = random.Random(3).randbytes(24 << 20)
LOOKS = 600


@pytest.fixture(scope="module")
def keyspace(cassandra: str) -> str:
    return f"outage_{uuid.uuid4().hex[:12]}"


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@pytest.fixture
def data(tmp_path: Path, cassandra: str, keyspace: str, port: int) -> Path:
    """A folder whose settings name a node at ``port``, where nobody listens yet."""
    folder = tmp_path / "data"
    folder.mkdir()
    settings = 'storage.plugin = "cassandra"\ncassandra = {{ contact_points = "{}", keyspace = "{}" }}\n'
    (folder / "magazin.toml").write_text(settings.format(cassandra, keyspace))
    status, _, err = magazin(folder, "init")
    assert status == 0, err
    (folder / "magazin.toml").write_text(settings.format(f"127.0.0.1:{port}", keyspace))
    return folder


@pytest.fixture
def tree(data: Path) -> Iterator[Tree]:
    with Tree(data, environ={"MAGAZIN_ACCESS_OPEN_WRITES": "loopback"}) as tree:
        yield tree


def health(tree: Tree, name: str, expected: int) -> None:
    """Look until it is so."""
    for _ in range(LOOKS):
        status, _, said = tree.ask("GET", f"/health/{name}")
        if status == expected:
            return
        threading.Event().wait(0.2)
    pytest.fail(f"/health/{name} stays {status}: {said!r}")


def ask_slowly(tree: Tree, path: str) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    """The answer's head, over a connection that holds little of the rest."""
    connection = tree.connect()
    connection.sock = socket.socket()
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    connection.sock.settimeout(60)
    connection.sock.connect(("127.0.0.1", tree.port))
    connection.request("GET", path)
    return connection, connection.getresponse()


def test_store_down_at_the_start_and_in_the_middle_of_a_read(tree: Tree, cassandra: str, port: int) -> None:
    assert tree.ask("GET", "/health/live")[0] == 200
    health(tree, "ready", 503)
    status, headers, _ = tree.ask("GET", f"/binary/{uuid.uuid4()}")
    assert (status, int(headers["Retry-After"]) > 0) == (503, True)

    with Source({"/large": page(LARGE, Content_Type="application/x-large")}) as source:
        with Proxy(cassandra, port):
            health(tree, "ready", 200)
            body = json.dumps({"url": source.url("/large"), "context": "c"})
            status, _, said = tree.ask("PUT", "/binaries", body, Content_Type="application/json", Prefer="wait=60")
            entry = json.loads(said)
            assert (status, entry["status"]) == (200, "OK"), said
            path = f"/binary/{entry['reference_id']}"
            connection, answer = ask_slowly(tree, path)
            begun = answer.read(1 << 20)
        assert (answer.status, int(answer.headers["Content-Length"])) == (200, len(LARGE))
        with suppress(ConnectionResetError):
            while piece := answer.read(1 << 20):
                begun += piece
        connection.close()
        assert len(begun) < len(LARGE) and LARGE.startswith(begun)
        status, headers, _ = tree.ask("GET", path)
        assert (status, "Retry-After" in headers) == (503, True)

        with Proxy(cassandra, port):
            health(tree, "ready", 200)
            status, _, whole = tree.ask("GET", path)
            assert (status, whole == LARGE) == (200, True)
