"""A store in which references, jobs and the sweep take turns, what must hold in the end, and who may meet whom."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

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
from ingest.references import References
from ingest.sweep import Sweep
from storage.chunks import ChunkBlobs
from storage.ids import Ids
from storage.schema import (
    BINARIES,
    BINARY_REFS,
    CANDIDATES,
    ORIGINALS,
    ORIGINALS_DATA,
    URLS,
    URLS_ORIGINAL,
)
from storage.table import Row
from tests.interleaving import Actor, Run, StepStore

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
