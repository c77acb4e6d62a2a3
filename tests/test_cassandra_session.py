"""Sessions: lazily made, never across a fork, again when a node comes; and the gate that bounds what is on its way."""

from __future__ import annotations

import dataclasses
import gc
import os
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from storage import cassandra_reads
from storage.cassandra import CassandraStore
from storage.cassandra_options import Options, replication
from storage.cassandra_reads import page_of
from storage.cassandra_requests import Pending
from storage.cassandra_session import Gate, Sessions
from storage.cassandra_statements import Statements
from storage.contract_rows import LINES, NOTES, PIECES, line
from storage.errors import StoreError, TooLarge, Unavailable
from storage.table import ABSENT, Put, Slice, Table, Type, plain
from tests.cassandra_proxy import Proxy


@pytest.fixture(scope="module")
def options(cassandra: str) -> Options:
    return Options(((cassandra, 9042),), f"session_{uuid.uuid4().hex[:12]}", replication("1"), request_timeout=8.0)


@pytest.fixture(scope="module")
def store(options: Options) -> Iterator[CassandraStore]:
    store = CassandraStore(options)
    store.create([LINES, NOTES, PIECES])
    yield store
    store.close()


@pytest.fixture
def book() -> str:
    return uuid.uuid4().hex


def test_a_child_makes_a_session_of_its_own(store: CassandraStore, options: Options, book: str) -> None:
    """Run apart, for pytest's own processes don't fork: a parent that is connected forks, and both go on."""
    source = (
        "import os, sys\n"
        "from storage.cassandra import CassandraStore\n"
        "from storage.cassandra_options import Options\n"
        "from storage.contract_rows import LINES, line\n"
        f"store = CassandraStore(Options({options.contact_points!r}, {options.keyspace!r}))\n"
        f"store.put(LINES, line({book!r}, 1))\n"
        "children = []\n"
        "for page in (2, 3):\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        f"        store.put(LINES, line({book!r}, page))\n"
        f"        print(store.get(LINES, ({book!r}, 1, 'a'))['page'], flush=True)\n"
        "        sys.exit(0)\n"
        "    children.append(child)\n"
        f"store.put(LINES, line({book!r}, 4))\n"
        "assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]\n"
        f"store.put(LINES, line({book!r}, 5))\n"
        "store.close()\n"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "1\n1\n"), done.stderr
    assert [row["page"] for row in store.read(LINES, (book,), limit=9)] == [1, 2, 3, 4, 5]


def test_no_node_at_the_start(store: CassandraStore, options: Options, cassandra: str, book: str) -> None:
    """Unavailable, at once and again; a node that comes is found by the next request."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    late = CassandraStore(dataclasses.replace(options, contact_points=(("127.0.0.1", port),)))
    for _ in range(3):
        with pytest.raises(Unavailable, match="no node of Cassandra answers"):
            late.get(LINES, (book, 1, "a"))
    with Proxy(cassandra, port):
        while True:
            try:
                late.put(LINES, line(book))
                break
            except Unavailable:
                pass
        assert store.get(LINES, (book, 1, "a")) == line(book)
        late.close()


def test_a_node_that_hangs_at_the_start(options: Options, book: str) -> None:
    """Each request ends within the bound, also those that wait for another's try to connect."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        point = silent.getsockname()[:2]
        late = CassandraStore(dataclasses.replace(options, contact_points=(point,), request_timeout=1.0))

        def ask(_: int) -> str:
            with pytest.raises(Unavailable) as raised:
                late.get(LINES, (book, 1, "a"))
            return str(raised.value)

        with ThreadPoolExecutor(6) as pool:
            assert all("no node of Cassandra answers" in said for said in pool.map(ask, range(6)))
        late.close()


def test_after_a_failure_nobody_tries_for_a_while() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        point = free.getsockname()[:2]
    now = [100.0]
    sessions = Sessions(Options((point,), request_timeout=1.0), clock=lambda: now[0])
    raised = []
    for moment in (100.0, 100.4, 100.6):
        now[0] = moment
        with pytest.raises(Unavailable) as caught:
            sessions.live()
        raised.append(caught.value)
    assert raised[0] is raised[1] is not raised[2]


def test_a_closed_store_stays_closed(options: Options, book: str) -> None:
    store = CassandraStore(options)
    assert store.get(LINES, (book, 1, "a")) is None
    store.close()
    store.close()
    with pytest.raises(Unavailable, match="closed"):
        store.get(LINES, (book, 1, "a"))


def test_a_missing_table_says_what_to_do(store: CassandraStore, book: str) -> None:
    with pytest.raises(StoreError, match="magazin init"):
        store.get(plain("absent", "a", a=Type.TEXT), (book,))


def test_keys_that_cassandra_has_not(store: CassandraStore) -> None:
    with pytest.raises(TooLarge):
        store.put(LINES, line("x" * 65_536))
    with pytest.raises(TooLarge):
        store.put(LINES, line("x", 1, "y" * 65_536))
    with pytest.raises(StoreError, match="empty"):
        store.put(LINES, line(""))
    with pytest.raises(ValueError, match="years"):
        store.put(LINES, line("x", at=300_000_000_000_000_000))


