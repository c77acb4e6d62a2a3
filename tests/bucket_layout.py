"""The rules of partitions and tables, each by its number."""

import pytest

from storage.bucket import Bucket
from storage.bucket_errors import NoBucket
from storage.bucket_tables import CHUNKS_TOGETHER, chunks_together, tables_of
from storage.errors import SchemaMismatch
from storage.table import Kind, Type, cas
from tests.bucket_setting import CHUNK, BucketSetting, Watched, chunk_rows, noise, put


class LayoutContract(BucketSetting):
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
