"""The whole tree on a disk that fills up and has room again."""

import io
import json
import os

import pytest
from PIL import Image

from tests.disks import disk_of
from tests.source import Source
from tests.source import http as answer
from tests.tree import Tree, magazin


def photo():
    file = io.BytesIO()
    Image.effect_noise((400, 300), 60).convert("RGB").save(file, "JPEG")
    return file.getvalue()


PHOTOS = {f"/{number}.jpg": photo() for number in range(2)}


@pytest.fixture
def small_disk(tmp_path):
    with disk_of("40m", tmp_path) as mount:
        yield mount


def fill(path):
    with path.open("wb", buffering=0) as filler, pytest.raises(OSError, match="No space"):
        while True:
            filler.write(bytes(4096))


def test_a_full_disk_refuses_serves_on_and_recovers(small_disk):
    pages = {target: answer(data, Content_Type="image/jpeg") for target, data in PHOTOS.items()}
    pages["/big"] = answer(os.urandom(60_000_000), Content_Type="application/octet-stream")
    data = small_disk / "data"
    token = magazin(data, "token")[1].split()[-1]
    with Source(pages) as source, Tree(data) as tree:
        first = tree.put(source.url("/0.jpg"), "c", token)
        big = tree.put(source.url("/big"), "c", token)
        assert (big["status"], big["outcome"]) == ("RETRY", "SYSTEM_ERROR")
        assert "No space left" in big["error"]

        fill(small_disk / "filler")
        entry = json.dumps({"url": source.url("/1.jpg"), "context": "c"})
        status, headers, refused = tree.ask(
            "PUT", "/binaries", entry, Content_Type="application/json", Authorization=f"Bearer {token}"
        )
        assert (status, headers["Content-Type"]) == (507, "application/problem+json")
        assert b"no room" in refused
        path = f"/binary/{first['reference_id']}"
        assert tree.ask("GET", path)[2] == PHOTOS["/0.jpg"]
        uncached = tree.ask("GET", f"{path}/full/99,/0/default.jpg")
        assert uncached[0] == 200
        assert Image.open(io.BytesIO(uncached[2])).width == 99

        (small_disk / "filler").unlink()
        assert tree.put(source.url("/1.jpg"), "c", token)["status"] == "OK"
        status, out, err = magazin(data, "check", "--json")
        assert (status, json.loads(out)["findings"]) == (0, []), err
        assert tree.terminate() == 0
