"""Commits whose outcome got lost: requests and answers are lost for real, between the driver and a real node."""

from __future__ import annotations

import dataclasses
import re
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from storage.cassandra import CassandraStore
from storage.cassandra_commits import columns_of, new_rev
from storage.cassandra_options import Options, replication
from storage.cassandra_statements import Statements
from storage.contract_rows import CELLS, LINES, NOTES, line
from storage.errors import Unavailable, Unknown
from storage.schema import ORIGINALS
from storage.table import ABSENT, Put, Remove, Row, Type, cas
from tests.cassandra_proxy import Proxy


@pytest.fixture(scope="module")
def options(cassandra: str) -> Options:
    return Options(((cassandra, 9042),), f"commits_{uuid.uuid4().hex[:12]}", replication("1"), request_timeout=8.0)


@pytest.fixture(scope="module")
def direct(options: Options) -> Iterator[CassandraStore]:
    """Another machine, whose requests and answers are never lost."""
    store = CassandraStore(options)
    store.create([NOTES, CELLS, LINES])
    yield store
    store.close()


@pytest.fixture
def proxy(cassandra: str) -> Iterator[Proxy]:
    with Proxy(cassandra) as proxy:
        yield proxy


@pytest.fixture
def store(proxy: Proxy, options: Options, direct: CassandraStore) -> Iterator[CassandraStore]:
    """Connected through the proxy, and acquainted with every statement that the tests use."""
    store = CassandraStore(dataclasses.replace(options, contact_points=(("127.0.0.1", proxy.port),)))
    name = uuid.uuid4().hex
    rev = store.commit(NOTES, (name,), [Put({"name": name}, ABSENT)]).rev
    assert store.commit(NOTES, (name,), [Remove((name,), rev)])
    store.commit(CELLS, (name,), [Put(cell(name, 0), ABSENT), Put(cell(name, 1)), Remove((name, 2, "c"), ABSENT)])
    store.put(LINES, line(name))
    yield store
    store.close()


@pytest.fixture
def name() -> str:
    return uuid.uuid4().hex


def cell(row: str, kind: int, label: str | None = None) -> Row:
    return {"row": row, "kind": kind, "column": "c", "label": label}


def sizes(store: CassandraStore, name: str) -> int | None:
    row = store.get(NOTES, (name,))
    return None if row is None else row["size"]


def test_a_lost_answer_of_an_insert(store: CassandraStore, proxy: Proxy, direct: CassandraStore, name: str) -> None:
    proxy.lose_answer()
    outcome = store.commit(NOTES, (name,), [Put({"name": name, "size": 1}, ABSENT)])
    assert proxy.happened.is_set()
    assert outcome
    row = direct.get(NOTES, (name,))
    assert row is not None and (row["rev"], row["size"]) == (outcome.rev, 1)


def test_a_lost_answer_of_a_replacement(store: CassandraStore, proxy: Proxy, direct: CassandraStore, name: str) -> None:
    rev = direct.commit(NOTES, (name,), [Put({"name": name, "size": 1, "body": "b"}, ABSENT)]).rev
    proxy.lose_answer()
    outcome = store.commit(NOTES, (name,), [Put({"name": name, "size": 2}, rev)])
    assert outcome and proxy.happened.is_set()
    row = direct.get(NOTES, (name,))
    assert row is not None and (row["rev"], row["size"], row["body"]) == (outcome.rev, 2, None)


def test_a_lost_answer_of_several_changes(
    store: CassandraStore, proxy: Proxy, direct: CassandraStore, name: str
) -> None:
    proxy.lose_answer()
    assert store.commit(CELLS, (name,), [Put(cell(name, 0, "a"), ABSENT), Put(cell(name, 1, "b"))])
    assert proxy.happened.is_set()
    assert [row["label"] for row in direct.read(CELLS, (name,), limit=9)] == ["a", "b"]


def test_a_lost_answer_of_a_removal_is_a_conflict_with_nothing(
    store: CassandraStore, proxy: Proxy, direct: CassandraStore, name: str
) -> None:
    """Whether it was this removal or another's can't be seen, and both must not be told that it was theirs."""
    rev = direct.commit(NOTES, (name,), [Put({"name": name}, ABSENT)]).rev
    proxy.lose_answer()
    outcome = store.commit(NOTES, (name,), [Remove((name,), rev)])
    assert (outcome.applied, outcome.rows) == (False, (None,))
    assert proxy.happened.is_set() and sizes(direct, name) is None


def test_a_lost_answer_of_a_conflict(store: CassandraStore, proxy: Proxy, direct: CassandraStore, name: str) -> None:
    rev = direct.commit(NOTES, (name,), [Put({"name": name, "size": 1}, ABSENT)]).rev
    proxy.lose_answer()
    outcome = store.commit(NOTES, (name,), [Put({"name": name, "size": 2}, ABSENT)])
    assert proxy.happened.is_set() and not outcome
    assert outcome.rows[0] is not None and outcome.rows[0]["rev"] == rev


def test_a_lost_request_is_sent_again(store: CassandraStore, proxy: Proxy, direct: CassandraStore, name: str) -> None:
    for expect in (ABSENT, None):
        rev = (direct.get(NOTES, (name,)) or {}).get("rev")
        proxy.lose_request()
        assert store.commit(NOTES, (name,), [Put({"name": name, "size": 1 if expect else 2}, expect or rev)])
        assert proxy.happened.is_set()
    assert sizes(direct, name) == 2


