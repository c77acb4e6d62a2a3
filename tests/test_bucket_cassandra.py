"""Buckets over Cassandra, all tests of tests/test_bucket.py."""

import uuid

import pytest

from storage.cassandra import CassandraStore
from storage.cassandra_options import Options, replication
from tests.test_bucket import BucketContract


class TestOnCassandra(BucketContract):
    examples = 2

    @pytest.fixture(scope="class")
    @classmethod
    def store(cls, cassandra):
        store = CassandraStore(Options(((cassandra, 9042),), f"files_{uuid.uuid4().hex[:12]}", replication("1")))
        yield store
        store.close()
