"""The worker's threads: slow hosts leave the quick ones theirs, a stop gives back what runs."""

import itertools
import threading
from contextlib import contextmanager

import pytest

from ingest import worker as module
from ingest.claims import Claim
from ingest.fetch.outcome import Fetched, Outcome
from ingest.records import Status
from ingest.worker import Worker
from tests.domain import SECOND, Domain, make_store


@pytest.fixture
def domain(tmp_path):
    """Its clock moves by a second at each look, so that polls come due."""
    store = make_store("sqlite", tmp_path)
    ticks = itertools.count(1)
    domain = Domain(store)
    start = domain.time[0]
    domain.time = _Ticking(start, ticks)
    yield domain
    store.close()


class _Ticking(list):
    """A moment that goes on by a hundredth of a second whenever it is read."""

    def __init__(self, start, ticks):
        super().__init__([start])
        self._lock = threading.Lock()

    def __getitem__(self, index):
        with self._lock:
            super().__setitem__(0, super().__getitem__(0) + SECOND // 100)
            return super().__getitem__(0)


def test_slow_hosts_do_not_starve_a_quick_one(domain):
    """Two threads; four slow jobs hold theirs until the quick one is done."""
    quick_done = threading.Event()

    def slow(stop):
        assert quick_done.wait(60)
        return Fetched(Outcome.HTTP_ERROR, "answered 404", counted=True, http_status=404)

    for number in range(4):
        url = f"http://slow{number}.example/"
        domain.fetcher.answers[url] = slow
        domain.attach(url)
    moments = itertools.count(0, module.SLOW_AFTER)  # every look at the time finds all running jobs slow
    worker = Worker(
        domain.queue,
        domain.jobs,
        threads=2,
        sweep=lambda: None,
        sweep_interval=3600,
        monotonic=lambda: float(next(moments)),
    )
    stop = threading.Event()
    runner = threading.Thread(target=worker.run, args=(stop,))
    runner.start()
    try:
        while len(domain.fetcher.asked) < 2:
            stop.wait(0.01)
        quick, _ = domain.attach("http://quick.example/")
        while domain.original(quick).status != Status.OK:
            assert not stop.wait(0.05)
    finally:
        quick_done.set()
        stop.set()
        runner.join(60)
    assert not runner.is_alive()


@contextmanager
def running(domain, sweep=lambda: None):
    """A worker with one thread, that is stopped in the end."""
    worker = Worker(domain.queue, domain.jobs, threads=1, sweep=sweep, sweep_interval=3600)
    stop = threading.Event()
    runner = threading.Thread(target=worker.run, args=(stop,))
    runner.start()
    try:
        yield
    finally:
        stop.set()
        runner.join(120)
    assert not runner.is_alive()


def test_a_stop_ends_the_threads_and_gives_the_job_back(domain):
    started = threading.Event()

    def until_stopped(stop):
        started.set()
        assert stop.wait(60)
        return Fetched(Outcome.NETWORK_ERROR, "stopped", transient=True)

    domain.fetcher.answers["http://a.example/"] = until_stopped
    reference, _ = domain.attach("http://a.example/")
    with running(domain):
        assert started.wait(60)
    original = domain.original(reference)
    assert (original.status, original.lease_owner, original.failures) == (Status.PROCESSING, None, None)


def test_a_job_that_goes_on_after_the_stop_keeps_its_lease(domain, monkeypatch):
    monkeypatch.setattr(module, "LEASE", SECOND // 10)
    started, stopped, renewed, outcomes = threading.Event(), threading.Event(), threading.Event(), []
    renew = Claim.renew

    def renewing(claim):
        renew(claim)
        if stopped.is_set():
            renewed.set()

    def until_renewed(stop):
        started.set()
        assert stop.wait(60)
        stopped.set()
        outcomes.append(renewed.wait(60))
        return Fetched(Outcome.HTTP_ERROR, "answered 404", counted=True, http_status=404)

    monkeypatch.setattr(Claim, "renew", renewing)
    domain.fetcher.answers["http://a.example/"] = until_renewed
    domain.attach("http://a.example/")
    with running(domain):
        assert started.wait(60)
    assert outcomes == [True]


def test_the_sweep_runs_beside_the_work(domain):
    swept = threading.Event()
    with running(domain, swept.set):
        assert swept.wait(60)
