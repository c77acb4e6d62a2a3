"""Buckets over every plugin."""

from contextlib import contextmanager

import pytest

PARTS = ("setting", "writing", "states", "reading", "layout", "mistakes", "finding", "repairs", "model")
pytest.register_assert_rewrite(*(f"tests.bucket_{part}" for part in PARTS))

from storage.memory import MemoryStore  # noqa: E402
from storage.sqlite import SqliteStore  # noqa: E402
from tests.bucket_finding import FindContract  # noqa: E402
from tests.bucket_layout import LayoutContract  # noqa: E402
from tests.bucket_mistakes import MistakeContract  # noqa: E402
from tests.bucket_model import ModelContract  # noqa: E402
from tests.bucket_reading import ReadingContract  # noqa: E402
from tests.bucket_repairs import RepairContract  # noqa: E402
from tests.bucket_states import StateContract  # noqa: E402
from tests.bucket_writing import WritingContract  # noqa: E402


class BucketContract(
    WritingContract,
    StateContract,
    ReadingContract,
    LayoutContract,
    MistakeContract,
    FindContract,
    RepairContract,
    ModelContract,
):
    """All that is promised of buckets; a plugin's tests subclass it and give the fixture ``store``."""


class Memory(BucketContract):
    @contextmanager
    def tampering(self, store):
        store._strict = False
        yield
        store._strict = True


class TestOnMemory(Memory):
    @pytest.fixture(scope="class")
    @classmethod
    def store(cls):
        return MemoryStore(strict=True)


class TestOnMemoryWithoutUnits(Memory):
    @pytest.fixture(scope="class")
    @classmethod
    def store(cls):
        return MemoryStore(strict=True, transactional=False)


class TestOnSqlite(BucketContract):
    @pytest.fixture(scope="class")
    @classmethod
    def store(cls, tmp_path_factory):
        store = SqliteStore(tmp_path_factory.mktemp("bucket") / "store.sqlite")
        yield store
        store.close()
