"""What a check finds, what a repair does, and what crashes leave."""

import io

import pytest

from storage.announcements import Litter
from storage.bucket_errors import CorruptFile, NoFile
from storage.bucket_tables import tables_of
from storage.schema import CANDIDATES
from tests.bucket_setting import (
    CHUNK,
    HOUR,
    BucketSetting,
    Crash,
    Watched,
    all_rows,
    chunk_rows,
    noise,
    nothing_left,
    put,
    whole,
)

DAY = 24 * HOUR


def announced(store, bucket, file_id):
    name = f"{bucket.name}/{file_id}"
    return any((row["kind"], row["id"]) == (Litter.FILE, name) for row in all_rows(store, CANDIDATES))


class RepairContract(BucketSetting):
    def test_a_sound_bucket(self, own, clock):
        for number in range(5):
            put(own, "x", noise(number * CHUNK))
        own.delete(own.get_by_name("x").id)
        own.rename(own.get_by_name("x").id, "y")
        clock.now += 2 * DAY
        told = []
        report = own.check(progress=told.append)
        assert (report.is_sound, report.found, report.findings) == (True, {}, [])
        assert report.files == {"Incomplete": 0, "Complete": 4, "Deleted": 1}
        assert (report.bytes, told) == (10 * CHUNK, [1, 2, 3, 4, 5])

    def test_damage_is_named_and_nothing_is_done_about_it(self, own, harm):
        record = put(own, "x", noise(6 * CHUNK))
        for num, how in ((1, "drop"), (2, "flip"), (4, "shorten")):
            harm(record, num, how, own.name)
        for repair in (False, True):
            report = own.check(repair=repair)
            assert report.found == {"missing": 1, "damaged": 1, "wrong size": 1}
            assert not report.is_sound and not report.repaired
            assert [(one.kind, one.file_id, one.chunk) for one in report.findings] == [
                ("missing", record.id, 1),
                ("damaged", record.id, 2),
                ("wrong size", record.id, 4),
            ]
            assert all(f"file {record.id}, chunk {one.chunk}" in one.text for one in report.findings)

    def test_a_wrong_sha256(self, own, harm):
        record = put(own, "x", noise(6 * CHUNK))
        harm(record, 1, "forge", own.name)
        [finding] = own.check(repair=True).findings
        assert (finding.kind, finding.chunk, finding.repaired) == ("damaged", None, False)

    @pytest.mark.parametrize("size", [0, 10, 2 * CHUNK])
    def test_an_extra_chunk_is_deleted(self, own, harm, size):
        record = put(own, "x", noise(size))
        harm(record, -(-size // CHUNK), "append", own.name)
        assert own.check().found == {"extra": 1}
        with pytest.raises(CorruptFile):
            whole(own, record)
        report = own.check(repair=True)
        assert (report.found, report.is_sound) == ({"extra": 1}, True)
        assert own.check().found == {}
        assert whole(own, record) == noise(size)

    def test_an_abandoned_upload_is_removed(self, store, own, clock):
        stream = own.open_upload_stream("x")
        stream.write(noise(1000))
        clock.now += DAY // 2
        other = own.open_upload_stream("y")
        other.write(noise(1000))
        assert own.check(older_than=DAY).found == {}
        clock.now += DAY * 2 // 3
        report = own.check(older_than=DAY)
        assert [(one.kind, one.file_id) for one in report.findings] == [("abandoned", stream.file_id)]
        assert own.check(older_than=DAY, repair=True).is_sound
        assert [one.id for one in own.find(status="Incomplete")] == [other.file_id]
        other.close()
        assert whole(own, other.record) == noise(1000)
        with pytest.raises(NoFile):
            stream.close()

    def test_a_broken_off_removal_is_finished(self, store, own, open_bucket, clock):
        record = put(own, "x", noise(1000))
        watched = Watched(store)
        other = open_bucket(own.name, watched)
        _ = other._states
        watched.calls.clear()
        watched._crash_at = 4  # looked, announced, looked, marked
        with pytest.raises(Crash):
            other.delete(record.id, hard=True)
        assert own._states.look(record.id).erasing
        with pytest.raises(NoFile):
            own.get(record.id)
        assert own.check().found == {}
        clock.now += DAY + 10
        assert own.check().found == {"half deleted": 1}
        report = own.check(repair=True)
        assert report.is_sound and report.repaired["half deleted"] == 1
        assert nothing_left(store, own.name)

    def test_chunks_without_a_record_are_erased(self, store, own):
        kept, stray = put(own, "x", noise(1000)), own.open_upload_stream("y")
        stray.write(noise(1000))
        own.delete(stray.file_id, hard=True)
        with self.tampering(store):
            blobs = own._chunks.sized(CHUNK)
            blobs.write("gone", "attempt", [(0, b"x"), (1, b"y")])
            blobs.write(kept.id, "another", [(0, b"x")])
        assert own.check().found == {"unowned": 2}
        assert own.check(repair=True).repaired == {"unowned": 2}
        assert own.check().found == {}
        assert whole(own, kept) == noise(1000)

    @pytest.mark.parametrize("which", ["file_ix", "recent"])
    def test_missing_index_rows_are_put_back(self, store, own, which):
        record, deleted = put(own, "x"), put(own, "y")
        own.delete(deleted.id)
        table = getattr(tables_of(own.name), which)
        for row in all_rows(store, table):
            store.delete(table, table.key_of(row))
        assert own.check().found == {"unlisted": 2}
        assert own.check(repair=True).is_sound
        assert (own.check().found, own.get_by_name("x"), list(own.find())) == ({}, record, [record])
        assert [one.id for one in own.find(status="Deleted")] == [deleted.id]

    def test_stale_index_rows_are_deleted(self, store, own, clock):
        tables = tables_of(own.name)
        record = put(own, "x")
        kept = [(table, row) for table in (tables.file_ix, tables.recent) for row in all_rows(store, table)]
        own.rename(record.id, "y")
        store.put_many(kept)
        assert own.check(older_than=0).found == {}
        clock.now += 2 * HOUR
        assert own.check(older_than=DAY).found == {}
        assert own.check(older_than=0).found == {"stale": 2}
        assert own.check(older_than=0, repair=True).is_sound
        assert len(all_rows(store, tables.file_ix)) == 1
        assert own.check(older_than=0).found == {}

    def test_what_changes_during_a_check_is_not_wrong(self, own, harm):
        records = [put(own, f"{number}", noise(300)) for number in range(20)]
        rest = iter(records[10:])

        def meanwhile(done):
            record = next(rest, None)
            if record is not None:
                own.delete(record.id, hard=True)

        assert own.check(older_than=0, progress=meanwhile).found == {}

    def test_chunks_that_go_while_they_are_looked_at_are_not_unowned(self, store, own, open_bucket):
        record = put(own, "x", noise(1000))

        class Meanwhile(Watched):
            def scan(self, table, *args, **more):
                found = store.scan(table, *args, **more)
                if table.name == f"{own.name}_chunks":
                    own.delete(record.id, hard=True)
                return found

        assert open_bucket(own.name, Meanwhile(store)).check(older_than=0).found == {}

    def test_no_chunk_of_a_file_itself_is_dropped(self, own):
        record = put(own, "x", noise(1000))
        with pytest.raises(ValueError, match="one of its own"):
            own._chunks.of(record).drop_extra(record.blob, 9)
        assert whole(own, record) == noise(1000)

    def test_an_upload_that_crashes_at_any_point(self, store, own, open_bucket, clock):
        """Whole or absent, and nothing stays that the sweep doesn't know."""
        data, number = noise(7 * CHUNK), 0
        while True:
            watched = Watched(store)
            bucket = open_bucket(own.name, watched)
            _ = bucket._states
            watched.calls.clear()
            watched._crash_at = number
            name, file_id = f"{number}", f"crash-{number}"
            try:
                bucket.upload_from_stream(name, io.BytesIO(data), file_id=file_id)
            except Crash:
                pass
            else:
                break
            found = own.revisions(name)
            assert all(whole(own, record) == data for record in found)
            state = own._states.look(file_id)
            assert (state is not None and state.status == "Complete") == bool(found)
            assert announced(store, own, file_id) or state is None
            clock.now += DAY
            own.sweep(file_id, HOUR)
            assert (own._states.look(file_id) is None) != bool(found)
            assert own.revisions(name) == found
            number += 1
        assert number >= 9
        assert own.check(older_than=0, repair=True).is_sound
        assert own.check(older_than=0).found == {}

    @pytest.mark.parametrize("soft_first", [False, True])
    def test_a_hard_delete_that_crashes_at_any_point_can_be_repeated(self, store, own, open_bucket, soft_first):
        number, done = 0, False
        while not done:
            record = put(own, "x", noise(1000))
            if soft_first:
                own.delete(record.id)
            for row in all_rows(store, CANDIDATES):  # as the sweep has done long since
                store.delete(CANDIDATES, CANDIDATES.key_of(row))
            watched = Watched(store)
            bucket = open_bucket(own.name, watched)
            _ = bucket._states
            watched.calls.clear()
            watched._crash_at = number
            try:
                bucket.delete(record.id, hard=True)
                done = True
            except Crash:
                state = own._states.look(record.id)
                if state is not None and state.erasing is None:
                    own.check(older_than=0)
                    assert (state.rev == own.get(record.id).rev) and len(chunk_rows(store, record, own.name)) == 10
                    own.delete(record.id, hard=True)
                elif state is not None:
                    assert announced(store, own, record.id)
                    with pytest.raises(NoFile):
                        own.open_download_stream(record.id)
                    if number % 2:
                        own.delete(record.id, hard=True)
                    else:
                        own.sweep(record.id, DAY)
            assert nothing_left(store, own.name), number
            number += 1
        assert number > 6

    def test_a_rename_that_crashes_at_any_point(self, store, own, open_bucket, clock):
        number, done = 0, False
        while not done:
            record = put(own, f"old {number}", noise(10))
            watched = Watched(store)
            bucket = open_bucket(own.name, watched)
            _ = bucket._states
            watched.calls.clear()
            watched._crash_at = number
            try:
                bucket.rename(record.id, f"new {number}")
                done = True
            except Crash:
                pass
            found = [*own.revisions(f"old {number}"), *own.revisions(f"new {number}")]
            assert [one.id for one in found] == [record.id]
            number += 1
        assert number > 3
        clock.now += DAY
        assert own.check(older_than=0, repair=True).is_sound
        assert own.check(older_than=0).found == {}
