"""The rules of revisions, deletes and uploads that end early, each by its number."""

import gc
import io
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from storage.bucket_errors import FileExists, FileNotReady, NoFile, NoRevision
from tests.bucket_setting import HOUR, BucketSetting, chunk_rows, noise, nothing_left, put, whole


class StateContract(BucketSetting):
    def test_rule_12_revisions(self, bucket, clock, name):
        records = [put(bucket, name, b"%d" % number) for number in range(7)]
        put(bucket, f"{name}x", b"another name")
        assert bucket.revisions(name) == records
        for number, record in enumerate(records):
            assert bucket.get_by_name(name, number) == record
            assert bucket.get_by_name(name, number - 7) == record
            assert bucket.open_download_stream_by_name(name, number).read() == b"%d" % number
        assert bucket.get_by_name(name) == records[-1]
        out = io.BytesIO()
        assert bucket.download_to_stream_by_name(name, out, 2) == records[2]
        assert out.getvalue() == b"2"
        for wrong in (7, -8, 100, -100):
            with pytest.raises(NoRevision, match=name):
                bucket.get_by_name(name, wrong)
        for revision in (0, -1, 5):
            with pytest.raises(NoFile):
                bucket.get_by_name(f"{name} unknown", revision)
        assert not issubclass(NoRevision, NoFile) and not issubclass(NoFile, NoRevision)

    def test_rule_12_ordered_by_completion_not_by_start(self, bucket, name):
        first, second = bucket.open_upload_stream(name), bucket.open_upload_stream(name)
        second.close()
        first.close()
        assert [record.id for record in bucket.revisions(name)] == [second.file_id, first.file_id]

    def test_rule_12_a_later_completion_is_newer_whatever_its_clock_says(self, bucket, clock, name):
        records = []
        for _ in range(4):
            records.append(put(bucket, name))
            clock.now -= HOUR
        assert bucket.revisions(name) == records
        assert all(one.finished_at < two.finished_at for one, two in pairwise(records))

    def test_rule_12_equal_times_are_ordered_by_id(self, open_bucket, bucket, name):
        ids = ["b", "c", "a"]
        others = [f"{name} {one}" for one in ids]
        standing = open_bucket(clock=lambda: 1_700_000_000_000_000)
        for one, other in zip(ids, others, strict=True):
            put(standing, other, file_id=f"{one}-{name[5:-4]}")
        for other in others:
            standing.rename_by_name(other, name)
        assert [record.id[0] for record in bucket.revisions(name)] == ["a", "b", "c"]
        assert len({record.finished_at for record in bucket.revisions(name)}) == 1

    def test_rule_12_deleting_a_revision_shifts_the_numbers(self, bucket, name):
        first, second, third = (put(bucket, name) for _ in range(3))
        bucket.delete(second.id)
        assert (bucket.get_by_name(name, 0), bucket.get_by_name(name, 1)) == (first, third)
        bucket.delete(first.id, hard=True)
        assert bucket.get_by_name(name, 0) == third == bucket.get_by_name(name, -1)

    def test_rule_12_a_rename_keeps_finished_at(self, bucket, name):
        early, other, late = put(bucket, name), put(bucket, f"{name} other"), put(bucket, name)
        moved = bucket.rename(other.id, name)
        assert (moved.finished_at, moved.filename) == (other.finished_at, name)
        assert [record.id for record in bucket.revisions(name)] == [early.id, other.id, late.id]
        with pytest.raises(NoFile):
            bucket.get_by_name(f"{name} other")
        assert bucket.rename_by_name(name, f"{name} new") == 3
        assert [record.id for record in bucket.revisions(f"{name} new")] == [early.id, other.id, late.id]
        with pytest.raises(NoFile):
            bucket.rename_by_name(name, "x")

    def test_rule_13_incomplete_and_deleted_files_can_not_be_opened(self, bucket, name):
        stream = bucket.open_upload_stream(name)
        stream.write(b"x" * 1000)
        out = io.BytesIO()
        for act in (bucket.open_download_stream, lambda one: bucket.download_to_stream(one, out)):
            with pytest.raises(FileNotReady, match=stream.file_id):
                act(stream.file_id)
        with pytest.raises(NoFile):
            bucket.open_download_stream_by_name(name)
        stream.close()
        bucket.delete(stream.file_id)
        for act in (bucket.open_download_stream, lambda one: bucket.download_to_stream(one, out)):
            with pytest.raises(NoFile, match=stream.file_id):
                act(stream.file_id)
        with pytest.raises(NoFile):
            bucket.open_download_stream("never-heard-of")
        assert out.getvalue() == b""

    def test_rule_14_a_soft_delete_keeps_the_chunks_and_hides_the_file(self, store, bucket, name):
        record = put(bucket, name, noise(500))
        bucket.delete(record.id)
        assert bucket.revisions(name) == [] == list(bucket.find(prefix=name)) == list(bucket.find(filename=name))
        assert record.id not in {one.id for one in bucket.find()}
        with pytest.raises(NoFile):
            bucket.get_by_name(name)
        assert [one.id for one in bucket.find(filename=name, status="Deleted")] == [record.id]
        assert b"".join(row["data"] for row in chunk_rows(store, record)) == noise(500)
        assert bucket.get(record.id).status == "Deleted"

    @pytest.mark.parametrize("soft_first", [False, True])
    def test_rule_14_a_hard_delete_leaves_nothing(self, store, own, name, soft_first):
        record = put(own, name, noise(40_000))
        if soft_first:
            own.delete(record.id)
        own.delete(record.id, hard=True)
        assert nothing_left(store, own.name)
        for hard in (True, False):
            with pytest.raises(NoFile, match=record.id):
                own.delete(record.id, hard=hard)

    def test_rule_14_delete_by_name(self, store, own, name):
        for _ in range(3):
            put(own, name)
        kept = put(own, f"{name}x")
        own.delete(own.get_by_name(name, 1).id)
        assert own.delete_by_name(name) == 2
        with pytest.raises(NoFile):
            own.delete_by_name(name)
        assert own.delete_by_name(name, hard=True) == 3
        assert list(own.find()) == [kept]
        own.delete_by_name(kept.filename, hard=True)
        assert nothing_left(store, own.name)

    def test_rule_15_leaving_by_an_exception_aborts(self, store, own, name):
        with pytest.raises(ZeroDivisionError), own.open_upload_stream(name) as stream:
            stream.write(noise(1000))
            raise ZeroDivisionError
        assert stream.closed
        assert nothing_left(store, own.name)

    def test_rule_15_a_collected_upload_does_not_commit(self, store, own, name, clock):
        stream = own.open_upload_stream(name)
        stream.write(noise(1000))
        file_id = stream.file_id
        del stream
        gc.collect()
        assert own.get(file_id).status == "Incomplete"
        assert list(own.find()) == []
        own.sweep(file_id, 0)
        assert nothing_left(store, own.name)

    def test_rule_15_abort(self, store, own, name):
        stream = own.open_upload_stream(name)
        stream.write(noise(1000))
        stream.abort()
        stream.abort()
        stream.close()
        with pytest.raises(ValueError, match="closed"):
            stream.write(b"x")
        assert nothing_left(store, own.name)
        with own.open_upload_stream(name) as stream:
            stream.write(b"kept")
        stream.abort()
        assert own.open_download_stream_by_name(name).read() == b"kept"

    def test_rule_16_two_uploads_under_one_name_are_two_revisions(self, bucket, name):
        ready = threading.Barrier(4)

        def upload(number):
            with bucket.open_upload_stream(name) as stream:
                for _ in range(20):
                    stream.write(noise(70, number))
                ready.wait(30)
            return stream.file_id

        with ThreadPoolExecutor(4) as pool:
            ids = list(pool.map(upload, range(4)))
        assert {record.id for record in bucket.revisions(name)} == set(ids)
        for number, file_id in enumerate(ids):
            assert whole(bucket, bucket.get(file_id)) == noise(70, number) * 20

    def test_rule_16_a_duplicate_id_is_refused(self, bucket, name):
        file_id = f"id-{name[5:-4]}"
        first = put(bucket, name, b"first", file_id=file_id)
        with pytest.raises(FileExists, match=file_id):
            bucket.open_upload_stream(name, file_id=file_id)
        bucket.delete(file_id)
        with pytest.raises(FileExists, match=file_id):
            put(bucket, name, b"second", file_id=file_id)
        with bucket.open_upload_stream(f"{name}2", file_id=f"{file_id}2"), pytest.raises(FileExists):
            bucket.open_upload_stream(f"{name}2", file_id=f"{file_id}2")
        bucket.delete(file_id, hard=True)
        second = put(bucket, name, b"second", file_id=file_id)
        assert whole(bucket, second) == b"second"
        assert first.attempt != second.attempt
