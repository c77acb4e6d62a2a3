"""Buckets by name, values of records, and the sweep's way to abandoned uploads."""

import dataclasses
import io

import pytest

from ingest.fetch.guard import Guard
from ingest.references import References
from ingest.sweep import Sweep
from storage.announcements import Litter
from storage.bucket import Bucket
from storage.bucket_check import KEPT, Report, Wrong
from storage.bucket_errors import FileNotReady, NoBucket, NoFile
from storage.bucket_record import FileRecord, Status, check_chunk_size, check_filename, check_id, check_metadata
from storage.bucket_tables import NAME, tables_of
from storage.buckets import Buckets
from storage.chunks import ChunkBlobs
from storage.ids import Ids
from storage.memory import MemoryStore
from storage.schema import BINARIES, CANDIDATES
from tests.bucket_setting import HOUR, Ticking, all_rows, nothing_left


@pytest.fixture
def clock():
    return Ticking()


@pytest.fixture
def store():
    store = MemoryStore(strict=True, transactional=False)
    store.create(BINARIES)
    return store


@pytest.fixture
def buckets(store, clock):
    buckets = Buckets(store, ids=Ids(clock), clock=clock)
    buckets.make("fs")
    return buckets


@pytest.fixture
def sweep(store, buckets, clock):
    references = References(store, ids=Ids(clock), clock=clock, guard=Guard())
    return Sweep(store, ChunkBlobs(store), references, owner="test", clock=clock, others={Litter.FILE: buckets.sweep})


def test_buckets_are_made_and_found(store, buckets):
    assert list(buckets.names()) == ["fs"]
    buckets.make("photos", shards=3)
    assert sorted(buckets.names()) == ["fs", "photos"]
    assert buckets.open("photos") is buckets.open("photos")
    buckets.open("photos").upload_from_stream("a", io.BytesIO(b"there"))
    assert list(buckets.open("fs").find()) == []
    assert {row["shard"] for row in all_rows(store, tables_of("photos").file_ix)} <= {0, 1, 2}
    for name in ("nowhere", "", "a b", "../fs", "x" * 9999):
        with pytest.raises(NoBucket):
            buckets.open(name)
    with pytest.raises(ValueError):
        buckets.make("A")


def test_a_bucket_made_elsewhere_is_found(store, buckets, clock):
    with pytest.raises(NoBucket):
        buckets.open("later")
    Bucket(store, "later", clock=clock).init()
    assert buckets.open("later").name == "later"


def test_the_longest_name_makes_tables_that_cassandra_takes():
    name = "b" * 40
    assert NAME.fullmatch(name) and not NAME.fullmatch(name + "b")
    assert max(len(table.name) for table in tables_of(name).all) == 48


def test_no_two_buckets_share_a_table():
    names = ["a", "a_file", "a_files", "a_file_ix", "a_recent", "a_chunks", "a_"]
    tables = [table.name for name in names for table in tables_of(name).all]
    assert len(set(tables)) == len(tables)
    assert not {table.name for table in BINARIES} & set(tables)


class TestSweep:
    def test_abandoned_uploads_go_after_the_grace(self, store, buckets, sweep, clock):
        stream = buckets.open("fs").open_upload_stream("a")
        stream.write(b"x" * 600_000)
        sweep.run(24 * HOUR)
        assert buckets.open("fs").get(stream.file_id).status == "Incomplete"
        clock.now += 30 * HOUR
        sweep.run(24 * HOUR)
        assert nothing_left(store, "fs")
        with pytest.raises(NoFile):
            stream.close()

    def test_one_that_goes_on_is_announced_again_and_stays(self, store, buckets, sweep, clock):
        stream = buckets.open("fs").open_upload_stream("a")
        for _ in range(40):
            clock.now += HOUR
            stream.write(b"x")
        sweep.run(24 * HOUR)
        clock.now += 23 * HOUR
        sweep.run(24 * HOUR)
        stream.write(b"x")
        assert {row["id"] for row in all_rows(store, CANDIDATES)} == {f"fs/{stream.file_id}"}
        stream.close()
        clock.now += 60 * HOUR
        sweep.run(24 * HOUR)
        assert buckets.open("fs").get_by_name("a").length == 41
        assert all_rows(store, CANDIDATES) == []

    def test_what_is_whole_or_deleted_softly_stays(self, store, buckets, sweep, clock):
        bucket = buckets.open("fs")
        kept, deleted = (bucket.upload_from_stream("a", io.BytesIO(b"x")) for _ in range(2))
        bucket.delete(deleted.id)
        clock.now += 60 * HOUR
        assert sweep.run(24 * HOUR).candidates == 2
        assert (bucket.get(kept.id), bucket.get(deleted.id).status) == (kept, "Deleted")

    def test_half_removed_files_are_finished(self, store, buckets, sweep, clock):
        bucket = buckets.open("fs")
        record = bucket.upload_from_stream("a", io.BytesIO(b"x" * 1000))
        states = bucket._states
        states.announce(record.id)
        assert states._replace(record, states._doomed(record))
        clock.now += 60 * HOUR
        sweep.run(24 * HOUR)
        assert nothing_left(store, "fs")

    def test_a_candidate_of_a_bucket_that_is_not_there_is_nothing(self, buckets):
        buckets.sweep("nowhere/x", 0)
        buckets.sweep("fs/unknown", 0)


