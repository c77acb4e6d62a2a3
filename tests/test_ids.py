"""Ids that are never used again, and ids in the order of time."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor

from storage.ids import Ids, moment_of, system_clock


def test_random_ids_are_uuids_of_version_4() -> None:
    assert Ids(entropy=bytes).random() == "00000000-0000-4000-8000-000000000000"
    assert Ids(entropy=lambda size: b"\xff" * size).random() == "ffffffff-ffff-4fff-bfff-ffffffffffff"
    assert len({Ids().random() for _ in range(1000)}) == 1000


def test_ordered_ids_tell_their_moment() -> None:
    ids = Ids(clock=lambda: 1_796_083_200_123_456, entropy=lambda size: b"\xab" * size)
    made = ids.ordered()
    assert made == "0006618735216240" + "ab" * 8
    assert moment_of(made) == 1_796_083_200_123_456


def test_ordered_ids_are_in_order_whatever_the_clock_does() -> None:
    moments = iter([5000, 5000, 4000, 1, 6000, 6000])
    ids = Ids(clock=lambda: next(moments))
    made = [ids.ordered() for _ in range(6)]
    assert [moment_of(one) for one in made] == [5000, 5001, 5002, 5003, 6000, 6001]
    assert made == sorted(made)


def test_ordered_ids_of_many_threads_differ() -> None:
    ids = Ids(clock=lambda: 1, entropy=bytes)
    gate = threading.Barrier(8)

    def make(_: int) -> list[str]:
        gate.wait()
        return [ids.ordered() for _ in range(500)]

    with ThreadPoolExecutor(8) as pool:
        made = [one for some in pool.map(make, range(8)) for one in some]
    assert len(set(made)) == 4000
    assert max(map(moment_of, made)) == 4000


def test_ordered_ids_fit_their_form_for_centuries() -> None:
    assert re.fullmatch("[0-9a-f]{32}", Ids(clock=lambda: 1 << 62).ordered())


def test_the_clock_is_in_microseconds() -> None:
    assert 1_700_000_000_000_000 < system_clock() < 10_000_000_000_000_000
