"""A library in memory for the tests of the HTTP layer, and originals put into it as a worker would."""

import dataclasses
import io
import itertools

import webtest
import xxhash
from PIL import Image

from app.application import create_app
from app.library import Library
from app.options import Options
from app.tokens import Tokens
from imaging.encoding import Encoding
from imaging.limits import Limits
from imaging.renditions import Renditions
from ingest.fetch.guard import Guard
from ingest.logs import Logs
from ingest.recent import Recent
from ingest.records import Status
from ingest.references import References
from storage.buckets import Buckets
from storage.cache import Cache
from storage.chunks import ChunkBlobs
from storage.ids import Ids
from storage.memory import MemoryStore
from storage.schema import BINARIES, ORIGINALS, SCALED
from storage.table import Put

START = 1_700_000_000_000_000  # µs: Tue, 14 Nov 2023 22:13:20 GMT
PART = 1000  # bytes
LOCAL = {"SERVER_NAME": "127.0.0.1", "REMOTE_ADDR": "127.0.0.1", "HTTP_HOST": "127.0.0.1:8000"}


class Stock:
    def __init__(self, folder, store=None, blobs=None):
        ticks = itertools.count(START, 1000)
        self.clock = lambda: next(ticks)
        self.ids = Ids()
        self.store = MemoryStore(strict=True) if store is None else store
        self.store.create(BINARIES)
        self.blobs = ChunkBlobs(self.store, part_size=PART) if blobs is None else blobs
        self.references = References(self.store, ids=self.ids, clock=self.clock, guard=Guard())
        self.logs = Logs(self.store, ids=self.ids, clock=self.clock)
        self.recent = Recent(self.store)
        self.tokens = Tokens(self.store, self.ids, self.clock)
        self.cache = Cache(folder / "cache", size_limit=10_000_000, file_limit=1000)
        self.limits, self.encoding = Limits(), Encoding()
        self.buckets = Buckets(self.store, ids=self.ids, clock=self.clock)
        self.buckets.make("fs")

    def library(self):
        return Library(
            store=self.store,
            blobs=self.blobs,
            references=self.references,
            logs=self.logs,
            recent=self.recent,
            renditions=Renditions(self.cache, self.limits, self.encoding),
            limits=self.limits,
            tokens=self.tokens,
            buckets=self.buckets,
        )

    def app(self, options=None, **more):
        options = Options(loopback_writes=True) if options is None else options
        return webtest.TestApp(create_app(self.library(), options, clock=self.clock, **more), extra_environ=LOCAL)

    def attach(self, url="http://source.example/photo.jpg", context="ctx"):
        """A reference that waits for its original."""
        return self.references.attach(context, url)

    def change(self, original, **fields):
        """Commit the original with other fields, as a worker does at the end of a try."""
        changed = dataclasses.replace(original, **fields)
        outcome = self.store.commit(ORIGINALS, (original.original_id,), [Put(changed.row(), original.rev)])
        assert outcome.applied
        return dataclasses.replace(changed, rev=outcome.rev)

    def put(self, data, url="http://source.example/photo.jpg", context="ctx", boxes=None, **fields):
        """The id of a reference whose original is here. ``boxes``: what the scaled tables hold, by size."""
        reference, original = self.attach(url, context)
        attempt = self.ids.ordered()
        with self.blobs.create(original.original_id, attempt) as writer:
            writer.write(data)
            blob = writer.commit()
        for size, image in (boxes or {}).items():
            row = {"original_id": original.original_id, "attempt": attempt, "data": image}
            self.store.put(SCALED[size], row | {"crc": xxhash.xxh3_64_hexdigest(image)})
        held = {
            "attempt": attempt,
            "size": blob.size,
            "part_size": blob.part_size,
            "checksum": blob.sha256,
            "mime": "application/octet-stream",
            "filename": url.rpartition("/")[2],
            "created": START,
        } | fields
        done = dataclasses.replace(original, status=Status.OK, **held)
        self.store.put_many(self.recent.rows(done))
        self.change(original, status=Status.OK, **held)
        return reference.reference_id

    def put_image(self, width=120, height=80, **more):
        data = jpeg(width, height)
        return self.put(data, mime="image/jpeg", width=width, height=height, pages=1, **more)


def jpeg(width, height, colour=(200, 30, 60)):
    out = io.BytesIO()
    Image.new("RGB", (width, height), colour).save(out, "JPEG")
    return out.getvalue()


def size_of(data):
    with Image.open(io.BytesIO(data)) as image:
        return image.format, image.size
