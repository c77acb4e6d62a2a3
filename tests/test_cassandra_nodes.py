"""Three nodes with three copies: what may happen to nodes, and what nobody may notice. Real servers, really killed."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from cassandra import ConsistencyLevel
from cassandra.query import SimpleStatement

from cli.wiring import TABLES
from storage.cassandra import CassandraStore
from storage.cassandra_options import Options, replication
from storage.contract_rows import CELLS, LINES, NOTES
from storage.errors import Unavailable, Unknown
from storage.table import ABSENT, Put
from tests.cassandra_load import Counter, Load, Writer
from tests.cassandra_server import DURABLE, Cluster
from tests.conftest import server

pytestmark = pytest.mark.stress


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with server(tmp_path_factory.mktemp("three") / "cassandra", 3, jvm=DURABLE) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def options(cluster: Cluster) -> Options:
    points = tuple((address, 9042) for address in cluster.contact_points)
    return Options(points, f"three_{uuid.uuid4().hex[:12]}", replication("3"))


@pytest.fixture(scope="module")
def stores(options: Options) -> Iterator[list[CassandraStore]]:
    """As two processes would have them."""
    stores = [CassandraStore(options), CassandraStore(options)]
    stores[0].create([NOTES, CELLS, LINES])
    yield stores
    for store in stores:
        store.close()


@pytest.fixture
def nodes(cluster: Cluster, options: Options, stores: list[CassandraStore]) -> Iterator[Cluster]:
    """All three up, and known to each other and to the stores."""
    for node in cluster.nodes:
        node.thaw()
        if not node.runs():
            node.start()
    query = SimpleStatement(
        f"SELECT * FROM {options.keyspace}.contract_notes LIMIT 1", consistency_level=ConsistencyLevel.ALL
    )
    for store in stores:
        live = store._sessions.live()
        for host in live.cluster.metadata.all_hosts():
            while True:
                try:
                    live.session.execute(query, host=host, timeout=5)
                    break
                except Exception:
                    pass
    yield cluster
    for node in cluster.nodes:
        node.thaw()


@pytest.fixture
def load(nodes: Cluster, stores: list[CassandraStore]) -> Iterator[Load]:
    one, two = stores
    shared = uuid.uuid4().hex
    counters = [Counter(one, shared), Counter(two, shared)]
    load = Load([Writer(one), Writer(two), Counter(one), Counter(two), *counters])
    with load:
        yield load


def recover(load: Load) -> None:
    """Until nothing fails any more: the driver looks for nodes that are back in growing intervals."""
    end = time.monotonic() + 300
    while True:
        before = len(load.failures)
        load.go(40)
        if len(load.failures) == before:
            return
        assert time.monotonic() < end, load.failures[-1]


def check(load: Load) -> None:
    """After the load's end."""
    print(load.report())
    shared = load.actors[-1].name_
    for actor in load.actors:
        if actor.name_ != shared:
            actor.check()
    Counter.check_together([actor for actor in load.actors if isinstance(actor, Counter) and actor.name_ == shared])


def test_many_inits_at_once_by_way_of_different_nodes(cluster: Cluster) -> None:
    """Each of them asks another node first."""
    keyspace = f"inits_{uuid.uuid4().hex[:12]}"

    def init(number: int) -> None:
        point = (cluster.contact_points[number % 3], 9042)
        store = CassandraStore(Options((point,), keyspace, replication("3")))
        store.create(TABLES)
        store.create(TABLES)
        store.put(LINES_OF_LOG, {"attached": "a", "timestamp": number * 1000, "seq": "s", "message": "m"})
        store.close()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(init, range(6)))
    store = CassandraStore(Options(((cluster.contact_points[0], 9042),), keyspace, replication("3")))
    assert len(store.read(LINES_OF_LOG, ("a",), limit=9)) == 6
    versions = store._sessions.execute("SELECT schema_version FROM system.peers_v2")
    local = store._sessions.execute("SELECT schema_version FROM system.local").one()
    assert {row[0] for row in versions} == {local[0]}
    store.close()


LINES_OF_LOG = next(table for table in TABLES if table.name == "logs")


def test_one_node_killed_and_back(nodes: Cluster, load: Load) -> None:
    nodes.nodes[1].kill()
    load.go(60)
    nodes.nodes[1].start()
    load.go(60)
    load.__exit__(None, None, None)
    assert load.failures == []
    check(load)


def test_one_node_hanging_and_going_on(nodes: Cluster, load: Load) -> None:
    """It may have received compare-and-sets that it carries out when it goes on: none may count twice."""
    nodes.nodes[2].freeze()
    load.go(120)
    nodes.nodes[2].thaw()
    load.go(60)
    load.__exit__(None, None, None)
    assert load.failures == []
    check(load)


def test_two_nodes_killed_and_back(nodes: Cluster, load: Load, stores: list[CassandraStore]) -> None:
    nodes.nodes[0].kill()
    nodes.nodes[1].kill()
    load.go(10)
    assert load.failures
    assert {type(error) for error in load.failures} <= {Unavailable, Unknown}
    for node in nodes.nodes[:2]:
        node.begin()
    for node in nodes.nodes[:2]:
        node.wait()
    recover(load)
    load.__exit__(None, None, None)
    check(load)


def test_three_nodes_killed_and_back(nodes: Cluster, load: Load) -> None:
    """A power cut: what was acknowledged is in a commit log."""
    for node in nodes.nodes:
        node.kill()
    load.go(5)
    for node in nodes.nodes:
        node.begin()
    for node in nodes.nodes:
        node.wait()
    recover(load)
    load.__exit__(None, None, None)
    check(load)


def test_a_node_that_hangs_is_not_waited_for(
    nodes: Cluster, stores: list[CassandraStore], caplog: pytest.LogCaptureFixture
) -> None:
    """What decides is asked for elsewhere before the driver takes the node for lost, or gives up a request."""
    acts: list[Callable[[CassandraStore, str], object]] = [
        lambda store, name: store.commit(NOTES, (name,), [Put({"name": name}, ABSENT)]),
        lambda store, name: store.read(CELLS, (name,), limit=1) == [],  # at SERIAL
    ]
    told = f"node {nodes.nodes[2].address} hangs"
    for store, act in zip(stores, acts, strict=True):
        for _ in range(2):  # all statements are prepared then
            store.commit(NOTES, ("known",), [Put({"name": "known"}, ABSENT)])
        store.read(CELLS, ("known",), limit=1)
        live = store._sessions.live()
        while any(host in live.suspects for host in live.cluster.metadata.all_hosts()):  # it would be asked last
            time.sleep(0.1)
        nodes.nodes[2].freeze()
        for _ in range(100):  # a third of which are its own
            assert act(store, uuid.uuid4().hex)
            if told in caplog.messages:
                break
        nodes.nodes[2].thaw()
        assert told in caplog.messages
        caplog.clear()


def test_a_commit_is_refused_by_what_another_node_took(nodes: Cluster, stores: list[CassandraStore]) -> None:
    name = uuid.uuid4().hex
    assert stores[0].commit(NOTES, (name,), [Put({"name": name}, ABSENT)])
    nodes.nodes[0].kill()
    assert not stores[1].commit(NOTES, (name,), [Put({"name": name}, ABSENT)])
