"""The main job on a real tree of processes: URLs go in, originals and images come out, and all of it goes again."""

import concurrent.futures
import io
import json
import re
import subprocess
import threading

import pytest
from PIL import Image

from cli.supervisor import python
from storage.schema import BINARIES
from storage.sqlite import open_store
from tests.source import Source
from tests.source import http as answer
from tests.tree import ENVIRON, Tree, magazin

SIZES = {"/a.jpg": (1600, 900), "/b.png": (300, 500), "/c.jpg": (700, 700)}
REMAINS = {"leases", "tokens", "recent_open", "queue_open", "queue", "candidates", "contexts"}
"""Hints and marks that go with their hour; see the test that moves the clock in test_sweep.py."""


def photo(target):
    file = io.BytesIO()
    image = Image.effect_noise(SIZES[target], 60).convert("RGB")
    image.save(file, "PNG" if target.endswith("png") else "JPEG")
    return file.getvalue()


PHOTOS = {target: photo(target) for target in SIZES}


@pytest.fixture(scope="module")
def source():
    pages = {target: answer(data, Content_Type="application/octet-stream") for target, data in PHOTOS.items()}
    pages["/broken.jpg"] = answer(PHOTOS["/a.jpg"][:4000], Content_Type="image/jpeg")
    pages["/empty"] = answer(b"")
    pages["/notes.txt"] = answer(b"plain words", Content_Type="text/plain")
    with Source(pages) as source:
        yield source


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tmp_path_factory.mktemp("empty") / "magazin-data"


@pytest.fixture(scope="module")
def token(data):
    status, out, err = magazin(data, "token")
    assert status == 0, err
    return out.split()[-1]


@pytest.fixture(scope="module")
def tree(data, token):
    environ = {"MAGAZIN_ACCESS_OPEN_LISTS": "true", "MAGAZIN_SERVER_WORKERS": "2"}
    with Tree(data, environ=environ) as tree:
        yield tree
        assert tree.terminate() == 0


@pytest.fixture(scope="module")
def entries(tree, source, token):
    """What PUT answered, by target, for everything that the source has."""
    return {target: tree.put(source.url(target), "set-1", token) for target in source.answers}


def test_every_reference_has_its_outcome(entries):
    assert {target: entry["status"] for target, entry in entries.items()} == {
        **dict.fromkeys(SIZES, "OK"),
        "/notes.txt": "OK",
        "/broken.jpg": "ERROR",
        "/empty": "ERROR",
    }
    assert "decoded" in entries["/broken.jpg"]["error"]


@pytest.mark.parametrize("target", SIZES)
def test_originals_come_out_byte_for_byte(tree, entries, target):
    path = f"/binary/{entries[target]['reference_id']}"
    status, headers, body = tree.ask("GET", path)
    assert (status, body) == (200, PHOTOS[target])
    assert headers["Content-Type"] == ("image/png" if target.endswith("png") else "image/jpeg")
    status, headers, part = tree.ask("GET", path, Range="bytes=1000-1999")
    assert (status, part) == (206, PHOTOS[target][1000:2000])
    status, _, tail = tree.ask("GET", path, Range="bytes=-77")
    assert (status, tail) == (206, PHOTOS[target][-77:])
    status, headers, _ = tree.ask("GET", path, Range="bytes=99999999-")
    assert (status, headers["Content-Range"]) == (416, f"bytes */{len(PHOTOS[target])}")
    etag = tree.ask("HEAD", path)[1]["ETag"]
    assert tree.ask("GET", path, If_None_Match=etag)[0] == 304


@pytest.mark.parametrize(
    ("target", "size", "pixels"),
    [
        ("/a.jpg", "!800,600", (800, 450)),
        ("/a.jpg", "!116,87", (116, 65)),
        ("/a.jpg", "400,", (400, 225)),
        ("/a.jpg", "pct:50", (800, 450)),
        ("/a.jpg", "max", (1600, 900)),
        ("/b.png", "!440,330", (198, 330)),
        ("/b.png", "!9000,9000", (300, 500)),
        ("/c.jpg", "100,50", (100, 50)),
    ],
)
def test_scaled_images_have_their_pixels(tree, entries, target, size, pixels):
    for form in (f"{size}/0/default.jpg", f"{size}/default.jpg"):
        status, headers, body = tree.ask("GET", f"/binary/{entries[target]['reference_id']}/full/{form}")
        assert (status, headers["Content-Type"]) == (200, "image/jpeg"), body
        with Image.open(io.BytesIO(body)) as image:
            image.load()
            assert (image.format, image.size) == ("JPEG", pixels)


def test_a_size_beyond_the_source_names_the_field(tree, entries):
    status, headers, body = tree.ask("GET", f"/binary/{entries['/b.png']['reference_id']}/full/301,/0/default.jpg")
    assert (status, headers["Content-Type"], json.loads(body)["field"]) == (400, "application/problem+json", "size")


def test_lists_and_logs(tree, source, entries):
    listed = json.loads(tree.ask("GET", "/binaries/set-1")[2])
    assert {entry["url"] for entry in listed} == {source.url(target) for target in entries}
    assert all({"reference_id", "url", "status"} <= entry.keys() for entry in listed)
    logs = json.loads(tree.ask("GET", "/binary/logs/set-1?limit=1000")[2])
    broken = [line for line in logs if line["reference_id"] == entries["/broken.jpg"]["reference_id"]]
    assert broken[0]["message"].startswith("queued") and "decoded" in broken[-1]["message"]
    page = tree.ask("GET", "/binaries/set-1?limit=2")
    assert len(json.loads(page[2])) == 2 and 'rel="next"' in page[1]["Link"]
    assert tree.ask("GET", "/binaries/never")[2] == b"[]"


