"""The domain over one store, with a clock that a test moves, for the tests of references, queue, jobs and sweep."""

import itertools
import random
import threading

from imaging.encoding import Encoding
from imaging.limits import Limits
from ingest.backoff import Backoff
from ingest.claims import Claims
from ingest.fetch.guard import Guard
from ingest.fetch.outcome import Fetched, Outcome
from ingest.jobs import Jobs
from ingest.leases import begin_marks
from ingest.logs import Logs
from ingest.pictures import Pictures
from ingest.queue import Queue
from ingest.recent import Recent
from ingest.references import References
from ingest.sweep import Sweep
from storage.chunks import ChunkBlobs
from storage.ids import Ids
from storage.memory import MemoryStore
from storage.schema import BINARIES
from storage.sqlite import open_store

SECOND = 1_000_000
MINUTE, HOUR = 60 * SECOND, 3600 * SECOND
START = 500_000 * HOUR
STORES = ("memory", "memory without units", "sqlite")


def make_store(kind, folder):
    if kind == "sqlite":
        return open_store({"data": folder})
    return MemoryStore(strict=True, transactional=kind == "memory")


class StubFetcher:
    """Answers by URL; ``answers`` are Fetched values, or bytes for a body that arrives whole."""

    def __init__(self):
        self.answers, self.asked = {}, []

    def fetch(self, url, sink, *, mime=None, stop=None, **_):
        self.asked.append(url)
        answer = self.answers.get(url, b"some bytes")
        if callable(answer):
            answer = answer(stop)
        if isinstance(answer, Fetched):
            return answer
        sink.write(answer)
        kind = "image/jpeg" if answer.startswith(b"\xff\xd8") else mime or "text/plain"
        return Fetched(Outcome.ARCHIVED, "", mime=kind, mime_sniffed=kind, size=len(answer), filename="f")


class Domain:
    """One process's view of a store; ``also`` gives another process's view of the same one."""

    def __init__(self, store, owner="one", dead=(), time=None):
        self.store, self.owner, self.dead = store, owner, set(dead)
        self.time = [START] if time is None else time
        store.create(BINARIES)
        begin_marks(store, self.clock)
        self.ids = Ids(self.clock)
        self.blobs = ChunkBlobs(store, part_size=4)
        self.fetcher = StubFetcher()
        self.logs = Logs(store, ids=self.ids, clock=self.clock)
        self.recent = Recent(store)
        self.references = References(store, ids=self.ids, clock=self.clock, guard=Guard())
        is_dead = self.dead.__contains__
        self.claims = Claims(store, owner=owner, ids=self.ids, clock=self.clock, dead=is_dead)
        self.queue = Queue(
            store, self.claims, owner=owner, clock=self.clock, connections=2, rng=random.Random(1), dead=is_dead
        )
        self.pictures = Pictures(self.blobs, limits=Limits(), encoding=Encoding())
        self.jobs = Jobs(
            store,
            self.blobs,
            fetcher=self.fetcher,
            pictures=self.pictures,
            logs=self.logs,
            clock=self.clock,
            backoff=Backoff(jitter=0),
        )
        self.sweep = Sweep(store, self.blobs, self.references, owner=owner, clock=self.clock, dead=is_dead)

    def also(self, owner):
        return Domain(self.store, owner, self.dead, self.time)

    def clock(self):
        self.time[0] += 1
        return self.time[0]

    def pass_(self, microseconds):
        self.time[0] += microseconds

    def attach(self, url="http://a.example/1", context="ctx", mime=None):
        return self.references.attach(context, url, mime)

    def claim(self):
        """The next claim of any host, None when there is none."""
        self.pass_(SECOND)
        with self.queue.turn() as turn:
            return None if turn is None else next(turn.claims(), None)

    def work(self):
        """Work the queue off; how many jobs."""
        for done in itertools.count():
            claim = self.claim()
            if claim is None:
                return done
            self.jobs.run(claim, threading.Event())
        raise AssertionError

    def original(self, reference):
        return self.references.find(reference.reference_id)[1]

    def rows(self, table):
        return self.store.scan(table, None, 100_000)[0]
