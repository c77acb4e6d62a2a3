import socket
import threading

import pytest

from ingest.fetch.failure import Failure
from ingest.fetch.outcome import Outcome
from ingest.fetch.watchdog import Watchdog


class Time:
    """Seconds that pass when a test says so."""

    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    ours.settimeout(10)
    with ours, theirs:
        yield ours, theirs


def test_within_the_deadline_nothing_happens(pair):
    ours, theirs = pair
    with Watchdog(10.0, None, Time()) as watchdog:
        watchdog.watch(ours)
        theirs.send(b"x")
        assert ours.recv(1) == b"x"
        watchdog.check()
    theirs.send(b"y")
    assert ours.recv(1) == b"y"  # the connection outlives the watchdog


def test_at_the_deadline_a_read_ends_and_the_flag_tells_why(pair):
    time = Time()
    with Watchdog(10.0, None, time) as watchdog:
        watchdog.watch(pair[0])
        watchdog.check()
        time.now = 10.0
        assert pair[0].recv(1) == b""  # it looks like a proper end
        with pytest.raises(Failure) as caught:
            watchdog.check()
    assert (caught.value.outcome, caught.value.transient, caught.value.counted) == (Outcome.TIMEOUT, True, True)


def test_told_to_stop(pair):
    stop = threading.Event()
    with Watchdog(10.0, stop, Time()) as watchdog:
        watchdog.watch(pair[0])
        stop.set()
        assert pair[0].recv(1) == b""
        with pytest.raises(Failure) as caught:
            watchdog.check()
    assert (caught.value.outcome, caught.value.transient, caught.value.counted) == (Outcome.SYSTEM_ERROR, True, False)


def test_only_the_last_connection_is_shut(pair):
    time = Time()
    last, peer = socket.socketpair()
    with last, peer, Watchdog(10.0, None, time) as watchdog:
        watchdog.watch(pair[0])
        watchdog.watch(last)
        time.now = 10.0
        assert peer.recv(1) == b""
        pair[1].send(b"x")
        assert pair[0].recv(1) == b"x"


def test_a_socket_object_that_was_closed_meanwhile_and_its_number_reused(pair):
    time = Time()
    with Watchdog(10.0, None, time) as watchdog:
        watchdog.watch(pair[0])
        number = pair[0].detach()  # as TLS does
        with socket.socket(fileno=number):
            time.now = 10.0
            assert pair[1].recv(1) == b""


def test_a_connection_that_comes_too_late_is_refused(pair):
    time = Time()
    with Watchdog(10.0, None, time) as watchdog:
        time.now = 10.0
        with pytest.raises(Failure):
            watchdog.call(threading.Event().wait)
        with pytest.raises(Failure):
            watchdog.watch(pair[0])
        assert pair[1].recv(1) == b""


def test_a_call_gives_its_result_or_its_error():
    def fail():
        raise KeyError("x")

    with Watchdog(10.0, None, Time()) as watchdog:
        assert watchdog.call(lambda: 7) == 7
        with pytest.raises(KeyError):
            watchdog.call(fail)


def test_a_call_that_hangs_is_left(pair):
    time, release = Time(), threading.Event()

    def hang():
        time.now = 10.0
        release.wait()

    with Watchdog(10.0, None, time) as watchdog, pytest.raises(Failure):
        watchdog.call(hang)
    release.set()


def test_nothing_is_left_behind(pair):
    before = set(threading.enumerate())  # some of which may end by themselves
    with Watchdog(10.0, None, Time()) as watchdog:
        watchdog.watch(pair[0])
    assert set(threading.enumerate()) <= before
    pair[0].close()
    assert pair[1].recv(1) == b""  # no duplicate keeps the connection open
