"""The mistakes that real stores of files shipped, each by its name. Those of HTTP are in app_files/."""

import gc
import io
import os
import threading
from contextlib import contextmanager

import pytest

from storage.blobs import checksum
from storage.bucket_errors import CorruptFile, NoFile
from storage.bucket_tables import tables_of
from storage.errors import Unknown
from storage.schema import CANDIDATES
from storage.table import Outcome
from tests.bucket_setting import (
    CHUNK,
    HOUR,
    SECOND,
    BucketSetting,
    Watched,
    all_rows,
    chunk_rows,
    noise,
    nothing_left,
    put,
    ways_to_read,
    whole,
)


class Shy:
    """A source that gives less than it is asked for, as pipes and sockets do."""

    def __init__(self, data, size):
        self._data, self._size = io.BytesIO(data), size

    def read(self, size=-1):
        return self._data.read(self._size)


class MistakeContract(BucketSetting):
    def test_mistake_one_big_write_made_one_oversized_chunk(self, store, bucket, name):
        with bucket.open_upload_stream(name) as stream:
            stream.write(noise(50 * CHUNK + 1))
        assert [len(row["data"]) for row in chunk_rows(store, stream.record)] == [CHUNK] * 50 + [1]

    def test_mistake_an_interrupted_upload_read_back_silently_truncated(self, bucket, name):
        class Broken(io.RawIOBase):
            def read(self, size=-1):
                if self.tell_me():
                    raise OSError("the network is gone")
                return noise(500)

            def tell_me(self, calls=[]):  # noqa: B006
                calls.append(1)
                return len(calls) > 3

        with pytest.raises(OSError, match="network"):
            bucket.upload_from_stream(name, Broken())
        with pytest.raises(NoFile):
            bucket.open_download_stream_by_name(name)
        assert list(bucket.find(prefix=name)) == []

    def test_mistake_a_source_without_data_yet_was_taken_for_its_end(self, bucket, name):
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        with os.fdopen(reader, "rb", buffering=0) as source, pytest.raises(BlockingIOError):
            bucket.upload_from_stream(name, source)
        os.close(writer)
        assert list(bucket.find(filename=name)) == []

    def test_mistake_an_exception_within_with_committed_a_truncated_file(self, bucket, name):
        with pytest.raises(KeyboardInterrupt), bucket.open_upload_stream(name) as stream:
            stream.write(noise(500))
            raise KeyboardInterrupt
        assert bucket.revisions(name) == []

    def test_mistake_racing_writers_garbled_each_other(self, store, bucket, name):
        """No unique (file, num): here an id can't be used twice, and if it is, keys still differ."""
        file_id = f"race-{name[5:-4]}"
        first = bucket.open_upload_stream(name, file_id=file_id)
        first.write(noise(500, 1))
        bucket.delete(file_id, hard=True)
        second = bucket.open_upload_stream(name, file_id=file_id)
        second.write(noise(500, 2))
        first.write(noise(500, 1))
        with pytest.raises(NoFile):
            first.close()
        second.write(noise(500, 3))
        second.close()
        assert whole(bucket, second.record) == noise(500, 2) + noise(500, 3)
        keys = [tables_of("shared").chunks.key_of(row) for row in all_rows(store, tables_of("shared").chunks)]
        assert len(set(keys)) == len(keys)

    def test_a_removal_never_takes_the_next_file_of_its_id(self, store, open_bucket, own, name):
        """While one removes a file, another does so too, and the id is used again."""

        class Slow(Watched):
            def _note(self, verb, table, what):
                if verb == "erase" and not self.calls:
                    self.calls.append("once")
                    own.delete(file_id, hard=True)
                    put(own, name, b"the next", file_id=file_id)

        file_id = put(own, name, noise(500)).id
        open_bucket(own.name, Slow(store)).delete(file_id, hard=True)
        assert whole(own, own.get(file_id)) == b"the next"
        assert own.check().found == {}

    @pytest.mark.parametrize("num", [0, 1, 2])
    def test_mistake_an_empty_chunk_looped_the_reader_for_ever(self, bucket, name, harm, num):
        record = put(bucket, name, noise(2 * CHUNK + 50))
        harm(record, num, "empty")
        for read in ways_to_read(bucket, record).values():
            with pytest.raises(CorruptFile):
                read()

    def test_mistake_a_short_last_chunk_hung(self, bucket, name, harm):
        record = put(bucket, name, noise(2 * CHUNK + 50))
        for read in ways_to_read(bucket, record).values():
            assert read() == noise(2 * CHUNK + 50)
        harm(record, 2, "shorten")
        for read in ways_to_read(bucket, record).values():
            with pytest.raises(CorruptFile, match="chunk 2"):
                read()

    def test_mistake_zero_length_looped(self, bucket, name):
        record = put(bucket, name, b"")
        assert {read() for read in ways_to_read(bucket, record).values()} == {b""}
        with bucket.open_download_stream(record.id) as stream:
            assert (list(stream), stream.readline(), stream.seek(0, io.SEEK_END), stream.peek()) == ([], b"", 0, b"")

    @pytest.mark.parametrize("chunks", [1, 2, 5])
    def test_mistake_an_empty_extra_chunk_at_an_exact_multiple(self, store, bucket, name, chunks):
        with bucket.open_upload_stream(name) as stream:
            for _ in range(chunks):
                stream.write(noise(CHUNK))
            stream.write(b"")
        assert len(chunk_rows(store, stream.record)) == chunks

    @pytest.mark.parametrize("size", [1, 3, CHUNK - 1, CHUNK + 1])
    def test_mistake_short_reads_of_the_source_made_uneven_chunks_and_wrong_ranges(self, store, bucket, name, size):
        data = noise(5 * CHUNK + 7)
        record = bucket.upload_from_stream(name, Shy(data, size))
        assert [len(row["data"]) for row in chunk_rows(store, record)] == [CHUNK] * 5 + [7]
        assert bucket.open_download_stream(record.id, start=95, end=305).read() == data[95:305]

    @pytest.mark.parametrize("back", [0, 1, 2, CHUNK, CHUNK + 1, 3 * CHUNK])
    def test_mistake_seek_from_the_end_off_by_one(self, bucket, name, back):
        data = noise(3 * CHUNK)
        with bucket.open_download_stream(put(bucket, name, data).id) as stream:
            assert stream.seek(-back, io.SEEK_END) == len(data) - back == stream.tell()
            assert stream.read() == data[len(data) - back :]

    def test_mistake_end_0_taken_for_unset(self, bucket, name):
        record = put(bucket, name, noise(500))
        with bucket.open_download_stream(record.id, start=0, end=0) as stream:
            assert (stream.read(), stream.seek(0, io.SEEK_END)) == (b"", 0)
        assert list(bucket.pieces(record, 0, 0)) == []

    def test_mistake_a_length_over_2_gb_turned_negative(self, store, bucket, name):
        """A file of 5 GiB of which only what is looked at is there."""
        size, part = (5 << 30) + 7, 261_120
        stream = bucket.open_upload_stream(name, chunk_size_bytes=part)
        stream.abort()
        states = bucket._states
        begun = states.begin(stream.record)
        record = states.complete(begun, size, "0" * 64)
        num = size // part
        key = (record.id, f"{record.attempt}", num // 128, num)
        table = tables_of("shared").chunks
        data = noise(size % part)
        store.put(
            table,
            dict(zip(table.key, key, strict=True))
            | {"id": "last", "data": data, "crc": checksum(record.id, record.attempt, num, data)},
        )
        record = bucket.get(record.id)
        assert (record.length, bucket.get_by_name(name).length) == (size, size)
        with bucket.open_download_stream(record.id) as reader:
            assert reader.seek(0, io.SEEK_END) == size
            assert reader.seek(-9, io.SEEK_CUR) == size - 9
            assert reader.read() == data[-9:]
        with bucket.open_download_stream(record.id, start=size - 5, end=size - 2) as reader:
            assert reader.read() == data[-5:-2]
        bucket.delete(record.id, hard=True)

    def test_mistake_newest_returned_the_oldest(self, bucket, name):
        for number in range(3):
            put(bucket, name, b"%d" % number)
        assert bucket.open_download_stream_by_name(name).read() == b"2"
        assert bucket.open_download_stream_by_name(name, -1).read() == b"2"
        assert [record.length for record in bucket.find(filename=name)] == [1, 1, 1]
        assert [whole(bucket, record) for record in bucket.find(filename=name)] == [b"2", b"1", b"0"]

    def test_mistake_a_second_upload_overwrote_the_first(self, bucket, name):
        first = put(bucket, name, b"first")
        put(bucket, name, b"second")
        assert whole(bucket, first) == b"first"
        assert bucket.open_download_stream_by_name(name, 0).read() == b"first"

    def test_mistake_a_client_that_vanished_left_chunks_nobody_could_find(self, store, own, clock, name):
        stream = own.open_upload_stream(name)
        stream.write(noise(20 * CHUNK))
        file_id = stream.file_id
        del stream
        gc.collect()
        assert any(row["id"] == f"{own.name}/{file_id}" for row in all_rows(store, CANDIDATES))
        own.sweep(file_id, 24 * HOUR)
        assert chunk_rows(store, own.get(file_id), own.name)
        clock.now += 25 * HOUR
        assert own.check().found == {"abandoned": 1}
        own.sweep(file_id, 24 * HOUR)
        assert nothing_left(store, own.name)

    def test_mistake_a_second_close_wrote_the_last_chunk_twice(self, store, bucket, name):
        stream = bucket.open_upload_stream(name)
        stream.write(noise(CHUNK + 7))
        stream.close()
        stream.close()
        assert [len(row["data"]) for row in chunk_rows(store, stream.record)] == [CHUNK, 7]
        assert len(bucket.revisions(name)) == 1
        with pytest.raises(ValueError, match="closed"):
            stream.write(b"x")

    def test_mistake_a_failed_write_was_followed_by_a_commit(self, store, own, name):
        stream = own.open_upload_stream(name)
        stream.write(noise(500))
        with pytest.raises(TypeError):
            stream.write("text")
        with pytest.raises(Exception, match="has failed"):
            stream.close()
        assert stream.closed
        assert nothing_left(store, own.name)

    def test_a_completion_of_unknown_outcome_is_not_taken_back(self, store, open_bucket, own, name):
        """The store can't tell whether it was written; it was. Whoever hears of it must not remove the chunks."""

        class Unsure(Watched):
            unknown = False

            def __getattr__(self, verb):
                found = super().__getattr__(verb)
                if verb != "commit":
                    return found

                def commit(*args):
                    outcome = found(*args)
                    self.unknown = args[2][0].row["status"] == "Complete"
                    if self.unknown and not self.transactional:
                        raise Unknown("written or not")
                    return outcome

                return commit

            @contextmanager
            def unit(self):
                with super().unit():
                    yield
                if self.unknown and self.transactional:
                    raise Unknown("written or not")

        unsure = Unsure(store)
        stream = open_bucket(own.name, unsure).open_upload_stream(name)
        stream.write(noise(500))
        with pytest.raises(Unknown):
            stream.close()
        assert whole(own, own.get_by_name(name)) == noise(500)
        assert own.check(older_than=0).found == {}

    def test_a_completion_that_was_overtaken_keeps_its_index_rows(self, store, open_bucket, own, name):
        """The store's conflict means «read and decide»: it was written, and then somebody else changed the metadata."""

        class Overtaken(Watched):
            def __getattr__(self, verb):
                found = super().__getattr__(verb)
                if verb != "commit":
                    return found

                def commit(*args):
                    outcome = found(*args)
                    if args[2][0].row["status"] != "Complete":
                        return outcome
                    own.replace_metadata(stream.file_id, "theirs")
                    return Outcome(False, rows=(None,))

                return commit

        stream = open_bucket(own.name, Overtaken(store)).open_upload_stream(name)
        stream.write(noise(500))
        stream.close()
        assert (stream.record, stream.record.metadata) == (own.get_by_name(name), "theirs")
        assert list(own.find()) == [stream.record]
        assert own.check(older_than=0).found == {}

    def test_an_index_row_that_took_too_long_is_put_again(self, store, open_bucket, own, clock, name):
        """A check may have taken it for stale: a minute is the most between it and its record."""

        class Slow(Watched):
            def _note(self, verb, table, what):
                super()._note(verb, table, what)
                if self.written().count(("put_many", f"{own.name}_file_ix")) == 1:
                    clock.now += 120 * SECOND

        slow = Slow(store)
        record = put(open_bucket(own.name, slow), name)
        assert slow.written().count(("put_many", f"{own.name}_file_ix")) == 2
        [row] = all_rows(store, tables_of(own.name).file_ix)
        assert row["naming"] == record.naming
        assert own.get_by_name(name) == record

    def test_a_reader_during_a_delete_ends_in_an_error_or_whole(self, own, name):
        data = noise(50 * CHUNK)
        record = put(own, name, data)
        reader = own.open_download_stream(record.id)
        begin = reader.read(5 * CHUNK)
        own.delete(record.id)
        assert begin + reader.read() == data  # deleted softly: streams under way go on
        reader.seek(0)
        begin = reader.read(2 * CHUNK)
        own.delete(record.id, hard=True)
        with pytest.raises(CorruptFile):
            reader.read()

    def test_readers_beside_writers_and_deleters(self, own, name):
        """Each read gives one revision whole, or says that there is none."""
        stop = threading.Event()
        seen, wrong = set(), []

        def read():
            while not stop.is_set():
                try:
                    data = own.open_download_stream_by_name(name).read()
                except (NoFile, CorruptFile):
                    continue
                seen.add(data[:1])
                if data != data[:1] * 350:
                    wrong.append(data)

        threads = [threading.Thread(target=read) for _ in range(2)]
        for thread in threads:
            thread.start()
        for number in range(12):
            record = put(own, name, bytes([number]) * 350)
            while bytes([number]) not in seen:
                pass
            if number % 3 == 2:
                own.delete(record.id, hard=number % 2 == 0)
        stop.set()
        for thread in threads:
            thread.join()
        assert wrong == []
