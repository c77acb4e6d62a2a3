"""Threads of one process, with locks, clock and pauses that come in. Real processes are in cache/test_processes.py."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from storage.singleflight import Busy, SingleFlight


def nothing():
    return None


def unmade():
    raise AssertionError("made twice")


class Clock:
    """Stands still. Tells how often it was read: whoever waits for a flight has read it twice, its leader once."""

    def __init__(self):
        self.now = 0.0
        self._read = threading.Semaphore(0)

    def __call__(self):
        self._read.release()
        return self.now

    def await_reads(self, count):
        for _ in range(count):
            assert self._read.acquire(timeout=20)


class Locks:
    """Gives these tokens one after the other; None is a lock that another process holds."""

    def __init__(self, *tokens):
        self.tokens, self.freed = list(tokens), []

    def take(self, name):
        return self.tokens.pop(0)

    def free(self, token):
        self.freed.append(token)


class Crowd:
    """A leader whose making waits, and followers that wait for it."""

    def __init__(self, followers, *, waiters=50, wait=60.0, make=lambda: b"made", keep=lambda value: None):
        self.clock = Clock()
        self.flights = SingleFlight(wait=wait, waiters=waiters, clock=self.clock)
        self.made, self.released = 0, threading.Event()
        self._pool = ThreadPoolExecutor(followers + 1)
        began = threading.Event()

        def slow():
            self.made += 1
            began.set()
            assert self.released.wait(20)
            return make()

        self.leader = self._pool.submit(self.flights.run, b"a", None, nothing, slow, keep)
        assert began.wait(20)
        self.followers = [
            self._pool.submit(self.flights.run, b"a", None, nothing, self._late, keep) for _ in range(followers)
        ]
        self.clock.await_reads(1 + 2 * followers)

    def _late(self):
        self.made += 1
        return b"late"


def test_of_many_one_makes_and_all_have_it():
    crowd = Crowd(7)
    crowd.released.set()
    assert [one.result(20) for one in (crowd.leader, *crowd.followers)] == [b"made"] * 8
    assert (crowd.made, crowd.flights.waited) == (1, 7)


def test_names_dont_wait_for_each_other():
    crowd = Crowd(0)
    assert crowd.flights.run(b"b", None, nothing, lambda: b"other", lambda value: None) == b"other"
    crowd.released.set()


def test_what_is_found_isnt_made():
    flights = SingleFlight(wait=1, waiters=1)
    assert flights.run(b"a", None, lambda: b"", unmade, unmade) == b""


def test_what_is_made_is_kept():
    kept = []
    assert SingleFlight(wait=1, waiters=1).run(b"a", None, nothing, lambda: b"made", kept.append) == b"made"
    assert kept == [b"made"]


def test_the_makers_exception_reaches_those_who_wait_and_nobody_after():
    def fail():
        raise TimeoutError("from the maker")  # must not be taken for the deadline's

    crowd = Crowd(3, make=fail)
    crowd.released.set()
    for one in (crowd.leader, *crowd.followers):
        with pytest.raises(TimeoutError, match="from the maker"):
            one.result(20)
    assert crowd.made == 1
    assert crowd.flights.run(b"a", None, nothing, lambda: b"now", lambda value: None) == b"now"


def test_when_the_makers_thread_ends_one_of_the_others_makes():
    def leave():
        raise SystemExit

    crowd = Crowd(3, make=leave)
    crowd.released.set()
    with pytest.raises(SystemExit):
        crowd.leader.result(20)
    assert {one.result(20) for one in crowd.followers} == {b"late"}
    assert 2 <= crowd.made <= 4  # each that comes after the last flight was over makes


def test_those_who_wait_dont_wait_for_the_disk():
    slow_disk = threading.Event()
    crowd = Crowd(2, keep=lambda value: slow_disk.wait(20))
    crowd.released.set()
    assert [one.result(20) for one in crowd.followers] == [b"made"] * 2
    assert not crowd.leader.done()
    assert crowd.flights.run(b"a", None, nothing, unmade, unmade) == b"made"
    slow_disk.set()
    assert crowd.leader.result(20) == b"made"


def test_nobody_waits_beyond_the_deadline():
    crowd = Crowd(0, wait=0.0)
    with pytest.raises(Busy, match="deadline"):
        crowd.flights.run(b"a", None, nothing, unmade, unmade)
    crowd.released.set()
    assert crowd.leader.result(20) == b"made"


def test_no_more_wait_than_there_are_places():
    crowd = Crowd(2, waiters=2)
    with pytest.raises(Busy, match="too many"):
        crowd.flights.run(b"a", None, nothing, unmade, unmade)
    crowd.released.set()
    assert [one.result(20) for one in crowd.followers] == [b"made"] * 2
    again = Locks(None, 1)  # the places are free again
    assert crowd.flights.run(b"a", again, nothing, lambda: b"new", lambda value: None) == b"new"


def test_another_processs_value_is_looked_for_once_the_lock_is_had():
    pauses, locks, seen = [], Locks(None, None, None, 7), []
    flights = SingleFlight(wait=30.0, waiters=1, clock=Clock(), sleep=pauses.append)

    def look():
        seen.append(len(locks.tokens))
        return b"theirs"

    assert flights.run(b"a", locks, look, unmade, unmade) == b"theirs"
    assert (seen, locks.freed, flights.waited) == ([0], [7], 1)
    assert pauses == [0.002, 0.004, 0.008]


def test_a_lock_isnt_waited_for_beyond_the_deadline():
    clock, pauses = Clock(), []

    def sleep(seconds):
        pauses.append(seconds)
        clock.now += seconds

    locks = Locks(*[None] * 1000)
    flights = SingleFlight(wait=0.5, waiters=1, clock=clock, sleep=sleep)
    with pytest.raises(Busy, match="another process"):
        flights.run(b"a", locks, nothing, unmade, unmade)
    assert sum(pauses) == pytest.approx(0.5)
    assert max(pauses) == 0.05
    assert len(locks.tokens) > 900
    # and the name is free for the next
    assert flights.run(b"a", Locks(1), nothing, lambda: b"made", lambda value: None) == b"made"


def test_waiting_for_a_lock_takes_a_place():
    flights = SingleFlight(wait=30.0, waiters=0, clock=Clock())
    with pytest.raises(Busy, match="too many"):
        flights.run(b"a", Locks(None), nothing, unmade, unmade)


def test_the_lock_is_freed_after_a_failure():
    def fail():
        raise ValueError

    locks = Locks(5)
    with pytest.raises(ValueError):
        SingleFlight(wait=1, waiters=1).run(b"a", locks, nothing, fail, unmade)
    assert locks.freed == [5]


def test_without_locks_it_is_made_all_the_same():
    class Refusing(Locks):
        def take(self, name):
            raise PermissionError

    locks = Refusing()
    assert SingleFlight(wait=1, waiters=1).run(b"a", locks, nothing, lambda: b"made", lambda value: None) == b"made"
    assert locks.freed == []


def test_a_leader_that_gives_up_makes_way():
    """Its follower came later and has time left: it leads the next flight, and finds the lock free."""
    clock, asleep, wake = Clock(), threading.Event(), threading.Event()

    def sleep(seconds):
        asleep.set()
        assert wake.wait(20)

    locks = Locks(None, None, 3)
    flights = SingleFlight(wait=10.0, waiters=2, clock=clock, sleep=sleep)
    with ThreadPoolExecutor(2) as pool:
        leader = pool.submit(flights.run, b"a", locks, nothing, unmade, unmade)
        assert asleep.wait(20)
        clock.now = 9.0
        follower = pool.submit(flights.run, b"a", locks, nothing, lambda: b"mine", lambda value: None)
        clock.await_reads(2 + 2)
        clock.now = 11.0
        wake.set()
        with pytest.raises(Busy):
            leader.result(20)
        assert follower.result(20) == b"mine"
