"""The sweep against everything that may run beside it: no schedule takes the bytes of what somebody refers to.

The schedules, the kills and the broken controls of the storage protocols' proof, over the real code.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from ingest.records import Original, Reference
from ingest.references import References, _context_entry, _event
from ingest.sweep import Sweep
from storage.schema import (
    BINARY_REFS,
    BINARYREFS_CONTEXT,
    BINARYREFS_ORIGINAL,
    CONTEXTS,
    ORIGINALS,
    ORIGINALS_DATA,
    URLS,
    URLS_ORIGINAL,
)
from storage.table import ABSENT, Put, Row
from tests.interleaving import sampled, schedules, with_kills
from tests.sweep_world import (
    Setting,
    World,
    context_down,
    newborn,
    put_again_and_delete,
    put_and_sweep,
    put_and_two_sweeps,
    sweep_and_put,
    two_of_each,
    with_worker,
    worker_and_sweep,
    worlds,
)

SETTINGS = [
    pytest.param(put_and_sweep, 2, id="PUT, sweep"),
    pytest.param(two_of_each, 0, id="2 PUT, 2 sweeps"),
    pytest.param(newborn, 2, id="PUT of a new URL, sweep of what is announced"),
    pytest.param(with_worker, 0, id="PUT, DELETE, sweep, worker"),
    pytest.param(worker_and_sweep, 2, id="worker, sweep of what is announced"),
    pytest.param(context_down, 1, id="PUT, DELETE context, sweep"),
    pytest.param(put_again_and_delete, 2, id="DELETE, PUT of the same reference"),
]


@pytest.mark.parametrize(("setting", "bound"), SETTINGS)
def test_no_live_reference_lacks_its_bytes(setting: Setting, bound: int) -> None:
    assert schedules(worlds(setting), bound) > 20


@pytest.mark.parametrize("victim", [0, 1])
@pytest.mark.parametrize("setting", [put_and_sweep, newborn, worker_and_sweep, put_again_and_delete])
def test_one_is_killed_at_any_step(setting: Setting, victim: int) -> None:
    assert with_kills(worlds(setting), 1, victim) > 10


@pytest.mark.parametrize("setting", [put_and_sweep, two_of_each, newborn, with_worker, context_down])
def test_sampled_with_a_kill(setting: Setting) -> None:
    sampled(worlds(setting), 400, seed=1, kill=True)


@pytest.mark.stress
@pytest.mark.parametrize(
    ("setting", "bound"),
    [
        pytest.param(put_and_sweep, 4, id="PUT, sweep"),
        pytest.param(sweep_and_put, 4, id="sweep, PUT"),
        pytest.param(two_of_each, 2, id="2 PUT, 2 sweeps"),
        pytest.param(with_worker, 2, id="PUT, DELETE, sweep, worker"),
        pytest.param(context_down, 3, id="PUT, DELETE context, sweep"),
        pytest.param(newborn, 3, id="PUT of a new URL, sweep of what is announced"),
    ],
)
def test_all_schedules(setting: Setting, bound: int) -> None:
    print(schedules(worlds(setting), bound), "schedules")


@pytest.mark.stress
@pytest.mark.parametrize("victim", [0, 1])
@pytest.mark.parametrize("setting", [put_and_sweep, newborn, worker_and_sweep, put_again_and_delete])
def test_one_is_killed_at_any_step_between_others(setting: Setting, victim: int) -> None:
    print(with_kills(worlds(setting), 2, victim), "schedules")


@pytest.mark.stress
@pytest.mark.parametrize("setting", [two_of_each, with_worker, context_down, newborn])
def test_many_samples(setting: Setting) -> None:
    sampled(worlds(setting), 5_000, seed=2, kill=True)
    sampled(worlds(setting), 5_000, seed=3, kill=False)


# The controls: each is caught, or the proof proves nothing.


class NoSecondLook(References):
    def _second_look(self, reference: Reference, mime: str | None) -> tuple[Reference, Original] | None:
        row = self._store.get(ORIGINALS, (reference.original_id,))
        return (reference, Original.of(row)) if row else (reference, Original(reference.original_id, "?", "", "", 0))


class SweepNoSecondLook(Sweep):
    def _look_again(self, original: Original) -> bool:
        return False


class SweepUndoesRetired(Sweep):
    def _look_again(self, original: Original) -> bool:
        if not super()._look_again(original):
            return False
        row = original.row() | {"retired": None}
        self._store.commit(ORIGINALS, (original.original_id,), [Put(row, original.rev)])
        return True


class SweepAbsentFirst(Sweep):
    def _look(self, original_id: str) -> tuple[Row | None, Row | None]:
        row = self._store.get(ORIGINALS, (original_id,))
        event = self._store.read(BINARYREFS_ORIGINAL, (original_id,), limit=1, reverse=True)
        return (event[0] if event else None), row


class IndexRowsAfter(References):
    def _point(self, present: Reference | None, wanted: Reference) -> Reference | None:
        expect = present.rev if present else ABSENT
        outcome = self._store.commit(BINARY_REFS, (wanted.reference_id,), [Put(wanted.row(), expect)])
        if not outcome:
            return None
        self._store.put(*_event(wanted.original_id, wanted.attached, wanted.reference_id))
        self._store.put(BINARYREFS_CONTEXT, _context_entry(wanted))
        return dataclasses.replace(wanted, rev=outcome.rev)


class NoTag(References):
    def _tag(self) -> str:
        return "0" * 32


@pytest.mark.parametrize(
    ("setting", "bound", "broken"),
    [
        pytest.param(put_and_sweep, 2, {"references": NoSecondLook}, id="PUT without its second look"),
        pytest.param(put_and_sweep, 3, {"sweep": SweepNoSecondLook}, id="sweep without its second look"),
        pytest.param(newborn, 2, {"sweep": SweepAbsentFirst}, id="absent read before the events"),
        pytest.param(put_again_and_delete, 2, {"references": NoTag}, id="index keys without a tag"),
    ],
)
def test_a_broken_control_is_caught(setting: Setting, bound: int, broken: dict[str, Any]) -> None:
    with pytest.raises(AssertionError, match="schedule"):
        schedules(worlds(setting, **broken), bound)


def test_retired_undone_is_caught() -> None:
    """It takes four preemptions of three actors, so this one is sampled."""
    with pytest.raises(AssertionError, match="schedule"):
        sampled(worlds(put_and_two_sweeps, sweep=SweepUndoesRetired), 20_000, seed=4, kill=False)


def test_index_rows_after_the_row_are_caught_with_a_kill() -> None:
    with pytest.raises(AssertionError, match="schedule"):
        with_kills(worlds(put_and_sweep, references=IndexRowsAfter), 1, 0)


def test_an_orphan_goes_whole() -> None:
    world = World()
    orphan = world.orphan()
    world.sweep(orphan)
    for table in (URLS, ORIGINALS, ORIGINALS_DATA, URLS_ORIGINAL, BINARYREFS_ORIGINAL, BINARY_REFS):
        assert world.rows(table) == [], table
    assert [row["context"] for row in world.rows(CONTEXTS)] == ["old"]