def record(**more):
    return FileRecord("id", "a", Status.COMPLETE, 100, 1_700_000_000_123_456, **more)


def test_a_record_is_its_row():
    one = record(length=5, sha256="0" * 64, finished_at=2, metadata={"ä": [1, None, 1.5, "x"]}, attempt="x", naming="y")
    assert FileRecord.of(one.row() | {"rev": "r"}) == dataclasses.replace(one, rev="r")
    assert set(one.row()) == set(tables_of("fs").files.columns)


def test_times_are_shown_with_their_microseconds():
    shown = record(finished_at=1_700_000_000_000_000).shown()
    assert (shown["startedAt"], shown["finishedAt"]) == ("2023-11-14T22:13:20.123456Z", "2023-11-14T22:13:20.000000Z")
    assert shown["deletedAt"] is None


@pytest.mark.parametrize("name", ["", "a\0", "a\n", "\x7f", "\x85", "\ud800", "x" * 1025, "ä" * 513])
def test_what_can_not_be_a_filename(name):
    with pytest.raises(ValueError, match="filename"):
        check_filename(name)


@pytest.mark.parametrize("name", ["a", " ", "/", "../x", "x" * 1024, "ä" * 512, "\u202e", "\U0001f409"])
def test_what_can_be_a_filename(name):
    assert check_filename(name) == name


@pytest.mark.parametrize(
    "metadata", [float("nan"), {1: {2}}, b"x", "\ud800", {"x": "y" * 65_536}, object(), [float("inf")]]
)
def test_what_can_not_be_metadata(metadata):
    with pytest.raises(ValueError, match="metadata"):
        check_metadata(metadata)


def test_metadata_nested_too_deeply():
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValueError, match="metadata"):
        check_metadata(deep)


@pytest.mark.parametrize("around", [lambda one: [one], lambda one: (1, one), lambda one: {"a": one}])
def test_metadata_are_nested_100_deep_at_most_whatever_the_recursion_limit(around):
    deep = 1
    for _ in range(100):
        deep = around(deep)
    check_metadata(deep)
    with pytest.raises(ValueError, match="metadata: nested more than 100 deep"):
        check_metadata(around(deep))


@pytest.mark.parametrize("metadata", [None, 0, "", [], {}, {"a": {"b": [1, 2.5, None, True]}}, "ü"])
def test_what_can_be_metadata(metadata):
    assert check_metadata(metadata) == metadata


def test_metadata_are_kept_as_they_are_read_back():
    assert check_metadata({1: (2, 3)}) == {"1": [2, 3]}


@pytest.mark.parametrize("size", [0, -1, (1 << 20) + 1])
def test_what_can_not_be_a_chunk_size(size):
    with pytest.raises(ValueError, match="chunk size"):
        check_chunk_size(size)


@pytest.mark.parametrize("file_id", ["", "a b", "a/b", "ä", "x" * 65, "a\n"])
def test_what_can_not_be_an_id(file_id):
    with pytest.raises(ValueError, match="file id"):
        check_id(file_id)


def test_ready_is_not_missing():
    assert not issubclass(FileNotReady, NoFile)


@pytest.mark.parametrize("concurrency", [0, -1])
def test_what_can_not_be_a_concurrency(store, concurrency):
    with pytest.raises(ValueError, match="concurrency"):
        Bucket(store, concurrency=concurrency)


def test_findings_are_all_counted_and_not_all_kept():
    report = Report()
    for number in range(KEPT + 5):
        report.add(Wrong.EXTRA, f"{number}", "", number > 0)
    assert (report.found, report.repaired, len(report.findings)) == ({"extra": 1005}, {"extra": 1004}, 1000)
    assert not report.is_sound
