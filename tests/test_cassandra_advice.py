"""What ``magazin doctor`` says of a keyspace in which something may get lost."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.main import main
from storage.cassandra import CassandraStore
from storage.cassandra_advice import advised
from storage.cassandra_options import Options, replication


@pytest.mark.parametrize(
    ("copies", "sync", "expected"),
    [
        ({"replication_factor": "3"}, "periodic", []),
        ({"dc1": "3", "dc2": "5"}, "periodic", []),
        ({"dc1": "3", "dc2": "0"}, "", []),
        ({"dc1": "1"}, "batch", ["keyspace k in dc1 has one copy: a lost disk is lost data"]),
        ({"dc1": "3", "dc2": "1"}, "group", ["keyspace k in dc2 has one copy: a lost disk is lost data"]),
        ({"dc1": "2"}, "", ["keyspace k in dc1 has two copies: with one away nothing can be written"]),
        (
            {"replication_factor": "1"},
            "periodic",
            [
                "keyspace k has one copy: a lost disk is lost data",
                "commitlog_sync is periodic: a killed node loses its last seconds",
            ],
        ),
    ],
)
def test_dangers(copies: Mapping[str, str], sync: str, expected: list[str]) -> None:
    assert [one.text for one in advised("k", {"class": "any"} | copies, sync)] == expected


def test_of_a_real_keyspace(cassandra: str, tmp_path: Path) -> None:
    """The node of the tests syncs each write, and there is one of it."""
    options = Options(((cassandra, 9042),), f"advice_{uuid.uuid4().hex[:12]}", replication("1"))
    store = CassandraStore(options)
    assert list(store.advice()) == []
    store.create([])
    [danger] = store.advice()
    assert danger.text == f"keyspace {options.keyspace} in datacenter1 has one copy: a lost disk is lost data"
    store.close()
    environ = {
        "MAGAZIN_STORAGE_PLUGIN": "cassandra",
        "MAGAZIN_CASSANDRA_CONTACT_POINTS": cassandra,
        "MAGAZIN_CASSANDRA_KEYSPACE": options.keyspace,
    }
    words = ["--data", str(tmp_path)]
    assert CliRunner().invoke(main, ["init", *words], env=environ).exit_code == 0
    said = CliRunner().invoke(main, ["doctor", *words], env=environ).output
    assert "WARN storage" in said and danger.text in said
