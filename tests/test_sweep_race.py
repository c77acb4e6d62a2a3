"""The sweep against everything that may run beside it: no schedule takes the bytes of what somebody refers to.

The schedules, the kills and the broken controls of the storage protocols' proof, over the real code.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from imaging.encoding import Encoding
from imaging.limits import Limits
from ingest.backoff import Backoff
from ingest.claims import Claims
from ingest.fetch.guard import Guard
from ingest.fetch.outcome import Fetched, Outcome
from ingest.jobs import Jobs
from ingest.liveness import live_references
from ingest.logs import Logs
from ingest.pictures import Pictures
from ingest.records import Original, Reference, Status, reference_id_of
from ingest.references import References, _context_entry, _event
from ingest.sweep import Sweep
from storage.chunks import ChunkBlobs
from storage.ids import Ids
from storage.schema import (
    BINARIES,
    BINARY_REFS,
    BINARYREFS_CONTEXT,
    BINARYREFS_ORIGINAL,
    CANDIDATES,
    CONTEXTS,
    ORIGINALS,
    ORIGINALS_DATA,
    URLS,
    URLS_ORIGINAL,
)
from storage.table import ABSENT, Put, Row
from tests.interleaving import Actor, Run, StepStore, sampled, schedules, with_kills

URL = "http://source.example/a"
HOUR = 3600 * 1_000_000
BYTES = b"the bytes"


class StubFetcher:
    def fetch(self, url: str, sink: Any, **_: Any) -> Fetched:
        sink.write(BYTES)
        return Fetched(Outcome.ARCHIVED, "", mime="text/plain", size=len(BYTES))


class World:
    """One store with everything counted, and the invariants that must hold in the end."""

    def __init__(self, references: type[References] = References, sweep: type[Sweep] = Sweep) -> None:
        self.time, self.count = 1_000_000 * HOUR, 0
        self.ids = Ids(self.clock, lambda size: self.counted().to_bytes(size, "big"))
        self.store = StepStore(lambda: f"rev{self.counted()}")
        self.store.create(BINARIES)
        self.blobs = ChunkBlobs(self.store)
        self.references = references(self.store, ids=self.ids, clock=self.clock, guard=Guard())
        self.logs = Logs(self.store, ids=self.ids, clock=self.clock)
        self._sweep = sweep
        self.actors: list[Actor] = []
        self.detached: set[str] = set()

    def clock(self) -> int:
        self.time += 1
        return self.time

    def counted(self) -> int:
        self.count += 1
        return self.count

    def save(self) -> Callable[[], None]:
        """What brings this world back to where it is now: faster than to make it anew for each schedule."""
        time, count, last, restore = self.time, self.count, self.ids._last, self.store.save()

        def back() -> None:
            self.time, self.count, self.ids._last = time, count, last
            self.detached.clear()
            restore()
            self.store.stepping = True

        return back

    def sweeper(self) -> Sweep:
        return self._sweep(
            self.store, self.blobs, self.references, owner="test", clock=self.clock, dead=lambda _: False
        )

    def jobs(self) -> Jobs:
        pictures = Pictures(self.blobs, limits=Limits(), encoding=Encoding())
        return Jobs(
            self.store,
            self.blobs,
            fetcher=StubFetcher(),  # type: ignore[arg-type]
            pictures=pictures,
            logs=self.logs,
            clock=self.clock,
            backoff=Backoff(),
        )

    def claims(self) -> Claims:
        return Claims(self.store, owner="test", ids=self.ids, clock=self.clock, dead=lambda _: False)

    # what there is before anybody runs

    def stored(self, context: str) -> str:
        """An original in store with one reference; its id."""
        _, original = self.references.attach(context, URL)
        self.work()
        return original.original_id

    def orphan(self) -> str:
        """An original in store that nobody refers to; its URL still names it."""
        original_id = self.stored("old")
        self.references.detach(reference_id_of("old", URL))
        return original_id

    # actors

    def put(self, context: str) -> tuple[Reference, Original]:
        return self.references.attach(context, URL)

    def delete(self, context: str) -> None:
        self.detached.add(reference_id_of(context, URL))
        self.references.detach(reference_id_of(context, URL))

    def delete_context(self, context: str) -> None:
        self.detached.add(reference_id_of(context, URL))
        self.references.detach_context(context)

    def sweep(self, original_id: str) -> None:
        self.sweeper().original(original_id, 0)

    def sweep_context(self, context: str, original_id: str) -> None:
        sweeper = self.sweeper()
        for row in self.rows(CANDIDATES):
            if row["kind"] == "generation":
                sweeper.generation(*row["id"].split("/"))
        sweeper.original(original_id, 0)

    def sweep_announced(self) -> None:
        """What a whole run does, without the walk over empty buckets."""
        sweeper = self.sweeper()
        for kind in ("generation", "blob", "original"):
            for row in self.rows(CANDIDATES):
                if row["kind"] == "original" == kind:
                    sweeper.original(row["id"], 0)
                elif row["kind"] == kind:
                    getattr(sweeper, kind)(*row["id"].split("/"))

    def work(self) -> None:
        """Claim what the URL names, and fetch it."""
        row = self.store.get(URLS, (URL,))
        found = row and self.store.get(ORIGINALS, (row["original_id"],))
        if not found:
            return
        original = Original.of(found)
        if original.status not in (Status.PROCESSING, Status.RETRY) or original.retired:
            return
        claim = self.claims().take(original)
        if claim is not None:
            self.jobs().run(claim, threading.Event())

    # what must hold

    def rows(self, table: Any) -> list[Row]:
        return list(self.store.scan(table, None, 10_000)[0])

    def check(self, run: Run) -> None:
        self.store.stepping = False
        acknowledged = {result[0].reference_id for result in run.results.values() if isinstance(result, tuple)}
        self._check_references(acknowledged - self.detached)
        for _ in range(2):
            self.time += HOUR
            self.work()
            self.sweep_announced()
        for row in self.rows(CANDIDATES):
            if row["kind"] == "original":
                self.sweeper().last_look(row["id"])
        self._check_references(acknowledged - self.detached)
        self._check_nothing_is_left()

    def _check_references(self, acknowledged: set[str]) -> None:
        for reference_id in acknowledged:
            assert self.references.find(reference_id) is not None, f"{reference_id} was acknowledged and is gone"
        for row in self.rows(BINARY_REFS):
            found = self.references.find(row["reference_id"])
            if found is None:
                continue
            reference, original = found
            if original.blob is not None:
                assert b"".join(self.blobs.parts(original.blob, 0, original.blob.size)) == BYTES
            assert original.status != Status.ERROR
            listed = [known.reference_id for known, _ in self.references.page(reference.context, limit=10)]
            assert reference.reference_id in listed, "live and not listed in its context"
            live = [known.reference_id for known in live_references(self.store, original.original_id)]
            assert reference.reference_id in live, "live and not found from its original"

    def _check_nothing_is_left(self) -> None:
        live = {found[1].original_id for row in self.rows(BINARY_REFS) if (found := self.find(row))}
        originals = {row["original_id"] for row in self.rows(ORIGINALS)}
        assert originals == live, "originals that nobody refers to are left"
        assert {row["original_id"] for row in self.rows(ORIGINALS_DATA)} <= originals, "parts are left"
        assert {row["original_id"] for row in self.rows(URLS)} <= originals, "urls are left"
        assert {row["original_id"] for row in self.rows(URLS_ORIGINAL)} <= originals, "rows of urls are left"
        attempts = {row["attempt"] for row in self.rows(ORIGINALS)}
        assert {row["attempt"] for row in self.rows(ORIGINALS_DATA)} <= attempts, "attempts are left"

    def find(self, row: Row) -> tuple[Reference, Original] | None:
        return self.references.find(row["reference_id"])


Setting = Callable[[World], Sequence[Actor]]


def worlds(setting: Setting, **broken: Any) -> Callable[[], tuple[Sequence[Actor], Callable[[Run], None]]]:
    made = World(**broken)
    actors = setting(made)
    back = made.save()

    def world() -> tuple[Sequence[Actor], Callable[[Run], None]]:
        back()
        return actors, made.check

    return world


def put_and_sweep(world: World) -> Sequence[Actor]:
    orphan = world.orphan()
    return [lambda: world.put("new"), lambda: world.sweep(orphan)]


def sweep_and_put(world: World) -> Sequence[Actor]:
    orphan = world.orphan()
    return [lambda: world.sweep(orphan), lambda: world.put("new")]


def put_and_two_sweeps(world: World) -> Sequence[Actor]:
    orphan = world.orphan()
    return [lambda: world.put("new"), lambda: world.sweep(orphan), lambda: world.sweep(orphan)]


def two_of_each(world: World) -> Sequence[Actor]:
    orphan = world.orphan()
    return [
        lambda: world.put("new"),
        lambda: world.sweep(orphan),
        lambda: world.put("newer"),
        lambda: world.sweep(orphan),
    ]


def newborn(world: World) -> Sequence[Actor]:
    """Nothing is there: PUT mints, and the sweep works off what is announced meanwhile."""
    return [lambda: world.put("new"), world.sweep_announced]


def with_worker(world: World) -> Sequence[Actor]:
    """A reference of an original that is queued goes, another comes, while a worker is at it."""
    _, original = world.references.attach("old", URL)
    return [
        lambda: world.put("new"),
        lambda: world.delete("old"),
        lambda: world.sweep(original.original_id),
        world.work,
    ]


def worker_and_sweep(world: World) -> Sequence[Actor]:
    """The sweep finds the announced attempt before the worker has claimed with it."""
    world.references.attach("old", URL)
    return [world.work, world.sweep_announced]


def context_down(world: World) -> Sequence[Actor]:
    stored = world.stored("old")
    return [
        lambda: world.put("old"),
        lambda: world.delete_context("old"),
        lambda: world.sweep_context("old", stored),
    ]


def put_again_and_delete(world: World) -> Sequence[Actor]:
    """DELETE of a reference beside a PUT of the same one: the slow deleter must not hit the next incarnation."""
    world.stored("old")
    return [lambda: world.delete("old"), lambda: world.put("old")]


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
