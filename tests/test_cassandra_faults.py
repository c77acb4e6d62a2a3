"""Two servers and three workers of three machines over three nodes, under steady load, while nodes hang and die."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from cli.supervisor import python
from tests.cassandra_clients import Clients, report, serve
from tests.cassandra_server import DURABLE, Cluster
from tests.conftest import server
from tests.source import Source
from tests.tree import ENVIRON, Tree, magazin

pytestmark = pytest.mark.stress

SERVERS, WORKERS = 2, 3
PATIENCE = 900  # seconds after which a test has failed


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with server(tmp_path_factory.mktemp("faults") / "cassandra", 3, jvm=DURABLE) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory, cluster: Cluster) -> list[Path]:
    """Data folders with nothing in common but the cluster."""
    keyspace = f"faults_{uuid.uuid4().hex[:12]}"
    points = ", ".join(f'"{address}"' for address in cluster.contact_points)
    settings = f"""
        storage.plugin = "cassandra"
        cassandra = {{ contact_points = [{points}], keyspace = "{keyspace}", replication = "3" }}
        worker = {{ per_host = 6, threads = 2 }}
        server.workers = 1
    """
    folders = [tmp_path_factory.mktemp(f"machine{number}") for number in range(SERVERS + WORKERS)]
    for folder in folders:
        (folder / "magazin.toml").write_text(settings)
    status, _, err = magazin(folders[0], "init")
    assert status == 0, err
    return folders


@pytest.fixture(scope="module")
def clients(machines: list[Path]) -> Iterator[Clients]:
    status, token, err = magazin(machines[0], "token")
    assert status == 0, err
    with ExitStack() as stack:
        source = stack.enter_context(Source(serve))
        trees = [stack.enter_context(Tree(folder, "--no-worker")) for folder in machines[:SERVERS]]
        for tree in trees:  # a full pipe would stop a server that logs its troubles
            threading.Thread(target=_keep, args=(tree,), daemon=True).start()
        for folder in machines[SERVERS:]:
            command = [*python("cli.main"), "worker", "--data", str(folder)]
            worker = stack.enter_context(subprocess.Popen(command, env=ENVIRON, stderr=subprocess.DEVNULL))
            stack.callback(worker.kill)
        yield stack.enter_context(Clients([tree.port for tree in trees], source.url(""), token.strip()))


def _keep(tree: Tree) -> None:
    with (tree.data / "log").open("wb") as log, suppress(ValueError):  # closed at the end
        shutil.copyfileobj(tree.process.stderr.buffer, log)


def test_nobody_notices_one_node(cluster: Cluster, clients: Clients) -> None:
    print()
    clients.go(150)  # until JVMs and servers are warm
    print(report("three nodes", clients.go(150)))
    cluster.nodes[1].kill()
    killed = clients.go(200)
    print(report("one killed", killed))
    cluster.nodes[1].start()
    back = clients.go(200)
    print(report("back", back))
    cluster.nodes[2].freeze()
    hanging = clients.go(400)
    print(report("one hangs", hanging))
    cluster.nodes[2].thaw()
    print(report("goes on", going := clients.go(150)))
    assert [*killed.refused, *back.refused, *hanging.refused, *going.refused] == []


def test_without_a_quorum_the_answer_is_503_and_nothing_is_lost(
    cluster: Cluster, clients: Clients, machines: list[Path]
) -> None:
    for node in cluster.nodes[:2]:
        node.kill()
    down = clients.go(60)
    print("\n" + report("two killed", down))
    assert down.refused
    for node in cluster.nodes[:2]:
        node.begin()
    for node in cluster.nodes[:2]:
        node.wait()
    refused, end = down.refused, time.monotonic() + PATIENCE
    while refused:  # it finds back by itself
        refused = clients.go(50).refused
        assert time.monotonic() < end, refused
    print(report("back", clients.go(150)))
    clients.__exit__()
    # Whatever was acknowledged becomes OK, and stays it.
    book = clients.book
    waiting = dict(book.known)
    while waiting:
        assert time.monotonic() < end, waiting
        for reference, target in list(waiting.items()):
            book.ready.pop(reference, None)
            clients.read(clients.ports[0], reference, target)
            if reference in book.ready:
                del waiting[reference]
        status, out, err = magazin(machines[0], "status", "--json", timeout=600)
        assert status == 0, err
    assert book.wrong == []
    status, out, err = magazin(machines[1], "check", "--json", timeout=600)
    assert out, err
    found = json.loads(out)
    assert (status, found["wrong"]) == (0, {}), out
    assert found["originals"] >= len(book.known) > 50
