"""The queue on a real node: what was worked off leaves no heap of tombstones that somebody has to read."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from ingest.schedule import MINUTE, MINUTES_A_DAY
from storage.cassandra import CassandraStore
from storage.cassandra_options import Options, replication
from storage.errors import StoreError
from storage.schema import QUEUE, QUEUE_OPEN
from storage.table import Table
from tests.domain import HOUR, Domain


@pytest.fixture
def store(cassandra: str) -> Iterator[CassandraStore]:
    store = CassandraStore(Options(((cassandra, 9042),), f"queue_{uuid.uuid4().hex[:12]}", replication("1")))
    yield store
    store.close()


def tombstones(store: CassandraStore, table: Table) -> int:
    """The most that any read of the table has met."""
    query = "SELECT max FROM system_views.tombstones_per_read WHERE keyspace_name = %s AND table_name = %s"
    return int(store._sessions.execute(query, store._options.keyspace, table.name).one()[0])


def test_what_is_worked_off_is_read_no_more(store: CassandraStore) -> None:
    """Workers that begin anew each hour read what came since, however much was done before."""
    domain = Domain(store)
    for hour in range(12):
        for number in range(4):
            domain.attach(f"http://host{number}.example/{hour}")
        assert domain.also(f"worker {hour}").work() == 4
        domain.pass_(HOUR)
        domain.queue.tidy()
    met = tombstones(store, QUEUE), tombstones(store, QUEUE_OPEN)
    assert met[0] <= 2  # an erased partition is a marker or two, however many entries it had
    assert met[1] < 24  # the rows that were deleted since the mark moved last
    domain.pass_(2 * HOUR)
    domain.queue.tidy()
    assert domain.rows(QUEUE) == domain.rows(QUEUE_OPEN) == []


@pytest.mark.stress
def test_a_host_that_holds_the_mark_back(store: CassandraStore) -> None:
    """One job lies about while 1,000 hosts have had jobs in each of two hours' minutes, more than one read bears."""
    domain = Domain(store)
    domain.pass_(HOUR - domain.clock() % HOUR)
    domain.attach("http://slow.example/1")
    first = domain.clock() // MINUTE
    day = first // MINUTES_A_DAY
    rows = [
        {"day": day, "bucket": minute, "host": f"host{number}.example"}
        for minute in range(first + 1, first + 111)
        for number in range(1000)
    ]
    store.put_many(((QUEUE_OPEN, row) for row in rows), window=64)
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda row: store.delete(QUEUE_OPEN, tuple(row.values())), rows))
    domain.pass_(4 * HOUR)
    with pytest.raises(StoreError):
        store.read(QUEUE_OPEN, (day,), after=(first,), limit=1000)
    worker = domain.also("worker")
    assert [original.url for original in worker.queue.waiting()] == ["http://slow.example/1"]
    assert worker.work() == 1
    domain.queue.tidy()
    assert list(worker.queue.waiting()) == []
