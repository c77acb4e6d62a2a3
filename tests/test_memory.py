"""The reference plugin keeps the contract, also as strict as the weakest store and without transactions."""

from collections.abc import Callable

import pytest

from storage.contract import StoreContract
from storage.interface import Store
from storage.memory import MemoryStore, open_store


class TestMemory(StoreContract):
    @pytest.fixture(scope="class")
    @classmethod
    def handles(cls) -> Callable[[], Store]:
        store = MemoryStore()
        return lambda: store


class TestStrictMemory(StoreContract):
    strict = True

    @pytest.fixture(scope="class")
    @classmethod
    def handles(cls) -> Callable[[], Store]:
        store = MemoryStore(strict=True, transactional=False)
        return lambda: store


def test_options() -> None:
    assert open_store({}).transactional
