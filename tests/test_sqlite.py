"""The embedded plugin keeps the contract; what is its own besides."""

from collections.abc import Callable

import pytest

from storage.contract import StoreContract
from storage.interface import Store
from storage.sqlite import SqliteStore


class TestSqlite(StoreContract):
    @pytest.fixture(scope="class")
    @classmethod
    def handles(cls, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Store]:
        path = tmp_path_factory.mktemp("sqlite") / "store.sqlite"
        return lambda: SqliteStore(path)