def test_the_gallery_shows_the_images(tree, entries):
    page = tree.ask("GET", "/")[2].decode()
    for target in SIZES:
        assert entries[target]["reference_id"] in page
    assert entries["/broken.jpg"]["reference_id"] not in page


def test_two_hundred_requests_for_one_uncached_image_decode_it_once(tree, entries):
    def made():
        text = tree.ask("GET", "/metrics")[2].decode()
        return sum(
            float(n) for n in re.findall(r"^magazin_renditions_made_total(?:\{[^}]*\})? ([0-9.e+]+)", text, re.M)
        )

    def until_it_is_there(_):
        while True:
            status, headers, body = tree.ask("GET", path)
            if status == 200:
                return body
            assert (status, headers["Cache-Control"]) == (503, "no-store")  # too many wait: come again
            threading.Event().wait(min(int(headers["Retry-After"]), 0.2))

    path = f"/binary/{entries['/a.jpg']['reference_id']}/full/777,/0/default.jpg"
    before = made()
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        bodies = set(pool.map(until_it_is_there, range(200)))
    assert len(bodies) == 1
    assert made() - before == 1


def test_the_command_ingests_a_list_and_local_files(data, tree, source, tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    (folder / "local.jpg").write_bytes(PHOTOS["/c.jpg"])
    lines = f"{source.url('/a.jpg')}\n{source.url('/b.png')}\n"
    status, out, err = magazin(data, "ingest", "-", "--context", "set-2", text=lines)
    assert status == 0, out + err
    status, out, err = magazin(data, "ingest", str(folder), "--context", "set-2", "--allow-files")
    assert status == 0, out + err
    listed = json.loads(tree.ask("GET", "/binaries/set-2")[2])
    assert {entry["status"] for entry in listed} == {"OK"} and len(listed) == 3
    status, out, err = magazin(data, "ingest", "-", "--context", "set-3", text=source.url("/broken.jpg") + "\n")
    assert status != 0


def test_files_go_in_and_come_out_by_name(data, tree, token, tmp_path):
    """Over HTTP and by command, each reading what the other wrote; larger than a chunk."""
    content = PHOTOS["/b.png"] * 3
    writes = {"Authorization": f"Bearer {token}"}
    assert tree.ask("PUT", "/files/fs/2026/scan.png", content, **writes)[0] == 201
    assert tree.ask("PUT", "/files/fs/2026/scan.png", b"later", **writes)[0] == 201
    status, out, err = magazin(data, "files", "get", "2026/scan.png", str(tmp_path / "scan.png"), "--revision", "0")
    assert (status, (tmp_path / "scan.png").read_bytes() == content) == (0, True), err
    status, _, err = magazin(data, "files", "put", str(tmp_path / "scan.png"), "2026/copy.png")
    assert status == 0, err
    assert tree.ask("GET", "/files/fs/2026/scan.png")[2] == b"later"
    status, _, body = tree.ask("GET", "/files/fs/2026/copy.png", Range="bytes=300000-")
    assert (status, body) == (206, content[300_000:])
    status, out, _ = magazin(data, "files", "ls", "2026/", "--all", "--json")
    assert [json.loads(line)["filename"] for line in out.splitlines()] == [
        "2026/copy.png",
        "2026/scan.png",
        "2026/scan.png",
    ]
    for name in ("2026/copy.png", "2026/scan.png"):
        assert tree.ask("DELETE", f"/files/fs/{name}", **writes)[0] == 204
    assert tree.ask("GET", "/files/fs/2026/copy.png")[0] == 404


@pytest.fixture
def stored():
    """Opens the store of a data folder."""
    return lambda data: open_store({"data": data})


def test_deleted_swept_and_empty(data, tree, source, entries, token, stored):
    status, out, _ = magazin(data, "check", "--json")
    assert (status, json.loads(out)["wrong"]) == (0, {})
    writes = {"Authorization": f"Bearer {token}"}
    one = entries["/a.jpg"]["reference_id"]
    assert tree.ask("DELETE", f"/binaries/reference/{one}")[0] in (401, 403)
    assert tree.ask("DELETE", f"/binaries/reference/{one}", **writes)[0] == 204
    assert tree.ask("GET", f"/binary/{one}")[0] == 404
    for context in ("set-1", "set-2", "set-3"):
        assert tree.ask("DELETE", f"/binaries/context/{context}", **writes)[0] == 204
    assert tree.ask("GET", f"/binary/{entries['/b.png']['reference_id']}")[0] == 404
    status, out, err = magazin(data, "sweep", "--grace", "0", "--json")
    assert (status, json.loads(out)["originals"]) == (0, 7), err  # six URLs and the local file
    store = stored(data)
    left = {table.name for table in BINARIES if store.scan(table)[0]}
    store.close()
    assert left <= REMAINS
    assert [path for path in (data / "blobs").rglob("*") if path.is_file()] == []
    status, out, _ = magazin(data, "check", "--json")
    assert (status, json.loads(out)["originals"]) == (0, 0)


def test_help_has_examples():
    done = subprocess.run(
        [*python("cli.main"), "ingest", "--help"], env=ENVIRON, capture_output=True, text=True, timeout=60
    )
    assert "magazin ingest" in done.stdout
