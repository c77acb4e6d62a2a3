"""A node that wants TLS with certificates on both sides and a user with a password, and that runs out of room."""

from __future__ import annotations

import dataclasses
import os
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from storage.cassandra import CassandraStore
from storage.cassandra_cql import keyspace_text
from storage.cassandra_options import Options, replication
from storage.cassandra_session import Sessions
from storage.contract_rows import NOTES, PIECES
from storage.errors import Full, StoreError, Unavailable
from storage.table import ABSENT, Put
from tests.cassandra_proxy import Proxy
from tests.cassandra_server import QUICK, Cluster
from tests.conftest import server

USER, PASSWORD = "magazin", "1 Passwort mit 'Zeichen'"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Settings with PEM files of an authority and of our own certificate."""
    folder = tmp_path_factory.mktemp("pem")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    own = authority.issue_cert("magazin.example.org")
    own.private_key_pem.write_to_path(folder / "own.key")
    for part in own.cert_chain_pems:
        part.write_to_path(folder / "own.pem", append=True)
    node = authority.issue_cert(*(f"127.77.{slot}.1" for slot in range(1, 250)))
    key = load_pem_private_key(node.private_key_pem.bytes(), None)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())  # Cassandra reads no other
    (folder / "node.pem").write_bytes(pem + b"".join(part.bytes() for part in node.cert_chain_pems))
    names = {"tls_ca": "ca.pem", "tls_certificate": "own.pem", "tls_key": "own.key"}
    return {name: str(folder / file) for name, file in names.items()}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, files: dict[str, str]) -> Iterator[Cluster]:
    encryption: Mapping[str, object] = {
        "enabled": True,
        "require_client_auth": True,
        "ssl_context_factory": {"class_name": "org.apache.cassandra.security.PEMBasedSslContextFactory"},
        "keystore": str(Path(files["tls_ca"]).with_name("node.pem")),
        "truststore": files["tls_ca"],
    }
    yaml = {
        "authenticator": "PasswordAuthenticator",
        "authorizer": "CassandraAuthorizer",
        "client_encryption_options": encryption,
        "data_disk_usage_percentage_fail_threshold": 90,
        "data_disk_usage_max_disk_size": "24MiB",
        # Users and rights are looked up again and again, and only who is who, that the administrator needs, is kept.
        "credentials_validity": "0ms",
        "permissions_validity": "0ms",
        "roles_validity": "1h",
    }
    jvm = (*QUICK, "-Dcassandra.disk_usage.monitor_interval_ms=200")
    with server(tmp_path_factory.mktemp("secured") / "cassandra", yaml=yaml, jvm=jvm) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def common(node: Cluster, files: dict[str, str]) -> dict[str, object]:
    keyspace = f"secured_{uuid.uuid4().hex[:12]}"
    return {**files, "tls": True, "contact_points": node.contact_points, "keyspace": keyspace}


@pytest.fixture(scope="module")
def administrator(common: dict[str, object]) -> Iterator[Sessions]:
    sessions = Sessions(Options.read(common | {"username": "cassandra", "password": "cassandra"}))
    while True:  # until the node has made its first user
        try:
            sessions.live()
            break
        except StoreError:
            pass
    yield sessions
    sessions.close()


@pytest.fixture(scope="module")
def settings(common: dict[str, object], administrator: Sessions) -> dict[str, object]:
    """Of a user with the rights that the documentation names, in a keyspace that somebody else has made."""
    keyspace = common["keyspace"]
    administrator.execute("CREATE ROLE magazin WITH LOGIN = true AND PASSWORD = %s", PASSWORD)
    administrator.execute(keyspace_text(str(keyspace), replication("1")))
    for right in ("CREATE", "ALTER", "SELECT", "MODIFY"):
        administrator.execute(f"GRANT {right} ON KEYSPACE {keyspace} TO magazin")
    return common | {"username": USER, "password": PASSWORD}


@pytest.fixture(scope="module")
def store(settings: dict[str, object]) -> Iterator[CassandraStore]:
    store = CassandraStore(Options.read(settings))
    store.create([NOTES, PIECES])
    yield store
    store.close()


def test_rows_and_parts_pass_through(store: CassandraStore) -> None:
    data = os.urandom(1 << 20)
    store.put_many((PIECES, {"owner": "o", "bucket": 0, "number": n, "data": data}) for n in range(6))
    assert all(row["data"] == data for row in store.read(PIECES, ("o", 0), limit=6))
    rev = store.commit(NOTES, ("n",), [Put({"name": "n"}, ABSENT)]).rev
    assert store.get(NOTES, ("n",), columns=["name"]) == {"name": "n", "rev": rev}


def test_a_wrong_password_is_no_outage(settings: dict[str, object]) -> None:
    wrong = CassandraStore(Options.read(settings | {"password": "guess"}))
    with pytest.raises(StoreError, match="neither user nor password") as raised:
        wrong.get(NOTES, ("n",))
    assert not isinstance(raised.value, Unavailable)
    assert "guess" not in str(raised.value)
    wrong.close()


def test_without_credentials(settings: dict[str, object]) -> None:
    nobody = CassandraStore(Options.read(settings | {"username": ""}))
    with pytest.raises(StoreError):
        nobody.get(NOTES, ("n",))
    nobody.close()


@pytest.mark.parametrize("missing", ["tls", "tls_certificate", "tls_ca"])
def test_what_tls_wants(settings: dict[str, object], missing: str) -> None:
    given = Options.read(settings | {missing: "", "tls_key": settings["tls_key"] if missing == "tls_ca" else ""})
    stranger = CassandraStore(dataclasses.replace(given, request_timeout=4.0))
    with pytest.raises(StoreError):
        stranger.get(NOTES, ("n",))
    stranger.close()


def test_the_host_must_be_the_certificates(settings: dict[str, object], node: Cluster) -> None:
    with Proxy(*node.contact_points) as proxy:
        here = settings | {"contact_points": f"127.0.0.1:{proxy.port}"}
        strict = CassandraStore(Options.read(here))
        with pytest.raises(Unavailable, match="not valid for"):
            strict.get(NOTES, ("n",))
        strict.close()
        lax = CassandraStore(Options.read(here | {"tls_verify_host": False}))
        assert lax.get(NOTES, ("n",)) is not None
        lax.close()


def test_users_that_can_not_be_read_are_an_outage_that_passes(
    settings: dict[str, object], store: CassandraStore, administrator: Sessions, node: Cluster
) -> None:
    """Two of three copies of the users are away. Who isn't let in then comes again, and so does who was in already."""
    assert store.get(NOTES, ("n",)) is not None
    with Proxy(*node.contact_points) as proxy:
        here = settings | {"contact_points": f"127.0.0.1:{proxy.port}", "tls_verify_host": False}
        known, fresh = (CassandraStore(Options.read(here)) for _ in range(2))
        assert known.get(NOTES, ("n",)) is not None
        copies = "ALTER KEYSPACE system_auth WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': {}}}"
        administrator.execute(copies.format(3))
        try:
            with pytest.raises(Unavailable, match="Unable to perform auth"):
                known.get(NOTES, ("n",))
            with pytest.raises(Unavailable, match="Unable to perform auth"):
                fresh.get(NOTES, ("n",))
            proxy.cut()
            end, before = time.monotonic() + 60, proxy.connections
            while proxy.connections < before + 4:  # the driver tries to come back
                assert time.monotonic() < end
                with pytest.raises(Unavailable):
                    known.get(NOTES, ("n",))
        finally:
            administrator.execute(copies.format(1))
        end = time.monotonic() + 60
        for one in (known, fresh, store):
            while True:
                try:
                    assert one.get(NOTES, ("n",)) is not None
                    break
                except Unavailable:
                    assert time.monotonic() < end
        for one in (known, fresh):
            one.close()


def test_a_full_disk_is_told_before_it_is_full(store: CassandraStore) -> None:
    """The last test here: the node has a guardrail at 22 MB."""
    data = os.urandom(1 << 20)
    with pytest.raises(Full, match="no room"):
        for number in range(10_000):
            store.put(PIECES, {"owner": "o", "bucket": number, "number": 0, "data": data})
    assert store.read(PIECES, ("o", 0), limit=1, columns=["number"]) == [{"number": 0}]
