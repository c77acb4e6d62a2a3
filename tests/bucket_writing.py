"""The rules of writing a file and of its hash, each by its number."""

import hashlib

import pytest

from storage.bucket import Bucket
from storage.bucket_errors import FileNotReady, FileStoreError, HashMismatch, NoFile
from storage.bucket_upload import SIGN_OF_LIFE
from storage.errors import Full
from tests.bucket_setting import (
    CHUNK,
    HOUR,
    SIZES,
    BucketSetting,
    Watched,
    chunk_rows,
    noise,
    nothing_left,
    put,
    ways_to_read,
    whole,
)


class WritingContract(BucketSetting):
    @pytest.mark.parametrize("step", [1, 7, CHUNK, CHUNK + 1, 5 * CHUNK])
    def test_rule_1_every_chunk_but_the_last_has_exactly_the_chunk_size(self, store, bucket, name, step):
        data = noise(3 * CHUNK + 10)
        with bucket.open_upload_stream(name) as stream:
            for begin in range(0, len(data), step):
                assert stream.write(data[begin : begin + step]) == len(data[begin : begin + step])
        assert [len(row["data"]) for row in chunk_rows(store, stream.record)] == [CHUNK, CHUNK, CHUNK, 10]
        assert whole(bucket, stream.record) == data

    def test_rule_1_a_chunk_has_255_kib_unless_told_otherwise(self, store, clock, open_bucket, name):
        open_bucket()
        bucket = Bucket(store, "shared", clock=clock)
        record = put(bucket, name, noise(2 * 261_120 + 5))
        assert record.chunk_size_bytes == 261_120 == record.shown()["chunkSizeBytes"]
        assert [len(row["data"]) for row in chunk_rows(store, record)] == [261_120, 261_120, 5]
        assert [len(row["data"]) for row in chunk_rows(store, put(bucket, name, b"123456", chunk_size_bytes=4))] == [
            4,
            2,
        ]

    @pytest.mark.parametrize("size", SIZES)
    def test_rule_2_chunks_are_numbered_from_0_and_none_is_empty(self, store, bucket, name, size):
        record = put(bucket, name, noise(size))
        rows = chunk_rows(store, record)
        assert [row["num"] for row in rows] == list(range(-(-size // CHUNK)))
        assert b"".join(row["data"] for row in rows) == noise(size)
        assert all(row["data"] for row in rows)
        assert record.length == size

    def test_rule_3_reading_uses_the_files_own_chunk_size(self, open_bucket, name):
        data = noise(5 * CHUNK + 1)
        record = put(open_bucket("rule_three"), name, data)
        other = open_bucket("rule_three", chunk_size_bytes=7)  # not the shared one, which others damage
        assert whole(other, record) == data
        assert other.open_download_stream(record.id, start=CHUNK - 1, end=CHUNK + 2).read() == data[99:102]
        assert other.get(record.id).chunk_size_bytes == CHUNK
        assert other.check().is_sound

    def test_rule_4_the_order_of_a_write(self, store, open_bucket, name):
        watched = Watched(store)
        bucket = open_bucket(store=watched, concurrency=2)
        watched.calls.clear()
        with bucket.open_upload_stream(name, metadata={"a": 1}) as stream:
            begun = bucket.get(stream.file_id)
            assert (begun.status, begun.length, begun.sha256, begun.finished_at) == ("Incomplete", None, None, None)
            assert (begun.started_at > 0, begun.metadata, begun.filename) == (True, {"a": 1}, name)
            for _ in range(5):
                stream.write(noise(CHUNK))
            assert bucket.get(stream.file_id) == begun
        assert watched.written() == [
            ("put", "candidates"),
            ("commit", "shared_files"),
            *[("put_many", "shared_chunks")] * 3,
            ("put_many", "shared_file_ix"),
            ("commit", "shared_files"),
        ]
        done = bucket.get(stream.file_id)
        assert (done.status, done.length, done.started_at) == ("Complete", 5 * CHUNK, begun.started_at)
        assert (done.sha256, done.finished_at) == (hashlib.sha256(noise(CHUNK) * 5).hexdigest(), done.finished_at)

    def test_rule_4_nothing_is_complete_before_every_chunk_is_acknowledged(self, store, open_bucket, name):
        class Refusing(Watched):
            def _note(self, verb, table, what):
                if (verb, table) == ("put_many", "shared_chunks") and what[0][-1][1]["num"] == 4:
                    raise Full("no")
                super()._note(verb, table, what)

        bucket = open_bucket(store=Refusing(store))
        stream = bucket.open_upload_stream(name)
        stream.write(noise(4 * CHUNK + 1))
        with pytest.raises(Full):
            stream.close()
        with pytest.raises(NoFile):
            bucket.get(stream.file_id)

    def test_rule_5_no_other_transitions(self, bucket, name):
        stream = bucket.open_upload_stream(name)
        for act in (bucket.delete, lambda one: bucket.rename(one, "x"), lambda one: bucket.replace_metadata(one, 1)):
            with pytest.raises(FileNotReady, match=stream.file_id):
                act(stream.file_id)
        stream.close()
        bucket.delete(stream.file_id)
        for act in (lambda one: bucket.rename(one, "x"), lambda one: bucket.replace_metadata(one, 1)):
            with pytest.raises(NoFile, match=stream.file_id):
                act(stream.file_id)
        assert bucket.get(stream.file_id).status == "Deleted"

    def test_rule_5_an_upload_is_removed_whole(self, store, own, name):
        stream = own.open_upload_stream(name)
        stream.write(noise(10 * CHUNK))
        own.delete(stream.file_id, hard=True)
        assert nothing_left(store, own.name)
        stream.write(noise(10 * CHUNK))
        with pytest.raises(NoFile, match=stream.file_id):
            stream.close()
        assert nothing_left(store, own.name)

    def test_rule_5_an_upload_that_lost_its_record_hears_it_at_its_next_sign_of_life(self, bucket, clock, name):
        stream = bucket.open_upload_stream(name)
        clock.now += SIGN_OF_LIFE
        stream.write(b"x")
        alive = bucket.get(stream.file_id).alive
        assert alive > clock.now - 10
        bucket.delete(stream.file_id, hard=True)
        stream.write(b"x")
        clock.now += SIGN_OF_LIFE
        with pytest.raises(NoFile):
            stream.write(b"x")
        with pytest.raises(FileStoreError):
            stream.close()

    def test_rule_6_times(self, bucket, clock, name):
        with bucket.open_upload_stream(name) as stream:
            clock.now -= HOUR  # another machine's clock, or this one set back
        record = stream.record
        assert record.finished_at >= record.started_at
        bucket.delete(record.id)
        first = bucket.get(record.id).deleted_at
        assert first >= record.finished_at
        clock.now += 5 * HOUR
        bucket.delete(record.id)
        assert bucket.get(record.id).deleted_at == first

    def test_rule_6_finished_at_is_the_end_of_the_upload(self, bucket, clock, name):
        with bucket.open_upload_stream(name) as stream:
            started = clock.now
            clock.now += HOUR
        assert started - 10 < stream.record.started_at <= started
        assert stream.record.finished_at > started + HOUR

    @pytest.mark.parametrize("size", SIZES)
    def test_rule_7_sha256(self, bucket, name, size):
        assert put(bucket, name, noise(size)).sha256 == hashlib.sha256(noise(size)).hexdigest()

    def test_rule_7_the_empty_file(self, store, bucket, name):
        bucket.open_upload_stream(name).close()
        record = bucket.get_by_name(name)
        assert (record.length, record.status) == (0, "Complete")
        assert record.sha256 == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        assert chunk_rows(store, record) == []
        assert [read() for read in ways_to_read(bucket, record).values()] == [b""] * 7

    @pytest.mark.parametrize("size", [1, CHUNK, 5 * CHUNK, 5 * CHUNK + 1])
    def test_rule_8_a_wrong_sha256_is_raised_before_the_last_chunk(self, bucket, name, harm, size):
        record = put(bucket, name, noise(size))
        harm(record, 0, "forge")
        last = (size - 1) // CHUNK * CHUNK
        for how, read in ways_to_read(bucket, record).items():
            with pytest.raises(HashMismatch, match=record.id):
                print(how, read())
        seen = []
        with pytest.raises(HashMismatch):
            for piece in bucket.pieces(record):
                seen.append(piece)
        assert sum(map(len, seen)) == last
        with bucket.open_download_stream(record.id) as stream:
            assert len(stream.read(last)) == last
            for _ in range(3):
                with pytest.raises(HashMismatch):
                    stream.read(1)
            stream.seek(0)
            with pytest.raises(HashMismatch):
                stream.read()

    def test_rule_8_looking_back_does_not_hide_a_wrong_sha256(self, bucket, name, harm):
        record = put(bucket, name, noise(5 * CHUNK))
        harm(record, 2, "forge")
        with bucket.open_download_stream(record.id) as stream:
            for position in (0, 150, 20, 250, 99, 350, 0, 399):
                stream.seek(position)
                stream.read(1)
            stream.seek(410)
            with pytest.raises(HashMismatch):
                stream.read(1)