def test_applied_and_overtaken_is_a_conflict(
    store: CassandraStore, proxy: Proxy, direct: CassandraStore, name: str
) -> None:
    def overtake() -> None:
        row = direct.get(NOTES, (name,))
        assert row is not None and row["size"] == 1
        assert direct.commit(NOTES, (name,), [Put({"name": name, "size": 2}, row["rev"])])

    proxy.lose_answer(overtake)
    outcome = store.commit(NOTES, (name,), [Put({"name": name, "size": 1}, ABSENT)])
    assert proxy.happened.is_set() and not outcome
    assert outcome.rows[0] is not None and outcome.rows[0]["size"] == 2


def test_half_overtaken_is_applied(store: CassandraStore, proxy: Proxy, direct: CassandraStore, name: str) -> None:
    def overtake() -> None:
        [first, _] = direct.read(CELLS, (name,), limit=9)
        assert direct.commit(CELLS, (name,), [Put(cell(name, 0, "z"), first["rev"])])

    proxy.lose_answer(overtake)
    assert store.commit(CELLS, (name,), [Put(cell(name, 0, "a"), ABSENT), Put(cell(name, 1, "b"), ABSENT)])
    assert [row["label"] for row in direct.read(CELLS, (name,), limit=9)] == ["z", "b"]


def test_a_request_that_hangs_is_overtaken_by_its_repetition(
    store: CassandraStore, proxy: Proxy, direct: CassandraStore, name: str
) -> None:
    """When the hanging node wakes, its request has no effect any more."""
    rev = direct.commit(NOTES, (name,), [Put({"name": name, "size": 1}, ABSENT)]).rev
    proxy.keep_request()
    outcome = store.commit(NOTES, (name,), [Put({"name": name, "size": 2}, rev)])
    assert outcome and proxy.happened.is_set()
    assert direct.commit(NOTES, (name,), [Put({"name": name, "size": 3}, outcome.rev)])
    proxy.release()
    assert sizes(direct, name) == 3


def test_a_request_that_hangs_and_wins_after_all(
    store: CassandraStore, proxy: Proxy, direct: CassandraStore, name: str
) -> None:
    """The repetition meets its own revision."""
    proxy.keep_request()
    with ThreadPoolExecutor(1) as pool:
        outcome = pool.submit(store.commit, NOTES, (name,), [Put({"name": name, "size": 1}, ABSENT)])
        assert proxy.happened.wait(30)
        proxy.release()
        assert outcome.result()
    assert sizes(direct, name) == 1


def test_what_can_not_be_learnt_is_unknown(proxy: Proxy, options: Options, direct: CassandraStore, name: str) -> None:
    through = dataclasses.replace(options, contact_points=(("127.0.0.1", proxy.port),), request_timeout=2.0)
    store = CassandraStore(through)
    assert store.get(NOTES, (name,)) is None
    assert not store.commit(NOTES, (name,), [Put({"name": name}, "0" * 32)])  # now the statement is prepared
    proxy.lose_answer(proxy.refuse)
    with pytest.raises(Unknown):
        store.commit(NOTES, (name,), [Put({"name": name, "size": 1}, ABSENT)])
    assert sizes(direct, name) == 1
    store.close()


def test_what_was_never_sent_is_unavailable(
    store: CassandraStore, proxy: Proxy, direct: CassandraStore, name: str
) -> None:
    proxy.shut()
    with pytest.raises(Unavailable):
        while True:  # until the driver has noticed
            store.get(NOTES, (name,))
    with pytest.raises(Unavailable):
        store.commit(NOTES, (name,), [Put({"name": name}, ABSENT)])
    assert direct.get(NOTES, (name,)) is None


def test_a_session_finds_back(store: CassandraStore, proxy: Proxy, direct: CassandraStore, name: str) -> None:
    proxy.lose_request()
    with pytest.raises((Unavailable, Unknown)):
        store.put(LINES, line(name, note="n"))
    while True:
        try:
            store.put(LINES, line(name, note="n"))
            break
        except Unavailable:
            pass
    assert direct.get(LINES, (name, 1, "a")) == line(name, note="n")


def test_a_revision_tells_what_its_row_has() -> None:
    statements = Statements("k", NOTES)
    assert statements.regular == ("body", "size", "raw", "at")
    row: Row = {"name": "n", "body": None, "size": 5, "raw": None, "at": 1}
    rev = new_rev(statements, [row, row | {"raw": b""}])
    assert columns_of(statements, rev) == 0b1110
    assert columns_of(statements, "0" * 32) == columns_of(statements, "") == 0b1111
    other = Statements("k", cas("notes", "name", name=Type.TEXT, size=Type.INT, body=Type.TEXT))
    assert columns_of(other, rev) == 0b11
    assert new_rev(statements, [row])[:32] != new_rev(statements, [row])[:32]


def test_nothing_is_buried_that_was_not_there(direct: CassandraStore, options: Options, name: str) -> None:
    """An original is replaced four times and keeps half of its columns null: they leave no tombstones."""
    direct.create([ORIGINALS])

    def tombstones() -> int:
        query = f"SELECT * FROM {options.keyspace}.originals WHERE original_id = %s"
        answer = direct._sessions.live().session.execute(query, (name,), trace=True)
        events = [event.description for event in answer.get_query_trace(60).events]
        [count] = [int(found[1]) for text in events if (found := re.search(r"(\d+) tombstone cells", text))]
        return count

    row: Row = {"original_id": name, "status": "PROCESSING", "trying": "t", "lease_owner": "o"}
    rev = direct.commit(ORIGINALS, (name,), [Put(row, ABSENT)]).rev
    assert tombstones() == 0
    rev = direct.commit(ORIGINALS, (name,), [Put({"original_id": name, "status": "OK", "attempt": "t"}, rev)]).rev
    assert tombstones() == 2
    assert direct.get(ORIGINALS, (name,), columns=["status", "trying", "attempt"]) == {
        "status": "OK",
        "trying": None,
        "attempt": "t",
        "rev": rev,
    }
