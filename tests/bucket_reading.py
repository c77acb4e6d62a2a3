"""The rules of reading: damage, ranges, the reader as a file; each by its number."""

import csv
import io
import shutil
import zipfile

import pytest
from PIL import Image

from imaging.limits import Limits
from imaging.picture import inspect
from storage.bucket_errors import ChunkMissing, ChunkWrongSize, CorruptFile, ExtraChunk, HashMismatch, InvalidRange
from tests.bucket_setting import CHUNK, SIZES, BucketSetting, Watched, noise, put, ways_to_read
from tests.imaging_files import jpeg


class ReadingContract(BucketSetting):
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
