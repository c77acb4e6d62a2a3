import pytest

from app.waiting import Waiting, preferred_wait


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("wait=10", 10),
        ("respond-async, wait=10", 10),
        ('WAIT = "5" ; x=y', 5),
        ("wait=1, wait=2", 1),
        ("wait", None),
        ("wait=", None),
        ("wait=-1", None),
        ("wait=1.5", None),
        ("wait=soon", None),
        ("wait=" + "9" * 4000, None),
        ("x" * 60_000, None),
        (" " * 60_000 + "=", None),
    ],
)
def test_preferred_wait(header, seconds):
    assert preferred_wait(header) == seconds


class Time:
    def __init__(self):
        self.now, self.slept = 0.0, 0.0

    def sleep(self, seconds):
        self.now += seconds
        self.slept += seconds


def waiting(waiters, longest, time):
    return Waiting(waiters, longest, clock=lambda: time.now, sleep=time.sleep)


def test_it_looks_until_it_is_done():
    time, seen = Time(), iter([1, 2, 3, 4])
    assert waiting(1, 60, time).until(lambda: next(seen), lambda number: number == 3, 30) == 3
    assert 0 < time.slept < 1


@pytest.mark.parametrize(("preferred", "longest", "waited"), [(5, 60, 5), (500, 60, 60), (0, 60, 0)])
def test_it_gives_what_was_seen_last_when_the_time_is_over(preferred, longest, waited):
    time = Time()
    assert waiting(1, longest, time).until(lambda: "queued", lambda _: False, preferred) == "queued"
    assert time.slept == pytest.approx(waited)


def test_who_finds_all_places_taken_waits_not_at_all():
    time = Time()
    few = waiting(1, 60, time)
    inner = []

    def look():
        inner.append(few.until(lambda: "seen", lambda _: True, 10))
        return "outer"

    assert few.until(look, lambda _: True, 10) == "outer"
    assert inner == [None]
    assert few.until(lambda: "again", lambda _: True, 10) == "again"  # the place is free again
    assert waiting(0, 60, time).until(lambda: "seen", lambda _: True, 10) is None


def test_a_failing_look_frees_the_place():
    few = waiting(1, 60, Time())
    with pytest.raises(ZeroDivisionError):
        few.until(lambda: 1 / 0, lambda _: True, 10)
    assert few.until(lambda: "seen", lambda _: True, 10) == "seen"
