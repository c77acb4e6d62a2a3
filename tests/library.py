"""The parts of a library over a strict store in memory, with a clock and a source of its own, for tests of ingest."""

import dataclasses
import random

from imaging.encoding import Encoding
from imaging.limits import Limits
from ingest.backoff import Backoff
from ingest.check import Check
from ingest.claims import Claims
from ingest.fetch.guard import Guard
from ingest.fetch.outcome import Fetched, Outcome
from ingest.jobs import Jobs
from ingest.localfiles import LocalFiles
from ingest.logs import Logs
from ingest.pictures import Pictures
from ingest.queue import Queue
from ingest.records import Original
from ingest.references import References
from ingest.retry import Retry
from ingest.status import Overview
from ingest.sweep import Sweep
from storage.chunks import ChunkBlobs
from storage.ids import Ids
from storage.memory import MemoryStore
from storage.schema import BINARIES, ORIGINALS
from storage.table import Put

START = 1_700_000_000_000_000
SECOND = 1_000_000
HOUR = 3600 * SECOND
PART = 1000


class Says:
    """A fetcher that answers what it is told: bytes, or how the fetch ended."""

    def __init__(self):
        self.answers = {}

    def fetch(self, url, sink, *, mime=None, stop=None, **more):
        answer = self.answers[url]
        if isinstance(answer, Fetched):
            return answer
        sink.write(answer)
        return Fetched(Outcome.ARCHIVED, "fetched", mime="application/x-test", mime_received="application/x-test")


class Library:
    def __init__(self, tick=1):
        """``tick``: microseconds that pass at each look at the clock."""
        self.now, self.tick = START, tick
        self.ids = Ids(self.clock)
        self.store = MemoryStore(strict=True)
        self.store.create(BINARIES)
        self.blobs = ChunkBlobs(self.store, part_size=PART)
        self.references = References(self.store, ids=self.ids, clock=self.clock, guard=Guard())
        self.claims = Claims(self.store, owner="me", ids=self.ids, clock=self.clock)
        self.queue = Queue(self.store, self.claims, owner="me", clock=self.clock, rng=random.Random(1))
        self.fetcher = Says()
        self.jobs = Jobs(
            self.store,
            self.blobs,
            fetcher=self.fetcher,
            pictures=Pictures(self.blobs, limits=Limits(), encoding=Encoding()),
            logs=Logs(self.store, ids=self.ids, clock=self.clock),
            clock=self.clock,
            backoff=Backoff(jitter=0.0),
        )
        self.sweep = Sweep(self.store, self.blobs, self.references, owner="me", clock=self.clock)
        self.check = Check(self.store, self.blobs, self.references, self.clock)
        self.retry = Retry(self.store, self.blobs, self.references, self.clock)
        self.overview = Overview(self.store, self.queue, self.clock)
        self.files = LocalFiles(self.store, self.references, self.claims, self.jobs, max_bytes=1_000_000)

    def clock(self):
        self.now += self.tick
        return self.now

    def put(self, url="http://h/a", answer=b"bytes" * 500, context="c"):
        """Attach and try once; the reference and the original as it is then."""
        self.fetcher.answers[url] = answer
        reference, original = self.references.attach(context, url)
        claim = self.claims.take(original)
        self.jobs.run(claim, NEVER)
        return reference, self.original(original.original_id)

    def original(self, original_id):
        row = self.store.get(ORIGINALS, (original_id,))
        return Original.of(row) if row else None

    def change(self, original, **fields):
        changed = dataclasses.replace(original, **fields)
        assert self.store.commit(ORIGINALS, (original.original_id,), [Put(changed.row(), original.rev)])


class _Never:
    def is_set(self):
        return False

    def wait(self, seconds=None):
        return False


NEVER = _Never()
"""A stop that never comes."""


def failed(outcome=Outcome.NETWORK_ERROR, reason="no route", transient=True, **more):
    return Fetched(outcome, reason, transient=transient, counted=True, **more)
