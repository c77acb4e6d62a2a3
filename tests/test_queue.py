"""Claims, leases and the queue by host, on every store that is at hand."""

import threading

import pytest

from ingest.fetch.outcome import Fetched, Outcome
from ingest.leases import LEASE, Lease, Mark
from ingest.records import Status
from ingest.schedule import MINUTE as BUCKET
from storage.errors import Unavailable
from storage.schema import CANDIDATES, LEASES, ORIGINALS, QUEUE, QUEUE_OPEN, URLS
from storage.table import Put
from tests.domain import HOUR, MINUTE, SECOND, STORES, Domain, make_store


@pytest.fixture(params=STORES)
def domain(request, tmp_path):
    store = make_store(request.param, tmp_path)
    yield Domain(store)
    store.close()


def test_a_claim_is_announced_and_leased(domain):
    _, original = domain.attach()
    claim = domain.claim()
    row = domain.store.get(ORIGINALS, (original.original_id,))
    assert (row["status"], row["lease_owner"], row["trying"]) == (Status.PROCESSING, "one", claim.attempt)
    assert domain.time[0] < row["lease_until"] <= domain.time[0] + LEASE
    announced = {(row["kind"], row["id"]) for row in domain.rows(CANDIDATES)}
    assert ("blob", f"{original.original_id}/{claim.attempt}") in announced


