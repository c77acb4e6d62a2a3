"""A cache in a folder of its own."""

from contextlib import closing

import pytest

from storage.cache import Cache


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def cache(folder):
    with closing(Cache(folder, size_limit=64 << 20, file_limit=100)) as cache:
        yield cache
