"""PUT, DELETE, worker and sweep against each other on a real node, with real concurrency and no grace, for a minute."""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from imaging.encoding import Encoding
from imaging.limits import Limits
from ingest.backoff import Backoff
from ingest.claims import Claims
from ingest.fetch.guard import Guard
from ingest.fetch.outcome import Fetched, Outcome
from ingest.jobs import Jobs
from ingest.logs import Logs
from ingest.pictures import Pictures
from ingest.records import Original, Status, reference_id_of
from ingest.references import References
from ingest.sweep import Sweep
from ingest.tablewalk import every_row
from storage.cassandra import CassandraStore
from storage.cassandra_options import Options, replication
from storage.chunks import ChunkBlobs
from storage.errors import Damaged, StoreError
from storage.ids import Ids, system_clock
from storage.schema import BINARIES, CANDIDATES, ORIGINALS, ORIGINALS_DATA, URLS

pytestmark = pytest.mark.stress

SECONDS = 60
PATIENCE = 600  # more, where the machine is busy and too little has happened
HOUR = 3600 * 1_000_000
URLS_ = [f"http://source.example/{number}" for number in range(2)]
CONTEXTS = ["one", "two"]
BYTES = b"the bytes of it"


class StubFetcher:
    def fetch(self, url: str, sink: Any, **_: Any) -> Fetched:
        sink.write(BYTES)
        return Fetched(Outcome.ARCHIVED, "", mime="text/plain", size=len(BYTES))


class Actor(threading.Thread):
    """What one process is: a session and parts of its own. Does ``act`` until it is told to stop."""

    def __init__(self, options: Options, act: Callable[[Actor], None], acknowledged: set[str]) -> None:
        super().__init__()
        self.act, self.random, self.later = act, random.Random(), 0
        self.acknowledged = acknowledged
        self.store = CassandraStore(options)
        self.ids = Ids(self.clock)
        self.blobs = ChunkBlobs(self.store, part_size=4)
        self.references = References(self.store, ids=self.ids, clock=self.clock, guard=Guard())
        self.claims = Claims(self.store, owner=uuid.uuid4().hex, ids=self.ids, clock=self.clock, dead=lambda _: False)
        self.jobs = Jobs(
            self.store,
            self.blobs,
            fetcher=StubFetcher(),  # type: ignore[arg-type]
            pictures=Pictures(self.blobs, limits=Limits(), encoding=Encoding()),
            logs=Logs(self.store, ids=self.ids, clock=self.clock),
            clock=self.clock,
            backoff=Backoff(),
        )
        self.sweep = Sweep(
            self.store, self.blobs, self.references, owner="test", clock=self.clock, dead=lambda _: False
        )
        self.done = threading.Event()
        self.did: Counter[str] = Counter()
        self.crash: BaseException | None = None

    def clock(self) -> int:
        return system_clock() + self.later

    def run(self) -> None:
        while not self.done.is_set() and self.crash is None:
            try:
                self.act(self)
                self.did[self.act.__name__] += 1
            except StoreError as error:  # two that want the same may be told to try again
                self.did[type(error).__name__] += 1
            except BaseException as error:
                self.crash = error

    def any(self) -> tuple[str, str]:
        return self.random.choice(CONTEXTS), self.random.choice(URLS_)


def put(actor: Actor) -> None:
    reference, _ = actor.references.attach(*actor.any())
    actor.acknowledged.add(reference.attached)


def delete(actor: Actor) -> None:
    context, url = actor.any()
    if actor.random.random() < 0.1:
        actor.references.detach_context(context)
    else:
        actor.references.detach(reference_id_of(context, url))


def work(actor: Actor) -> None:
    for row in list(actor.store.fetch((URLS, (url,)) for url in URLS_)):
        if not row or not (found := actor.store.get(ORIGINALS, (row[0]["original_id"],))):
            continue
        original = Original.of(found)
        if original.status in (Status.PROCESSING, Status.RETRY) and not original.retired:
            claim = actor.claims.take(original)
            if claim is not None:
                actor.jobs.run(claim, threading.Event())


def sweep(actor: Actor) -> None:
    """What is named just now, whose races are the ones that matter; now and then, all that was announced."""
    for row in list(actor.store.fetch((URLS, (url,)) for url in URLS_)):
        if row:
            actor.sweep.original(row[0]["original_id"], 0)
    if actor.random.random() < 0.01:
        sweep_all(actor)


def sweep_all(actor: Actor) -> None:
    for kind in ("generation", "blob", "original"):
        for row in every_row(actor.store, CANDIDATES):
            if row["kind"] == "original" == kind:
                actor.sweep.original(row["id"], 0)
            elif row["kind"] == kind:
                getattr(actor.sweep, kind)(*row["id"].split("/"))


def read(actor: Actor) -> None:
    """What is live has its bytes, or isn't live any more when one looks again.

    A PUT that goes on, because its second look found the original retired, was seen before it was live.
    """
    for context in CONTEXTS:
        for url in URLS_:
            reference_id = reference_id_of(context, url)
            found = actor.references.find(reference_id)
            if found is None or found[1].blob is None:
                continue
            blob = found[1].blob
            try:
                assert b"".join(actor.blobs.parts(blob, 0, blob.size)) == BYTES
                actor.did["whole"] += 1
            except Damaged:
                again = actor.references.find(reference_id)
                gone = again is None or again[0].attached != found[0].attached
                assert gone or found[0].attached not in actor.acknowledged, f"{found} has lost its bytes"
                actor.did["gone meanwhile" if gone else "not live yet"] += 1


@pytest.fixture
def actors(cassandra: str) -> Iterator[list[Actor]]:
    options = Options(((cassandra, 9042),), f"race_{uuid.uuid4().hex[:12]}", replication("1"))
    acts = [put, put, delete, delete, work, work, sweep, sweep, read, read]
    first = CassandraStore(options)
    first.create(BINARIES)
    first.close()
    acknowledged: set[str] = set()
    actors = [Actor(options, act, acknowledged) for act in acts]
    yield actors
    for actor in actors:
        actor.store.close()


def _enough(actors: list[Actor]) -> bool:
    did = sum((actor.did for actor in actors), Counter())
    return min(did[act] for act in ("put", "delete", "work", "sweep", "whole")) > 10


def test_no_live_reference_without_bytes(actors: list[Actor]) -> None:
    for actor in actors:
        actor.start()
    end = time.monotonic() + SECONDS
    while not any(actor.crash for actor in actors):
        actors[0].join(0.2)
        late = time.monotonic() - end
        if late > PATIENCE or (late > 0 and _enough(actors)):
            break
    for actor in actors:
        actor.done.set()
    for actor in actors:
        actor.join()
    did = sum((actor.did for actor in actors), Counter())
    print(f"\n{dict(did)}")
    assert [actor.crash for actor in actors if actor.crash] == []
    assert _enough(actors)

    last = actors[0]
    for _ in range(2):
        last.later += HOUR
        work(last)
        sweep_all(last)
    read(last)
    live = list(every_row(last.store, ORIGINALS))
    assert len(live) <= len(URLS_) * 2
    for context in CONTEXTS:
        last.references.detach_context(context)
    for _ in range(3):
        last.later += HOUR
        sweep_all(last)
    assert list(every_row(last.store, ORIGINALS)) == []
    assert list(every_row(last.store, ORIGINALS_DATA)) == []
