"""Plugins are found by their entry points."""

from pathlib import Path

import pytest

from storage.memory import MemoryStore
from storage.plugins import names, open_store
from storage.sqlite import SqliteStore


def test_the_built_in_plugins_are_found() -> None:
    assert {"memory", "sqlite", "cassandra"} <= set(names())


def test_a_plugin_is_opened_with_its_options(tmp_path: Path) -> None:
    assert isinstance(open_store("memory", {"strict": True}), MemoryStore)
    store = open_store("sqlite", {"data": tmp_path})
    assert isinstance(store, SqliteStore)
    store.create([])
    store.close()


def test_an_unknown_plugin_names_those_that_there_are() -> None:
    with pytest.raises(LookupError, match=r"'sqlight'.*memory, sqlite"):
        open_store("sqlight", {})
