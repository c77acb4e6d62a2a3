"""A bucket against a dict, in sequences that hypothesis makes up: uploads side by side, aborts, crashes at any call,
renames, deletes of both kinds, sweeps, repairs, and after each step every revision of every name."""

import io
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from storage.bucket import Bucket
from storage.bucket_errors import FileExists, FileNotReady, NoFile, NoRevision
from storage.ids import Ids
from tests.bucket_setting import HOUR, BucketSetting, Crash, Ticking, Watched, chunk_rows, noise, nothing_left

NAME = st.sampled_from(["a", "b", "ä/ö"])
SIZE = st.sampled_from([0, 1, 9, 10, 11, 30, 45])
CRASH = st.integers(0, 14)
CHUNK = 10


@dataclass
class Known:
    """What the model knows of a file. ``finished``: (finishedAt, id)."""

    name: str
    data: bytes
    status: str
    finished: tuple[int, str] = (0, "")
    metadata: object = None
    deleted_at: int | None = None


class Model(RuleBasedStateMachine):
    store: ClassVar
    numbers: ClassVar

    def __init__(self):
        super().__init__()
        self.clock = Ticking()
        self.name = f"model{next(self.numbers)}"
        self.bucket = self.open(self.store)
        self.files: dict[str, Known] = {}
        self.open_uploads = {}

    def open(self, store):
        bucket = Bucket(store, self.name, chunk_size_bytes=CHUNK, concurrency=2, clock=self.clock, ids=Ids(self.clock))
        bucket.init(shards=2)
        return bucket

    def crashing(self, after):
        """The same bucket in a process that is gone after so many calls."""
        watched = Watched(self.store)
        bucket = self.open(watched)
        _ = bucket._states
        watched._crash_at = len(watched.calls) + after
        return bucket

    # uploads

    @rule(
        name=NAME, size=SIZE, seed=st.integers(0, 9), chunk=st.sampled_from([1, CHUNK, 25]), metadata=st.integers(0, 3)
    )
    def begin(self, name, size, seed, chunk, metadata):
        stream = self.bucket.open_upload_stream(name, chunk_size_bytes=chunk, metadata=metadata)
        data = noise(size, seed)
        stream.write(data[: size // 3])
        stream.write(data[size // 3 :])
        self.open_uploads[stream.file_id] = stream
        self.files[stream.file_id] = Known(name, data, "Incomplete", metadata=metadata)

    @precondition(lambda self: self.open_uploads)
    @rule(data=st.data(), how=st.sampled_from(["close", "close", "close", "first", "abort", "exception", "vanish"]))
    def end(self, data, how):
        file_id = data.draw(st.sampled_from(list(self.open_uploads)))
        stream = self.open_uploads.pop(file_id)
        known = self.files.get(file_id)
        if how == "vanish":
            return  # the stream is dropped; the record stays Incomplete
        if how in ("close", "first"):
            taken = how == "first" and known is not None and self.revisions(known.name)
            try:
                stream.close() if how == "close" else stream.commit_first()
            except NoFile:
                assert known is None  # swept, or deleted while it was under way
            except FileExists:
                assert taken or known is None
                self.files.pop(file_id, None)
            else:
                assert known is not None and not taken
                self.completed(file_id)
            return
        if how == "abort":
            stream.abort()
        else:
            with suppress(ZeroDivisionError), stream:
                raise ZeroDivisionError
        self.files.pop(file_id, None)

    def completed(self, file_id):
        record, known = self.bucket.get(file_id), self.files[file_id]
        newest = max((self.files[one].finished for one in self.revisions(known.name)), default=(0, ""))
        assert record.finished_at > newest[0]
        known.status, known.finished = "Complete", (record.finished_at, file_id)

    @rule(name=NAME, size=SIZE, after=CRASH)
    def upload_and_crash(self, name, size, after):
        file_id = f"crashed-{self.clock.now}"
        bucket = self.crashing(after)
        with suppress(Crash):
            bucket.upload_from_stream(name, io.BytesIO(noise(size, 7)), file_id=file_id)
        record = self.bucket._states.look(file_id)
        if record is not None:
            self.files[file_id] = Known(name, noise(size, 7), "Incomplete")
            if record.status == "Complete":
                self.completed(file_id)

    # changes

    def draw(self, data):
        return data.draw(st.sampled_from(list(self.files)))

    @precondition(lambda self: self.files)
    @rule(data=st.data(), name=NAME, crash=st.none() | CRASH)
    def rename(self, data, name, crash):
        file_id = self.draw(data)
        known = self.files[file_id]
        bucket = self.bucket if crash is None else self.crashing(crash)
        try:
            bucket.rename(file_id, name)
        except (NoFile, FileNotReady) as error:
            assert type(error) is {"Incomplete": FileNotReady, "Deleted": NoFile}[known.status]
        except Crash:
            record = self.bucket.get(file_id)
            assert record.filename in (name, known.name)
            known.name = record.filename
        else:
            assert known.status == "Complete"
            known.name = name

    @precondition(lambda self: self.files)
    @rule(data=st.data(), metadata=st.integers(0, 3))
    def replace_metadata(self, data, metadata):
        file_id = self.draw(data)
        known = self.files[file_id]
        try:
            self.bucket.replace_metadata(file_id, metadata)
        except (NoFile, FileNotReady):
            assert known.status != "Complete"
        else:
            assert known.status == "Complete"
            known.metadata = metadata

    @precondition(lambda self: self.files)
    @rule(data=st.data(), crash=st.none() | CRASH)
    def delete(self, data, crash):
        file_id = self.draw(data)
        known = self.files[file_id]
        bucket = self.bucket if crash is None else self.crashing(crash)
        try:
            bucket.delete(file_id)
        except FileNotReady:
            assert known.status == "Incomplete"
            return
        except Crash:
            pass
        else:
            assert known.status != "Incomplete"
            assert self.bucket.get(file_id).status == "Deleted"
        record = self.bucket.get(file_id)
        assert record.status in (known.status, "Deleted")
        known.status, known.deleted_at = record.status.value, known.deleted_at or record.deleted_at

    @precondition(lambda self: self.files)
    @rule(data=st.data(), crash=st.none() | CRASH, sweep=st.booleans())
    def hard_delete(self, data, crash, sweep):
        file_id = self.draw(data)
        bucket = self.bucket if crash is None else self.crashing(crash)
        try:
            bucket.delete(file_id, hard=True)
        except Crash:
            record = self.bucket._states.look(file_id)
            if record is not None and record.erasing is None:
                return
            if record is not None and sweep:
                self.bucket.sweep(file_id, 0)
            elif record is not None:
                self.bucket.delete(file_id, hard=True)
        del self.files[file_id]
        assert self.bucket._states.look(file_id) is None

    @rule(hours=st.sampled_from([0, 1, 30]))
    def time_goes_by(self, hours):
        self.clock.now += hours * HOUR

    @rule(grace=st.sampled_from([0, 24]))
    def sweep(self, grace):
        for file_id, known in list(self.files.items()):
            is_old = self.bucket.get(file_id).alive < self.clock.now + 1 - grace * HOUR
            self.bucket.sweep(file_id, grace * HOUR)
            if known.status == "Incomplete" and is_old:
                del self.files[file_id]

    @rule()
    def check(self):
        report = self.bucket.check(older_than=0, repair=True)
        assert set(report.found) <= {"abandoned", "stale"}
        assert report.is_sound
        for file_id, known in list(self.files.items()):
            if known.status == "Incomplete":
                del self.files[file_id]
        assert self.bucket.check(older_than=0).found == {}

    # what must hold after each step

    def revisions(self, name):
        found = [one for one, known in self.files.items() if (known.name, known.status) == (name, "Complete")]
        return sorted(found, key=lambda one: self.files[one].finished)

    @invariant()
    def revisions_are_right(self):
        for name in ("a", "b", "ä/ö"):
            expected = self.revisions(name)
            assert [record.id for record in self.bucket.revisions(name)] == expected
            for number, file_id in enumerate(expected):
                for revision in (number, number - len(expected)):
                    with self.bucket.open_download_stream_by_name(name, revision) as stream:
                        assert stream.record.id == file_id
                        assert stream.read() == self.files[file_id].data
            with pytest.raises(NoRevision if expected else NoFile):
                self.bucket.get_by_name(name, len(expected))

    @invariant()
    def records_are_right(self):
        for file_id, known in self.files.items():
            record = self.bucket.get(file_id)
            seen = Known(record.filename, known.data, record.status.value, known.finished, record.metadata)
            assert replace(seen, deleted_at=record.deleted_at) == known
            if known.status == "Complete":
                assert (record.finished_at, record.length) == (known.finished[0], len(known.data))
            else:
                with pytest.raises(FileNotReady if known.status == "Incomplete" else NoFile):
                    self.bucket.open_download_stream(file_id)
            if known.status == "Deleted":
                assert b"".join(row["data"] for row in chunk_rows(self.store, record, self.name)) == known.data

    @invariant()
    def lists_are_right(self):
        for status in ("Complete", "Deleted", "Incomplete"):
            expected = {one for one, known in self.files.items() if known.status == status}
            assert {record.id for record in self.bucket.find(status=status)} == expected
        complete = [one for one, known in self.files.items() if known.status == "Complete"]
        by_time = sorted(complete, key=lambda one: self.files[one].finished)
        assert [record.id for record in self.bucket.find(newest_first=False)] == by_time
        newest_first = list(reversed(by_time))
        by_name = sorted(newest_first, key=lambda one: self.files[one].name)
        assert [record.id for record in self.bucket.page(limit=1000).files] == by_name

    @initialize()
    def nothing_there(self):
        assert list(self.bucket.find()) == []

    def teardown(self):
        for file_id in self.files:
            self.bucket.delete(file_id, hard=True)
        self.clock.now += 2 * HOUR
        self.bucket.check(older_than=0, repair=True)
        assert nothing_left(self.store, self.name)


class ModelContract(BucketSetting):
    examples = 15
    """How many sequences are tried; a slow server may have fewer."""

    def test_against_a_dict(self, store, numbers):
        self.run(store, numbers, self.examples)

    @pytest.mark.stress
    def test_against_a_dict_for_long(self, store, numbers):
        self.run(store, numbers, 40 * self.examples)

    def run(self, store, numbers, examples):
        run_state_machine_as_test(
            type("BoundModel", (Model,), {"store": store, "numbers": numbers}),
            settings=settings(
                max_examples=examples,
                stateful_step_count=20,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
