"""Which node is asked first, and which last. The driver's own objects, connected to nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from cassandra.cluster import Cluster
from cassandra.connection import DefaultEndPoint
from cassandra.metadata import KeyspaceMetadata
from cassandra.policies import SimpleConvictionPolicy
from cassandra.pool import Host
from cassandra.query import SimpleStatement

from storage import cassandra_driver as driver
from storage.cassandra_options import Options, replication
from storage.cassandra_session import NEWS, Gone
from storage.cassandra_suspects import Suspects

KEYS = [str(number).encode() for number in range(60)]
NEAR, FAR = ("10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"), ("10.1.0.1", "10.1.0.2")

Plan = Callable[[str, bytes], list[str]]


@pytest.fixture
def suspects() -> Suspects:
    return Suspects()


@pytest.fixture
def cluster(suspects: Suspects) -> Iterator[Cluster]:
    """Four nodes nearby and two elsewhere, with three and two copies."""
    options = Options((("10.0.0.1", 9042),), "k", replication("3"), data_center="near")
    cluster = driver.cluster(options, suspects)
    nodes = [Host(DefaultEndPoint(address), SimpleConvictionPolicy, "near", "r") for address in NEAR]
    nodes += [Host(DefaultEndPoint(address), SimpleConvictionPolicy, "far", "r") for address in FAR]
    for node in nodes:
        node.set_up()
        cluster.metadata.add_or_return_host(node)
    copies = {"near": "3", "far": "2"}
    cluster.metadata.keyspaces["k"] = KeyspaceMetadata("k", True, "NetworkTopologyStrategy", copies)
    step = 2**64 // len(nodes)
    tokens = {node: [str(-(2**63) + step * number)] for number, node in enumerate(nodes)}
    cluster.metadata.rebuild_token_map("org.apache.cassandra.dht.Murmur3Partitioner", tokens)
    for profile in cluster.profile_manager.profiles.values():
        profile.load_balancing_policy.populate(cluster, nodes)
    yield cluster
    cluster.shutdown()


@pytest.fixture
def plan(cluster: Cluster) -> Plan:
    def plan(profile: str, key: bytes) -> list[str]:
        policy = cluster.profile_manager.profiles[profile].load_balancing_policy
        return [host.address for host in policy.make_query_plan("k", SimpleStatement("", routing_key=key))]

    return plan


def copies(cluster: Cluster, key: bytes) -> set[str]:
    return {host.address for host in cluster.metadata.get_replicas("k", key)} & set(NEAR)


@pytest.mark.parametrize("profile", [driver.REPEATABLE, driver.ONCE, driver.SERIAL, driver.SLOW])
def test_nodes_nearby_are_asked_and_first_those_that_have_a_copy(cluster: Cluster, plan: Plan, profile: str) -> None:
    for key in KEYS:
        asked = plan(profile, key)
        assert set(asked[:3]) == copies(cluster, key)
        assert sorted(asked) == sorted(NEAR)


def test_what_decides_has_one_order_whatever_else_is_asked(plan: Plan) -> None:
    """Two nodes that decide for one partition get in each other's way."""
    orders = {key: plan(driver.ONCE, key)[:3] for key in KEYS}
    assert {order[0] for order in orders.values()} == set(NEAR)
    for key in KEYS:
        for _ in range(9):
            plan(driver.REPEATABLE, key)
        assert plan(driver.ONCE, key)[:3] == plan(driver.SERIAL, key)[:3] == orders[key]


def test_the_rest_is_spread_over_the_copies(cluster: Cluster, plan: Plan) -> None:
    assert {plan(driver.REPEATABLE, KEYS[0])[0] for _ in range(200)} == copies(cluster, KEYS[0])


@pytest.mark.parametrize("profile", [driver.REPEATABLE, driver.ONCE, driver.SERIAL])
def test_a_node_that_hangs_is_asked_last_and_one_that_is_down_never(
    cluster: Cluster, suspects: Suspects, plan: Plan, profile: str
) -> None:
    nodes = {host.address: host for host in cluster.metadata.all_hosts()}
    suspects.note(nodes["10.0.0.2"])
    nodes["10.0.0.3"].set_down()
    cluster.profile_manager.on_down(nodes["10.0.0.3"])
    for key in KEYS:
        asked = plan(profile, key)
        assert asked[-1] == "10.0.0.2" and sorted(asked[:-1]) == ["10.0.0.1", "10.0.0.4"]


def test_without_a_key_or_with_one_of_a_keyspace_that_is_not_known(cluster: Cluster) -> None:
    policy = cluster.profile_manager.profiles[driver.ONCE].load_balancing_policy
    for statement in (None, SimpleStatement(""), SimpleStatement("", routing_key=b"1", keyspace="other")):
        assert sorted(host.address for host in policy.make_query_plan("k", statement)) == sorted(NEAR)


def test_suspicion_ends() -> None:
    now = [0.0]
    suspects = Suspects(clock=lambda: now[0])
    suspects.note("a")
    assert "a" in suspects and "b" not in suspects
    now[0] = 5.1
    assert "a" not in suspects


def test_a_node_counts_as_gone_until_the_others_know_it_too() -> None:
    """Of one in another data centre the driver may not hear that it is back."""
    now = [10.0]
    gone, host = Gone(lambda: now[0]), Host(DefaultEndPoint("10.1.0.1"), SimpleConvictionPolicy)
    assert not gone.is_new(host)
    host.set_down()
    assert gone.is_new(host)
    now[0] += NEWS
    assert not gone.is_new(host)
    host.set_up()
    assert not gone.is_new(host)
    host.set_down()
    assert gone.is_new(host)