def test_many_large_writes_at_once_wait_for_each_other(store: CassandraStore, book: str) -> None:
    """The driver alone refuses most of them: its socket is full."""
    data = os.urandom(255 * 1024)

    def write(number: int) -> None:
        rows = [{"owner": book, "bucket": number, "number": n, "data": data} for n in range(4)]
        store.put_many(((PIECES, row) for row in rows), window=4)

    with ThreadPoolExecutor(32) as pool:
        list(pool.map(write, range(32)))
    found = store.fetch((Slice(PIECES, (book, number), columns=("number",)) for number in range(32)), window=8)
    assert [len(rows) for rows in found] == [4] * 32


def test_a_stamped_erase_beats_later_writes(store: CassandraStore, book: str) -> None:
    """Of a writer that was late, whatever its clock says."""
    store.put(LINES, line(book))
    store.erase(LINES, (book,))
    store.put(LINES, line(book))
    assert store.read(LINES, (book,), limit=9) == []
    rev = store.commit(NOTES, (book,), [Put({"name": book}, ABSENT)]).rev
    store.erase(NOTES, (book,))
    store.commit(NOTES, (book,), [Put({"name": book, "size": 1}, rev)])
    assert store.get(NOTES, (book,)) is None


def test_the_gate_counts_bytes() -> None:
    gate = Gate(100)
    first = gate.enter(60, 0.0)
    second = gate.enter(40, 0.0)
    with pytest.raises(Unavailable, match="too slow"):
        gate.enter(1, 0.0)
    second(None)
    second(None)
    third = gate.enter(40, 0.0)
    with pytest.raises(Unavailable):
        gate.enter(1, 0.0)
    first(None)
    third(None)
    alone = gate.enter(5000, 0.0)  # more than there is room for, but alone
    with pytest.raises(Unavailable):
        gate.enter(1, 0.0)
    alone(None)
    gate.enter(100, 0.0)


def test_who_waits_at_the_gate_is_let_in() -> None:
    gate = Gate(10)
    leave = gate.enter(10, 0.0)
    entered = threading.Event()

    def wait() -> None:
        gate.enter(10, 60.0)
        entered.set()

    thread = threading.Thread(target=wait)
    thread.start()
    leave(None)
    thread.join()
    assert entered.is_set()


@pytest.mark.parametrize(
    ("table", "columns", "rows"),
    [
        (LINES, None, 1000),
        (PIECES, None, 4),
        (PIECES, ("owner", "data"), 4),
        (PIECES, ("owner", "bucket", "number"), 16),
        (PIECES, ("owner", "bucket"), 16),
    ],
)
def test_pages_that_a_node_can_load(table: Table, columns: tuple[str, ...] | None, rows: int) -> None:
    assert page_of(table, Statements("k", table).scan(columns), 5000) == rows
    assert page_of(table, Statements("k", table).scan(columns), 3) == 3


@pytest.mark.stress
def test_a_walk_over_more_parts_than_a_node_has_memory_for(store: CassandraStore, book: str) -> None:
    data = os.urandom(1 << 19)
    rows = ((PIECES, {"owner": book, "bucket": n, "number": 0, "data": data}) for n in range(1200))
    store.put_many(rows)
    for columns in (PIECES.partition, PIECES.key):
        seen, cursor = set(), None
        while True:
            page, cursor = store.scan(PIECES, cursor, limit=5000, columns=columns)
            seen |= {row["bucket"] for row in page if row["owner"] == book}
            if cursor is None:
                break
        assert len(seen) == 1200


def test_a_walk_over_partitions_gives_each_once(store: CassandraStore, book: str) -> None:
    store.put_many((PIECES, {"owner": book, "bucket": n % 3, "number": n, "data": b"d"}) for n in range(30))
    found, cursor = [], None
    while True:
        page, cursor = store.scan(PIECES, cursor, columns=("bucket", "owner"))
        found += [row["bucket"] for row in page if row["owner"] == book]
        if cursor is None:
            break
    assert sorted(found) == [0, 1, 2]


def test_pages_after_the_first_that_get_lost_are_asked_for_again(
    store: CassandraStore, options: Options, cassandra: str, book: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put_many((LINES, line(book, page)) for page in range(2500))
    with Proxy(cassandra) as proxy:
        behind = CassandraStore(dataclasses.replace(options, contact_points=(("127.0.0.1", proxy.port),)))
        assert behind.get(LINES, (book, 0, "a")) is not None
        asked = []

        def pending(*arguments: Any) -> Pending:
            asked.append(arguments)
            if len(asked) == 2:
                proxy.keep_request()
            return Pending(*arguments)

        monkeypatch.setattr(cassandra_reads, "Pending", pending)
        found = behind.read(LINES, (book,), limit=2400, columns=("page",))
        assert [row["page"] for row in found] == list(range(2400))
        assert proxy.happened.is_set() and len(asked) == 3
        behind.close()


def test_of_two_that_prepare_at_once_the_driver_knows_what_is_kept(
    store: CassandraStore, options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver forgets what nobody holds, and could then not prepare it again at a node that has forgotten it."""
    live, text = store._sessions.live(), f"SELECT at FROM {options.keyspace}.{LINES.name} WHERE book = ?"
    prepare = live.session.prepare

    def both(text: str) -> object:
        slower = prepare(text)
        live._prepared.setdefault(text, prepare(text))
        return slower

    monkeypatch.setattr(live.session, "prepare", both)
    kept = live.prepared(text)
    gc.collect()
    assert live.prepared(text) is kept is live.cluster._prepared_statements[kept.query_id]
