"""The rules of files, each by its number."""

import csv
import gc
import hashlib
import io
import shutil
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from PIL import Image

from imaging.limits import Limits
from imaging.picture import inspect
from storage.bucket import Bucket
from storage.bucket_errors import (
    ChunkMissing,
    ChunkWrongSize,
    CorruptFile,
    ExtraChunk,
    FileExists,
    FileNotReady,
    FileStoreError,
    HashMismatch,
    InvalidRange,
    NoBucket,
    NoFile,
    NoRevision,
)
from storage.bucket_tables import CHUNKS_TOGETHER, chunks_together, tables_of
from storage.bucket_upload import SIGN_OF_LIFE
from storage.errors import Full, SchemaMismatch
from storage.table import Kind, Type, cas
from tests.bucket_setting import CHUNK, HOUR, BucketSetting, Watched, chunk_rows, noise, nothing_left
from tests.imaging_files import jpeg

SIZES = [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 7 * CHUNK + 13]


def put(bucket, name, data=b"some bytes", **more):
    return bucket.upload_from_stream(name, io.BytesIO(data), **more)


def whole(bucket, record):
    with bucket.open_download_stream(record.id) as stream:
        return stream.read()


def ways_to_read(bucket, record):
    """Every way to read a whole file, as functions."""

    def bit_by_bit(size):
        with bucket.open_download_stream(record.id) as stream:
            return b"".join(iter(lambda: stream.read(size), b""))

    def copied():
        out = io.BytesIO()
        bucket.download_to_stream(record.id, out)
        return out.getvalue()

    return {
        "at once": lambda: whole(bucket, record),
        "byte by byte": lambda: bit_by_bit(1),
        "in odd pieces": lambda: bit_by_bit(77),
        "in chunks": lambda: bit_by_bit(CHUNK),
        "to a stream": copied,
        "piece by piece": lambda: b"".join(bucket.pieces(record)),
        "buffered": lambda: io.BufferedReader(bucket.open_download_stream(record.id), 64).read(),
    }


