"""One real Cassandra for all tests that want one, started when the first does."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cassandra_server import REQUIRED, Cluster, NoServer


@contextmanager
def server(folder: Path, nodes: int = 1, **settings: Any) -> Iterator[Cluster]:
    """A cluster, or the end of the test: a failure where there must be one, else a line that says what is missing."""
    try:
        cluster = Cluster(folder, nodes, **settings)
    except NoServer as reason:
        if REQUIRED:
            pytest.fail(f"no Cassandra: {reason}")
        pytest.skip(f"no Cassandra: {reason}")
    with cluster:
        yield cluster


@pytest.fixture(scope="session")
def cassandra(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[str]:
    """The contact point of one node, shared by the processes of this test run.

    ``CASSANDRA_TEST_NODE`` names one that runs already.
    """
    if node := os.environ.get("CASSANDRA_TEST_NODE"):
        yield node
        return
    base = tmp_path_factory.getbasetemp()
    with server((base if worker_id == "master" else base.parent) / "cassandra") as cluster:
        [address] = cluster.contact_points
        yield address
