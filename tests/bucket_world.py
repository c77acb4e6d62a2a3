"""A bucket whose users take turns, and what must hold of it in the end."""

import itertools

from storage.bucket import Bucket
from storage.bucket_errors import FileExists, FileNotReady, NoFile
from storage.bucket_record import Status
from storage.bucket_states import States
from storage.ids import Ids
from storage.schema import BINARIES, CANDIDATES
from tests.bucket_setting import HOUR, Ticking, all_rows
from tests.interleaving import StepStore

DATA = b"0123456789" * 2 + b"end"
OTHER = b"another" * 4


class World:
    """One bucket with everything counted. ``states``: the code that changes records, or a broken one."""

    def __init__(self, states=States):
        counter = itertools.count(1)
        self.clock = Ticking()
        ids = Ids(self.clock, lambda size: next(counter).to_bytes(size, "big"))
        self.store = StepStore(lambda: f"rev{next(counter)}")
        self.store.create(BINARIES)
        self.bucket = Bucket(self.store, "fs", chunk_size_bytes=10, concurrency=1, ids=ids, clock=self.clock)
        self.bucket.init(shards=1)
        proper = self.bucket._states
        proper.__class__ = states
        self.content = {}
        self.streams = []

    def stored(self, name="a", data=DATA, deleted=False):
        """A file's id."""
        with self.bucket.open_upload_stream(name) as stream:
            stream.write(data)
        self.content[stream.file_id] = data
        if deleted:
            self.bucket.delete(stream.file_id)
        return stream.file_id

    def begun(self, name="a", data=DATA):
        """An upload under way."""
        stream = self.bucket.open_upload_stream(name)
        stream.write(data[:15])
        self.content[stream.file_id] = data
        self.streams.append(stream)
        return stream

    # actors: each gives what it came to

    def close(self, stream, how="close"):
        try:
            stream.write(self.content[stream.file_id][15:])
            getattr(stream, how)()
        except (NoFile, FileExists) as error:
            return type(error)
        return "stored"

    def does(self, act, *args, **more):
        try:
            act(*args, **more)
        except (NoFile, FileNotReady) as error:
            return type(error)
        return "done"

    def reads(self, name="a"):
        try:
            with self.bucket.open_download_stream_by_name(name) as stream:
                return stream.record.id, stream.read()
        except NoFile:
            return None

    # what must hold whatever happened

    def check(self):
        self.store.stepping = False
        for file_id in self.content:
            record = self.bucket._states.look(file_id)
            if record is not None and record.erasing is None and record.status is Status.COMPLETE:
                assert record in self.bucket.revisions(record.filename), "lost from its name"
                assert record in self.bucket.find(), "lost from the list"
                with self.bucket.open_download_stream(file_id) as stream:
                    assert stream.read() == self.content[file_id]
        assert set(self.bucket.check(older_than=-HOUR).found) <= {"abandoned", "half deleted", "stale", "unowned"}
        announced = [row["id"].partition("/")[2] for row in all_rows(self.store, CANDIDATES)]
        for file_id in announced:
            self.bucket.sweep(file_id, -HOUR)
        self.clock.now += 3 * HOUR
        assert set(self.bucket.check(older_than=0, repair=True).found) <= {"stale", "unowned"}
        assert self.bucket.check(older_than=0).found == {}

    def status(self, file_id):
        record = self.bucket._states.look(file_id)
        return None if record is None else record.status