class RuleContract(BucketSetting):
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

    def test_rule_9_a_range_of_a_damaged_chunk_fails(self, bucket, name, harm):
        record, data = put(bucket, name, noise(5 * CHUNK)), noise(5 * CHUNK)
        harm(record, 2, "flip")
        for start, end in ((299, 300), (0, 201), (250, 450), (0, 500)):
            with pytest.raises(HashMismatch, match=rf"{record.id}, chunk 2"):
                bucket.open_download_stream(record.id, start=start, end=end).read()
            with pytest.raises(HashMismatch, match="chunk 2"):
                b"".join(bucket.pieces(record, start, end))
        for start, end in ((0, 200), (300, 500), (10, 20)):
            assert bucket.open_download_stream(record.id, start=start, end=end).read() == data[start:end]

    @pytest.mark.parametrize(
        ("how", "error"),
        [("drop", ChunkMissing), ("shorten", ChunkWrongSize), ("lengthen", ChunkWrongSize), ("empty", ChunkWrongSize)],
    )
    @pytest.mark.parametrize("num", [0, 2, 4])
    def test_rule_10_a_chunk_that_is_missing_or_of_a_wrong_length(self, bucket, name, harm, how, error, num):
        record = put(bucket, name, noise(4 * CHUNK + 50))
        harm(record, num, how)
        for read in ways_to_read(bucket, record).values():
            with pytest.raises(error, match=f"file {record.id}, chunk {num}: ") as raised:
                read()
            assert (raised.value.file_id, raised.value.chunk) == (record.id, num)
        with bucket.open_download_stream(record.id) as stream:
            stream.seek(num * CHUNK + 5)
            for _ in range(2):
                with pytest.raises(error):
                    stream.read(1)

    @pytest.mark.parametrize("size", [0, 1, CHUNK, 3 * CHUNK, 3 * CHUNK + 1])
    def test_rule_11_an_extra_chunk_is_tolerated_if_empty(self, bucket, name, harm, size):
        record = put(bucket, name, noise(size))
        harm(record, -(-size // CHUNK), "empty")
        assert {read() for read in ways_to_read(bucket, record).values()} == {noise(size)}

    @pytest.mark.parametrize("size", [0, 1, CHUNK, 3 * CHUNK, 3 * CHUNK + 1])
    def test_rule_11_else_the_file_is_corrupt(self, bucket, name, harm, size):
        record = put(bucket, name, noise(size))
        harm(record, -(-size // CHUNK), "append")
        for read in ways_to_read(bucket, record).values():
            with pytest.raises(ExtraChunk, match=f"{record.id}, chunk {-(-size // CHUNK)}"):
                read()

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

    @pytest.mark.parametrize(
        ("start", "end"), [(-1, 5), (0, 11), (11, 11), (5, 4), (0, -1), (-5, None), (11, None), (1 << 40, 1 << 41)]
    )
    def test_rule_17_ranges_outside_are_refused(self, bucket, name, start, end):
        record = put(bucket, name, b"0123456789")
        with pytest.raises(InvalidRange, match=record.id):
            bucket.open_download_stream(record.id, start=start, end=end)
        with pytest.raises(InvalidRange, match=record.id):
            bucket.pieces(record, start, end)

    @pytest.mark.parametrize("size", SIZES)
    def test_rule_17_every_other_range_is_right(self, bucket, name, size):
        data = noise(size)
        record = put(bucket, name, data)
        edges = sorted({edge for edge in (0, 1, CHUNK - 1, CHUNK, CHUNK + 1, size - 1, size) if 0 <= edge <= size})
        for start in edges:
            assert bucket.open_download_stream(record.id, start=start).read() == data[start:]
            for end in edges[edges.index(start) :]:
                with bucket.open_download_stream(record.id, start=start, end=end) as stream:
                    assert stream.read() == data[start:end]
                    assert stream.seek(0, io.SEEK_END) == end - start
                assert b"".join(bucket.pieces(record, start, end)) == data[start:end]

    def test_rule_18_the_reader_is_a_real_file(self, bucket, name):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("a.bin", noise(3000))
            archive.writestr("b.csv", "ö,1\r\nü,2\r\n" * 400)
        record = put(bucket, name, packed.getvalue())
        with bucket.open_download_stream(record.id) as raw, zipfile.ZipFile(raw) as archive:
            assert archive.read("a.bin") == noise(3000)
            table = archive.read("b.csv")
        rows = put(bucket, name, table)
        with bucket.open_download_stream(rows.id) as raw:
            assert (raw.readable(), raw.seekable(), raw.writable()) == (True, True, False)
            assert list(raw) == table.splitlines(keepends=True)
            assert (raw.seek(-3, io.SEEK_END), raw.readline(), raw.read(), raw.tell()) == (4797, b"2\r\n", b"", 4800)
            assert (raw.seek(9999), raw.read(), raw.readinto(bytearray(9))) == (9999, b"", 0)
            with pytest.raises(ValueError):
                raw.seek(-1)
        with io.TextIOWrapper(io.BufferedReader(bucket.open_download_stream(rows.id)), "utf-8", newline="") as text:
            assert list(csv.reader(text)) == [["ö", "1"], ["ü", "2"]] * 400
        copy = io.BytesIO()
        shutil.copyfileobj(bucket.open_download_stream(rows.id), copy, 1000)
        assert copy.getvalue() == table

    def test_rule_18_a_range_is_a_file_too(self, bucket, name):
        data, plain = noise(900), io.BytesIO(noise(900)[150:620])
        record = put(bucket, name, data)
        with bucket.open_download_stream(record.id, start=150, end=620) as stream:
            for offset, whence, size in [(0, 0, 60), (10, 1, 200), (-5, 2, 99), (100, 0, -1), (0, 0, 1), (470, 0, 1)]:
                assert stream.seek(offset, whence) == plain.seek(offset, whence)
                assert stream.read(size) == plain.read(size)
                assert stream.tell() == plain.tell()

    def test_rule_18_a_range_is_read_ahead_no_further_than_its_end(self, store, open_bucket, own, name):
        record = put(own, name, noise(3000))
        watched = Watched(store)
        bucket = open_bucket(own.name, watched)
        for read in (
            lambda: bucket.open_download_stream(record.id, start=0, end=250).read(),
            lambda: b"".join(bucket.pieces(record, 0, 250)),
        ):
            watched.calls.clear()
            assert read() == noise(3000)[:250]
            assert sum(len(what) for verb, _, what in watched.calls if verb == "fetch") == 3

    def test_rule_18_images_are_read_through_it(self, bucket, name):
        out = io.BytesIO()
        Image.radial_gradient("L").resize((400, 300)).convert("RGB").save(out, "JPEG", quality=95)
        record = put(bucket, name, out.getvalue())
        with bucket.open_download_stream(record.id) as stream:
            assert (inspect(stream, Limits()).width, inspect(stream, Limits()).height) == (400, 300)
        with bucket.open_download_stream(record.id) as stream:
            scaled = jpeg(stream, 40, 30, Limits())
        assert Image.open(io.BytesIO(scaled)).size == (40, 30)

    def test_rule_18_damage_reaches_whoever_reads_through_it(self, bucket, name, harm):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("a.bin", noise(3000))
        record = put(bucket, name, packed.getvalue())
        harm(record, 7, "flip")
        raw = bucket.open_download_stream(record.id)
        with zipfile.ZipFile(raw) as archive, pytest.raises(CorruptFile, match="chunk 7"):
            archive.read("a.bin")

    @pytest.mark.parametrize("chunk_size", [1, 1000, 255 * 1024, 256 * 1024, 300_000, 1 << 20])
    def test_rule_19_no_partition_grows_beyond_64_mib(self, chunk_size):
        assert 1 <= chunks_together(chunk_size) <= CHUNKS_TOGETHER
        assert chunks_together(chunk_size) * chunk_size <= 64 << 20

    def test_rule_19_a_large_file_is_many_partitions(self, store, bucket, name):
        record = put(bucket, name, noise(300), chunk_size_bytes=1)
        assert {row["bucket"] for row in chunk_rows(store, record)} == {0, 1, 2}
        assert [row["num"] for row in chunk_rows(store, record)] == list(range(300))

    def test_rule_19_bounded_concurrency_no_pages_no_single_deletes(self, store, open_bucket, name):
        watched = Watched(store)
        bucket = open_bucket(store=watched, concurrency=4)
        watched.calls.clear()
        record = put(bucket, name, noise(10 * CHUNK))
        for _ in bucket.pieces(record):
            pass
        bucket.delete(record.id)
        bucket.delete(record.id, hard=True)
        for verb, table, what in watched.calls:
            if table == "shared_chunks":
                assert verb in ("put_many", "read", "erase"), verb
                assert verb != "put_many" or (what[1]["window"] == 4 and len(what[0]) <= 4)
            if verb == "commit":
                assert table == "shared_files" and all(change.expect is not None for change in what[1])

    def test_rule_20_tables_columns_and_indexes(self):
        tables = tables_of("photos")
        assert [table.name for table in tables.all] == [
            "photos_files",
            "photos_chunks",
            "photos_file_ix",
            "photos_recent",
        ]
        assert {"id", "file_id", "num", "data"} <= tables.chunks.columns.keys()
        seed = {
            "id",
            "length",
            "chunkSizeBytes",
            "finishedAt",
            "startedAt",
            "deletedAt",
            "sha256",
            "filename",
            "status",
            "metadata",
        }
        assert seed <= tables.files.columns.keys()
        assert tables.file_ix.clustering[:3] == ("status", "filename", "finishedAt")
        assert (tables.chunks.key[0], tables.chunks.key[-1]) == ("file_id", "num")
        assert tables.files.kind is Kind.CAS

    def test_rule_20_chunk_ids_are_unique(self, store, own, name):
        records = [put(own, name, noise(500)) for _ in range(3)]
        ids = [row["id"] for record in records for row in chunk_rows(store, record, own.name)]
        assert len(set(ids)) == 15

    def test_rule_20_init(self, store, open_bucket, clock):
        with pytest.raises(NoBucket, match="nowhere"):
            put(Bucket(store, "nowhere", clock=clock), "x")
        bucket = open_bucket("made")
        put(bucket, "x", b"there")
        Bucket(store, "made", clock=clock).init(shards=64)
        assert open_bucket("made").open_download_stream_by_name("x").read() == b"there"
        assert len(list(open_bucket("made").find(prefix=""))) == 1

    def test_rule_20_init_raises_when_creation_fails(self, store):
        store.create([cas("taken_files", "id", id=Type.TEXT, other=Type.INT)])
        bucket = Bucket(store, "taken")
        with pytest.raises(SchemaMismatch, match="taken_files"):
            bucket.init()
        with pytest.raises(NoBucket):
            bucket.find()

    @pytest.mark.parametrize("name", ["", "A", "1a", "a-b", "a" * 41, "fs;drop", "ä", "a.b", "_a", "a\n"])
    def test_rule_20_names_of_buckets(self, store, name):
        with pytest.raises(ValueError, match="bucket"):
            Bucket(store, name)