def test_nobody_else_gets_it_while_the_lease_runs_and_everybody_after(domain):
    domain.attach()
    claim, other = domain.claim(), domain.also("two")
    assert other.claim() is None
    domain.pass_(LEASE // 2)
    claim.renew()
    domain.pass_(LEASE * 3 // 4)
    assert other.claim() is None
    domain.pass_(LEASE + MINUTE)
    taken = other.claim()
    assert taken.original.original_id == claim.original.original_id
    assert taken.original.lost_leases == 1


def test_an_owner_known_to_be_dead_is_passed_over_at_once(domain):
    domain.attach()
    domain.claim()
    assert domain.also("two").claim() is None  # it doesn't know
    knowing = domain.also("three")
    knowing.dead.add("one")
    assert knowing.claim().original.lost_leases == 1


def test_the_third_lost_lease_ends_it(domain):
    reference, _ = domain.attach()
    for lost in range(3):
        worker = domain.also(f"worker{lost}")
        assert worker.claim().original.lost_leases == lost
        domain.pass_(LEASE + MINUTE)
    assert domain.also("last").claim() is None
    original = domain.original(reference)
    assert (original.status, original.outcome, original.lost_leases) == (Status.ERROR, "SYSTEM_ERROR", 3)
    assert "died 3 times" in original.reason


def test_the_log_tells_of_lost_leases(domain):
    reference, _ = domain.attach()
    for lost in range(3):
        domain.also(f"worker{lost}").claim()
        domain.pass_(LEASE + MINUTE)
    domain.also("last").claim()
    lines = [line.message for line in domain.logs.lines([reference])]
    assert [line.partition(";")[0] for line in lines[1:]] == [
        "the worker died during a try, or lost its lease (1 of 3)",
        "the worker died during a try, or lost its lease (2 of 3)",
        "SYSTEM_ERROR: the worker died 3 times while it worked on this",
    ]


def test_a_late_outcome_is_lost_and_touches_nothing(domain):
    reference, _ = domain.attach()
    late = domain.claim()
    domain.pass_(LEASE + MINUTE)
    successor = domain.also("two").claim()
    assert not late.conclude(status=Status.OK, attempt=late.attempt)
    assert late.lost.is_set()
    assert successor.conclude(status=Status.OK, attempt=successor.attempt)
    assert domain.original(reference).attempt == successor.attempt


def test_a_claim_survives_a_new_revision_that_left_it_alone(domain):
    _, original = domain.attach()
    claim = domain.claim()
    domain.sweep.blob(original.original_id, "0" * 32)  # bumps the revision
    assert claim.conclude(status=Status.OK, attempt=claim.attempt)


def test_a_job_given_back_is_claimed_again_and_not_counted(domain):
    domain.attach()
    domain.claim().conclude(status=Status.PROCESSING)
    domain.pass_(MINUTE)
    again = domain.claim()
    assert (again.original.lost_leases, again.original.failures) == (0, None)


def test_a_retry_is_claimed_when_due_and_not_before(domain):
    reference, _ = domain.attach()
    domain.fetcher.answers["http://a.example/1"] = Fetched(
        Outcome.HTTP_ERROR, "answered 503", transient=True, counted=True, http_status=503
    )
    assert domain.work() == 1
    original = domain.original(reference)
    assert (original.status, original.failures) == (Status.RETRY, 1)
    domain.pass_(30 * SECOND)
    assert domain.claim() is None
    domain.pass_(31 * SECOND)
    assert domain.work() == 1
    assert domain.original(reference).failures == 2


def test_two_workers_share_a_hosts_queue_without_doing_anything_twice(domain):
    for number in range(150):  # more than two pages of a bucket
        domain.attach(f"http://a.example/{number}")
    other, done = domain.also("two"), []
    while True:
        claims = [claim for claim in (domain.claim(), other.claim()) if claim is not None]
        if not claims:
            break
        for claim in claims:
            done.append(claim.original.url)
            assert claim.conclude(status=Status.OK, attempt=claim.attempt)
    assert len(done) == len(set(done)) == 150


def test_a_host_has_no_more_turns_than_connections_over_all_workers(domain):
    for number in range(5):
        domain.attach(f"http://slow.example/{number}")
    other = domain.also("two")
    domain.pass_(SECOND)
    with domain.queue.turn() as first, domain.queue.turn() as second:
        assert (first.host, second.host) == ("slow.example", "slow.example")
        with domain.queue.turn() as third, other.queue.turn() as fourth:
            assert third is fourth is None
        domain.attach("http://quick.example/")
        domain.pass_(SECOND)
        with domain.queue.turn() as another:
            assert another.host == "quick.example"
    domain.pass_(SECOND)
    with other.queue.turn() as one, other.queue.turn() as two, other.queue.turn() as three:
        assert "slow.example" in {turn.host for turn in (one, two, three)}


def test_every_host_gets_its_turn(domain):
    for host in range(10):
        for number in range(3):
            domain.attach(f"http://h{host}.example/{number}")
    seen = set()
    for _ in range(60):
        claim = domain.claim()
        if claim is None:
            break
        seen.add(claim.original.host)
        claim.conclude(status=Status.OK, attempt=claim.attempt)
    assert seen == {f"h{host}.example" for host in range(10)}


def test_an_original_that_lost_its_url_is_not_fetched(domain):
    """The loser of a race of two PUTs: announced, queued, named by no URL."""
    _, original = domain.attach()
    domain.references.detach(domain.references.page("ctx", limit=1)[0][0].reference_id)
    row = domain.store.get(URLS, (original.url,))
    domain.store.commit(URLS, (original.url,), [Put(row | {"original_id": "another"}, row["rev"])])
    assert domain.claim() is None


def test_tidy_erases_old_buckets_without_work_and_keeps_the_others(domain):
    domain.attach("http://a.example/done")
    domain.work()
    _, waiting = domain.attach("http://b.example/waits")
    domain.queue.tidy()
    assert {row["host"] for row in domain.rows(QUEUE_OPEN)} == {"a.example", "b.example"}  # too young
    domain.pass_(2 * HOUR)
    domain.queue.tidy()
    assert {row["host"] for row in domain.rows(QUEUE_OPEN)} == {"b.example"}
    assert {row["host"] for row in domain.rows(QUEUE)} == {"b.example"}
    assert Mark(domain.store, "queue").read() == waiting.due // BUCKET
    assert domain.also("late").claim().original.original_id == waiting.original_id


def test_waiting_lists_what_is_queued_due_or_not(domain):
    domain.attach("http://a.example/1")
    domain.attach("http://b.example/1")
    domain.claim().conclude(status=Status.OK, attempt="x")
    assert len(list(domain.queue.waiting())) == 1


def test_a_named_lease_is_held_renewed_released_and_taken_from_the_dead(domain):
    def lease(owner):
        return Lease(domain.store, "job", owner, domain.clock, domain.dead.__contains__)

    one, two = lease("one"), lease("two")
    assert one.take() and not two.take()
    domain.pass_(LEASE // 2)
    assert one.take()
    domain.pass_(LEASE // 2)
    assert not two.take()  # it was renewed
    one.release()
    assert domain.rows(LEASES)[0]["name"].startswith("mark:")
    assert two.take() and not one.take()
    domain.pass_(LEASE)
    assert one.take()
    domain.dead.add("one")
    assert two.take()


def test_a_mark_only_moves_forward(domain):
    mark = Mark(domain.store, "test")
    assert mark.read() == 0
    mark.advance(7)
    mark.advance(3)
    assert mark.read() == 7


def test_many_threads_claim_each_original_once(tmp_path):
    domain = Domain(make_store("sqlite", tmp_path))
    for number in range(60):
        domain.attach(f"http://h{number % 6}.example/{number}")
    domain.pass_(SECOND)
    done, lock = [], threading.Lock()

    def work(worker):
        while True:
            with worker.queue.turn() as turn:
                claims = [] if turn is None else turn.claims()
                mine = 0
                for claim in claims:
                    with lock:
                        done.append(claim.original.url)
                    claim.conclude(status=Status.OK, attempt=claim.attempt)
                    mine += 1
            with lock:
                if len(done) >= 60:
                    return
            if not mine:
                domain.pass_(SECOND)

    workers = [domain.also(f"w{number}") for number in range(3)]
    threads = [threading.Thread(target=work, args=(worker,)) for worker in workers for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(done) == sorted({f"http://h{number % 6}.example/{number}" for number in range(60)})
    domain.store.close()


# a store that fails for a while


def within_a_minute(worker):
    """The first claim of a worker that looks each second for a minute."""
    return next(filter(None, (worker.claim() for _ in range(60))), None)


class Failing:
    """A store whose calls raise Unavailable where ``fails`` says so of the verb and the first argument."""

    def __init__(self, store):
        self._store = store
        self.fails = lambda verb, first: False

    def __getattr__(self, name):
        found = getattr(self._store, name)
        if name not in ("get", "fetch", "read", "put", "put_many", "commit"):
            return found

        def call(first, *more, **named):
            if self.fails(name, first):
                raise Unavailable("down")
            return found(first, *more, **named)

        return call


@pytest.fixture
def failing(domain):
    """Another worker, by way of a store that can fail, ten minutes after the entries came."""
    domain.pass_(10 * MINUTE)
    return Domain(Failing(domain.store), "failing", (), domain.time)


def test_a_worker_that_starts_while_the_store_is_down_finds_the_backlog_afterwards(domain, failing):
    _, original = domain.attach()
    domain.pass_(10 * MINUTE)
    failing.store.fails = lambda verb, first: True
    with pytest.raises(Unavailable):
        failing.claim()
    failing.store.fails = lambda verb, first: False
    assert within_a_minute(failing).original.original_id == original.original_id


@pytest.mark.parametrize("table", [LEASES, QUEUE_OPEN])
def test_an_hourly_look_that_fails_loses_no_cursor(domain, failing, table):
    for number in range(200):
        domain.attach(f"http://a.example/{number}")
    domain.pass_(10 * MINUTE)
    done = set()
    for number in range(200):
        if number == 10:
            domain.pass_(HOUR)
            failing.store.fails = lambda verb, first: verb in ("get", "read") and first == table
            with pytest.raises(Unavailable):
                failing.claim()
            failing.store.fails = lambda verb, first: False
        claim = within_a_minute(failing)
        claim.conclude(status=Status.OK)
        done.add(claim.original.original_id)
    assert len(done) == 200


def test_what_others_hold_is_not_forgotten_by_a_look_that_fails(domain, failing):
    _, original = domain.attach()
    domain.pass_(10 * MINUTE)
    assert domain.claim() and failing.claim() is None
    domain.pass_(LEASE)
    failing.store.fails = lambda verb, first: verb == "fetch"
    with pytest.raises(Unavailable):
        failing.claim()
    failing.store.fails = lambda verb, first: verb == "get" and first == URLS
    with pytest.raises(Unavailable):
        failing.claim()
    failing.store.fails = lambda verb, first: False
    assert within_a_minute(failing).original.original_id == original.original_id


def test_a_workers_own_claim_is_taken_again_when_its_outcome_could_not_be_written(domain, failing):
    domain.attach()
    domain.pass_(10 * MINUTE)
    with failing.queue.turn() as turn:
        for claim in turn.claims():
            failing.store.fails = lambda verb, first: True
            with pytest.raises(Unavailable):
                failing.jobs.run(claim, threading.Event())
            break
        failing.store.fails = lambda verb, first: False
    domain.pass_(LEASE)
    assert within_a_minute(failing).original.lost_leases == 1


def test_what_is_done_is_not_looked_at_again(domain):
    domain.attach()
    domain.pass_(SECOND)
    with domain.queue.turn() as turn:
        for claim in turn.claims():
            held = domain.queue._hosts["a.example"].held
            assert list(held) == [claim.original.original_id]
            domain.jobs.run(claim, threading.Event())
        assert not held
