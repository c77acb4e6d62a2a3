"""Two data centres, a node in each: what is asked nearby, and what only both together may say."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator

import pytest

from storage.cassandra import CassandraStore
from storage.cassandra_options import Options
from storage.contract_rows import LINES, NOTES, PIECES, line
from storage.errors import StoreError, Unavailable
from storage.table import ABSENT, Put, Row
from tests.cassandra_server import DURABLE, Cluster
from tests.conftest import server

TABLES = (LINES, NOTES, PIECES)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("far") / "cassandra"
    yaml = {"hinted_handoff_enabled": False}  # else a node that is back gets by itself what it missed
    with server(folder, 2, yaml=yaml, jvm=DURABLE, data_centers=("berlin", "wien")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def keyspace(cluster: Cluster) -> str:
    keyspace = f"centres_{uuid.uuid4().hex[:12]}"
    store = CassandraStore(options(cluster, keyspace, 0))
    store.create(TABLES)
    store.close()
    return keyspace


@pytest.fixture
def berlin(cluster: Cluster, keyspace: str) -> Iterator[CassandraStore]:
    yield from connected(options(cluster, keyspace, 0))


@pytest.fixture
def wien(cluster: Cluster, keyspace: str) -> Iterator[CassandraStore]:
    yield from connected(options(cluster, keyspace, 1))


def options(cluster: Cluster, keyspace: str, number: int) -> Options:
    """Of a machine that is told both nodes, and lies beside one of them."""
    given = {"contact_points": cluster.contact_points, "keyspace": keyspace, "replication": "berlin:1, wien:1"}
    return Options.read(given | {"data_center": ("berlin", "wien")[number]})


def connected(options: Options) -> Iterator[CassandraStore]:
    """A store that reaches both nodes."""
    store = CassandraStore(options)
    end = time.monotonic() + 120
    while True:
        try:
            store.get(LINES, ("any", 0, "a"))
            break
        except Unavailable:
            assert time.monotonic() < end
    yield store
    store.close()


def piece(data: bytes = b"bytes") -> Row:
    return {"owner": uuid.uuid4().hex, "bucket": 0, "number": 0, "data": data}


def quorum_of(store: CassandraStore, name: str) -> bool:
    """Whether requests about this note can be answered, as far as the store knows."""
    live = store._sessions.live()
    query = f"SELECT * FROM {store._options.keyspace}.contract_notes WHERE name = ?"
    return live.has_quorum(live.prepared(query).bind((name,)))


def hosts(store: CassandraStore, text: str) -> set[str]:
    """The nodes that this store's session gives such a statement to."""
    session = store._sessions.live().session
    futures = [session.execute_async(text) for _ in range(10)]
    for future in futures:
        future.result()
    return {host.address for future in futures for host in future.attempted_hosts}


def test_the_nearer_node_is_asked(cluster: Cluster, berlin: CassandraStore, wien: CassandraStore) -> None:
    asked = [hosts(store, "SELECT key FROM system.local") for store in (berlin, wien)]
    assert asked == [{address} for address in cluster.contact_points]


def test_init_copies_to_each_data_centre_that_there_is(cluster: Cluster) -> None:
    keyspace = f"centres_{uuid.uuid4().hex[:12]}"
    given = {"contact_points": cluster.contact_points, "keyspace": keyspace, "replication": "1"}
    store = CassandraStore(Options.read(given))
    store.create(TABLES)
    query = "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = %s"
    [(copies,)] = store._sessions.execute(query, keyspace)
    assert dict(copies) == {
        "class": "org.apache.cassandra.locator.NetworkTopologyStrategy",
        "berlin": "1",
        "wien": "1",
    }
    store.close()


def test_a_part_that_only_the_other_data_centre_has(
    cluster: Cluster, berlin: CassandraStore, request: pytest.FixtureRequest
) -> None:
    """Parts are written where one is; a read elsewhere that doesn't find one asks everywhere before it is missing."""
    part, lost, note = piece(), piece(), uuid.uuid4().hex
    assert quorum_of(berlin, note)
    cluster.nodes[1].kill()
    end = time.monotonic() + 60
    while quorum_of(berlin, note):  # until the driver's connections have ended
        assert time.monotonic() < end
    berlin.put(PIECES, part)
    assert berlin.get(PIECES, PIECES.key_of(part)) == part
    with pytest.raises(Unavailable):
        berlin.get(PIECES, PIECES.key_of(lost))  # the other may have it
    with pytest.raises(StoreError):  # what decides is written in both
        berlin.put(LINES, line(note))
    with pytest.raises(StoreError):
        berlin.commit(NOTES, (note,), [Put({"name": note}, ABSENT)])
    cluster.nodes[1].start()
    wien: CassandraStore = request.getfixturevalue("wien")
    assert wien.get(PIECES, PIECES.key_of(part)) == part
    assert wien.get(PIECES, PIECES.key_of(lost)) is None
    assert list(wien.fetch([(PIECES, PIECES.key_of(one)) for one in (lost, part)])) == [[], [part]]
