"""The main job on a real tree of processes, all tests of tests/test_end_to_end.py, with Cassandra as the store."""

import uuid

import pytest

from storage.cassandra import CassandraStore
from storage.cassandra_options import Options
from tests.test_end_to_end import *  # noqa: F403
from tests.tree import magazin


@pytest.fixture(scope="module")
def cluster(cassandra):
    return {"contact_points": f"{cassandra}:9042", "keyspace": f"e2e_{uuid.uuid4().hex[:12]}"}


@pytest.fixture(scope="module")
def data(tmp_path_factory, cluster):
    """A folder whose file of settings names a keyspace of this module alone."""
    folder = tmp_path_factory.mktemp("cassandra") / "magazin-data"
    folder.mkdir()
    lines = [
        "[storage]",
        'plugin = "cassandra"',
        "[cassandra]",
        *(f'{key} = "{value}"' for key, value in cluster.items()),
    ]
    lines += ["[delivery]", 'reference_ttl = "0s"']  # the tests look at once whether a reference is gone
    (folder / "magazin.toml").write_text("\n".join(lines))
    status, out, err = magazin(folder, "init")
    assert (status, out) == (0, f"ready: cassandra, data in {folder}\n"), err
    return folder


@pytest.fixture
def stored(cluster):
    return lambda data: CassandraStore(Options.read(cluster))


def test_the_originals_are_in_the_store(data, tree, entries, stored):
    assert not (data / "store.sqlite").exists()
    assert not (data / "blobs").exists()
