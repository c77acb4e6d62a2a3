"""Nothing in the folder is executed, or leads out of it."""

import os
import pickle
from contextlib import closing
from pathlib import Path

import diskcache
import pytest

from tests.cache.setting import LARGE, SMALL, database, value_files


class Bomb:
    """Unpickling it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (Path(self.path),)


@pytest.fixture
def crater(tmp_path):
    path = tmp_path / "crater"
    yield path
    assert not path.exists()


@pytest.mark.parametrize("where", ["row", "file", "text file", "unknown mode", "in the place of a value file"])
def test_a_planted_pickle_is_never_loaded(cache, folder, crater, where):
    bomb = pickle.dumps(Bomb(crater))
    cache.set("key", LARGE)
    (name,) = value_files(folder)
    mode = {"row": 4, "file": 4, "text file": 3, "unknown mode": 5, "in the place of a value file": 2}[where]
    with database(folder) as rows:
        if where == "row":
            rows.execute("UPDATE Cache SET mode = 4, filename = NULL, value = ?", (bomb,))
        else:
            (folder / name).write_bytes(bomb)
            rows.execute("UPDATE Cache SET mode = ?", (mode,))
    assert cache.get("key") is None
    assert cache.counts().errors == 1
    with database(folder) as rows:
        assert rows.execute("SELECT count(*) FROM Cache").fetchone() == (0,)
    assert cache.make("key", lambda: SMALL) == SMALL
    assert cache.get("key") == SMALL


def test_the_bomb_is_live(cache, folder, tmp_path):
    """Else the test above shows nothing: bare diskcache does load it."""
    cache.set("key", SMALL)
    with database(folder) as rows:
        rows.execute("UPDATE Cache SET mode = 4, value = ?", (pickle.dumps(Bomb(tmp_path / "here")),))
    with closing(diskcache.Cache(str(folder))) as bare:
        bare.get(b"key")
    assert (tmp_path / "here").exists()


def test_a_pickled_key_is_never_loaded(cache, folder, crater):
    cache.set("key", SMALL)
    with database(folder) as rows:
        rows.execute("UPDATE Cache SET raw = 0, key = ?", (pickle.dumps(Bomb(crater)),))
    assert cache.get("key") is None
    cache.set("other", SMALL)
    assert cache.get("other") == SMALL


@pytest.mark.parametrize(
    "key, value", [("_directory", "/nonexistent"), ("get", "x"), ("disk_fetch", "x"), ("sqlite_writable_schema", 1)]
)
def test_planted_settings_arent_taken(cache, folder, key, value):
    cache.set("key", SMALL)
    cache.close()
    with database(folder) as rows:
        rows.execute("INSERT INTO Settings VALUES (?, ?)", (key, value))
    assert cache.get("key") is None
    cache.set("key", SMALL)
    assert cache.get("key") == SMALL
    assert (folder / "damaged.db").exists()


def test_settings_of_ours_arent_taken_from_the_database(cache, folder):
    cache.set("key", SMALL)
    cache.close()
    with database(folder) as rows:
        rows.execute("UPDATE Settings SET value = 4711 WHERE key NOT IN ('count', 'size', 'sqlite_journal_mode')")
    assert cache.get("key") == SMALL
    with database(folder) as rows:
        taken = {key for (key,) in rows.execute("SELECT key FROM Settings WHERE value = 4711")}
    assert taken == {"hits", "misses"}  # counts that nobody uses


def test_a_planted_file_name_leads_nowhere(cache, folder, tmp_path):
    outside = tmp_path / "outside.val"
    outside.write_bytes(LARGE)
    cache.set("key", LARGE)
    with database(folder) as rows:
        rows.execute("UPDATE Cache SET filename = '../outside.val'")
    assert cache.get("key") is None
    cache.set("key", LARGE)
    with database(folder) as rows:
        rows.execute("UPDATE Cache SET filename = ?", (str(outside),))
    cache.evict("key")
    assert outside.exists()


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "huge"])
def test_what_isnt_a_plain_file_of_possible_size_isnt_read(cache, folder, tmp_path, kind):
    cache.set("key", LARGE)
    (name,) = value_files(folder)
    path = folder / name
    if kind == "huge":
        os.truncate(path, 1 << 40)
    else:
        path.rename(tmp_path / "moved")
        {"link": lambda: path.symlink_to(tmp_path / "moved"), "pipe": lambda: os.mkfifo(path), "folder": path.mkdir}[
            kind
        ]()
    assert cache.get("key") is None
    assert cache.counts().errors == (kind in ("pipe", "huge"))  # the others are as good as gone
    assert cache.counts().errors == 0 or value_files(folder) == []
    cache.set("key", LARGE)
    assert cache.get("key") == LARGE
