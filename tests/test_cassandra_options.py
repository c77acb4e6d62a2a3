"""The settings of the plugin, and the way a request is let through."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest
import trustme

from cli.settings import Cassandra, Settings, Storage
from cli.sources import SettingsError
from cli.wiring import Magazin
from storage.cassandra_options import Options, address, replication


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("db1", ("db1", 9042)),
        ("db1.example.org:9142", ("db1.example.org", 9142)),
        ("10.0.0.1", ("10.0.0.1", 9042)),
        ("10.0.0.1:1", ("10.0.0.1", 1)),
        ("::1", ("::1", 9042)),
        ("fe80::1:2", ("fe80::1:2", 9042)),
        ("[::1]", ("::1", 9042)),
        ("[::1]:65535", ("::1", 65535)),
    ],
)
def test_contact_points(text: str, expected: tuple[str, int]) -> None:
    assert address(text) == expected


@pytest.mark.parametrize("text", ["", "db1:", "db1:0", "db1:65536", "db1:x", "[::1", "a b", "http://db1", "[db1]:1"])
def test_contact_points_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="contact_points"):
        address(text)


def test_replication() -> None:
    assert replication("3") == {"class": "NetworkTopologyStrategy", "replication_factor": "3"}
    assert replication("dc1:3, eu-west:2") == {"class": "NetworkTopologyStrategy", "dc1": "3", "eu-west": "2"}


@pytest.mark.parametrize("text", ["", "0", "-1", "three", "dc1", "dc1:", "dc1:0", ":3", "dc1:3,", "dc'1:3", "100"])
def test_replications_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="replication"):
        replication(text)


def test_defaults_are_those_of_the_settings() -> None:
    section = {name: getattr(Cassandra(), name) for name in Cassandra.__dataclass_fields__}
    assert Options.read(section) == Options.read({})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"keyspace": "Binaries"}, "keyspace"),
        ({"keyspace": "a" * 49}, "keyspace"),
        ({"keyspace": 'a"; DROP'}, "keyspace"),
        ({"consistency": "ONE"}, "consistency"),
        ({"tls": True, "tls_ca": "/nowhere/ca.pem"}, "tls_ca /nowhere/ca.pem"),
    ],
)
def test_options_that_are_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Options.read(given)


def test_tls(tmp_path: Path) -> None:
    authority = trustme.CA()
    own = authority.issue_cert("magazin")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    own.private_key_and_cert_chain_pem.write_to_path(tmp_path / "own.pem")
    files = {"tls_ca": str(tmp_path / "ca.pem"), "tls_certificate": str(tmp_path / "own.pem")}
    assert Options.read(files).tls is None
    context = Options.read(files | {"tls": True}).tls
    assert context is not None and context.check_hostname
    assert context.cert_store_stats()["x509"] == 1
    relaxed = Options.read(files | {"tls": True, "tls_verify_host": False}).tls
    assert relaxed is not None and not relaxed.check_hostname


def test_a_wrong_setting_is_named(tmp_path: Path) -> None:
    settings = Settings(tmp_path, storage=Storage(plugin="cassandra"), cassandra=Cassandra(replication="many"))
    with pytest.raises(SettingsError, match=r"\[cassandra\] replication: 'many'; wanted is a number"):
        assert Magazin(settings).store


def test_nothing_is_connected_before_it_is_used(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        points = (f"127.0.0.1:{server.getsockname()[1]}",)
        settings = Settings(tmp_path, storage=Storage(plugin="cassandra"), cassandra=Cassandra(contact_points=points))
        magazin = Magazin(settings)
        before = threading.active_count()
        assert magazin.application() is not None
        magazin.close()
        assert threading.active_count() == before
        with pytest.raises(BlockingIOError):
            server.accept()
