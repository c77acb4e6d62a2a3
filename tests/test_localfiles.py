"""Local files as sources: read here, never by a worker; changed content is a new original."""

import os
import threading

import pytest

from ingest import localfiles
from ingest.localfiles import NotTaken, Stopped, files, leads_out, path_of
from ingest.records import BadContext
from storage.errors import Unavailable
from storage.schema import CANDIDATES, ORIGINALS, ORIGINALS_DATA, QUEUE
from tests.library import NEVER, Library


@pytest.fixture
def library():
    return Library()


def put(library, path, context="c", mime=None):
    return library.files.put(context, path, mime, NEVER)


def bytes_of(library, taken):
    return library.blobs.open(taken.original.blob).read()


def test_a_file_is_stored_under_its_path(library, tmp_path):
    path = tmp_path / "a b#ü.txt"
    path.write_bytes(b"some text " * 300)
    taken = put(library, path)
    assert taken.is_new
    assert taken.original.url == taken.reference.url == path.as_uri()
    assert (taken.original.status, taken.original.mime, taken.original.filename) == ("OK", "text/plain", "a b#ü.txt")
    assert taken.original.last_modified.endswith(" GMT")
    assert bytes_of(library, taken) == b"some text " * 300
    assert library.references.find(taken.reference.reference_id)[1].original_id == taken.original.original_id
    assert library.check.run().is_sound


def test_the_same_content_again_is_stored_once(library, tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"\x00\x01" * 700)
    first, again, other = put(library, path), put(library, path), put(library, path, "d")
    assert (again.is_new, other.is_new) == (False, False)
    assert again.reference.reference_id == first.reference.reference_id != other.reference.reference_id
    assert {one.original.original_id for one in (first, again, other)} == {first.original.original_id}
    assert len(library.store.scan(ORIGINALS)[0]) == 1


def test_changed_content_is_a_new_original_and_other_contexts_keep_the_old_one(library, tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"one" * 100)
    one, kept = put(library, path), put(library, path, "kept")
    path.write_bytes(b"two" * 100)  # as long as before
    two = put(library, path)
    assert two.is_new
    assert two.reference.reference_id == one.reference.reference_id
    assert bytes_of(library, two) == b"two" * 100
    old = library.references.find(kept.reference.reference_id)[1]
    assert old.original_id == one.original.original_id
    assert put(library, path, "kept").original.original_id == two.original.original_id


def test_what_cannot_be_taken_in_leaves_the_good_copy_alone(library, tmp_path):
    path = tmp_path / "a.jpg"
    path.write_bytes(b"not yet a picture, but text" * 10)
    path.rename(tmp_path / "a.txt")
    path = tmp_path / "a.txt"
    good = put(library, path)
    path.write_bytes(b"")
    with pytest.raises(NotTaken, match="EMPTY: the file is empty"):
        put(library, path)
    path.write_bytes(b"x" * 1_000_001)
    with pytest.raises(NotTaken, match="TOO_LARGE"):
        put(library, path)
    path.write_bytes(b"\xff\xd8\xff\xe0 no picture")
    with pytest.raises(NotTaken, match="NOT_DATA"):
        put(library, path)
    present = library.references.find(good.reference.reference_id)[1]
    assert present.original_id == good.original.original_id
    library.sweep.run(0)
    assert len(library.store.scan(ORIGINALS)[0]) == 1
    assert {row["attempt"] for row in library.store.scan(ORIGINALS_DATA)[0]} == {present.attempt}


def test_a_worker_is_never_asked_for_one(library, tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"12345")
    put(library, path)
    assert library.store.scan(QUEUE)[0] == []
    assert list(library.queue.waiting()) == []


def test_everything_is_announced_before_it_is_made(library, tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"12345")
    taken = put(library, path)
    announced = {(row["kind"], row["id"]) for row in library.store.scan(CANDIDATES)[0]}
    name = taken.original.original_id
    assert announced == {("original", name), ("blob", f"{name}/{taken.original.attempt}")}


def test_what_is_no_regular_file(library, tmp_path):
    with pytest.raises(IsADirectoryError):
        put(library, tmp_path)
    with pytest.raises(FileNotFoundError):
        put(library, tmp_path / "nothing")


def test_a_pipe_is_refused_and_not_waited_for(library, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NotTaken, match="not a regular file"):
        put(library, tmp_path / "pipe")


def test_a_bad_context_is_told(library, tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"12345")
    with pytest.raises(BadContext):
        put(library, path, "a/b")


def test_a_stopped_read_is_given_up(library, tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"12345")
    stop = threading.Event()
    fill = library.jobs.fill

    def stopped_meanwhile(claim, read, stop):
        stop.set()
        return fill(claim, read, stop)

    library.jobs.fill = stopped_meanwhile
    with pytest.raises(Stopped):
        library.files.put("c", path, None, stop)
    assert [row["status"] for row in library.store.scan(ORIGINALS)[0]] == ["PROCESSING"]
    assert library.store.scan(ORIGINALS_DATA)[0] == []
    with pytest.raises(Stopped):
        library.files.put("c", path, None, stop)
    assert len(library.store.scan(ORIGINALS)[0]) == 1  # nothing was begun


def test_a_store_that_fails_is_no_fault_of_the_file(library, tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"12345")

    def gone(*_):
        raise Unavailable("gone")

    library.files._store.get, before = gone, library.files._store.get
    with pytest.raises(Unavailable):
        put(library, path)
    library.files._store.get = before


def test_folders_are_walked_in_order_and_hidden_files_passed_over(tmp_path):
    for name in ("b.jpg", "a/2.jpg", "a/1.jpg", ".hidden", ".git/x"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "loop").symlink_to(tmp_path)
    found = [path.relative_to(tmp_path).as_posix() for path in files(tmp_path)]
    assert found == ["b.jpg", "a/1.jpg", "a/2.jpg"]
    assert list(files(tmp_path / "b.jpg")) == [tmp_path / "b.jpg"]


def test_links_that_lead_out_of_a_folder_are_told_from_those_that_stay(tmp_path):
    folder, secret = tmp_path / "folder", tmp_path / "secret"
    (folder / "deep").mkdir(parents=True)
    for path in (secret, folder / "own", tmp_path / "folder2"):
        path.write_bytes(b"x")
    targets = {"out": secret, "up": "../../secret", "beside": "../../folder2", "in": "../own", "by": "up", "no": "x/y"}
    for name, target in targets.items():
        (folder / "deep" / name).symlink_to(target)
    out = {path.name for path in files(folder) if leads_out(folder, path)}
    assert out == {"out", "up", "beside", "by"}
    (tmp_path / "way").symlink_to(folder)
    assert {path.name for path in files(tmp_path / "way") if leads_out(tmp_path / "way", path)} == out
    assert not leads_out(folder / "deep/out", folder / "deep/out")  # who names a link means it


@pytest.mark.parametrize(
    "text, path",
    [
        ("file:///a%20b/%C3%BC", "/a b/ü"),
        ("FILE://localhost/a", "/a"),
        ("file://elsewhere/a", None),
        ("file:///a%FF", "/a\udcff"),
        ("photos/a.jpg", "photos/a.jpg"),
        ("http://h/a", None),
        ("ftp://h/a", None),
    ],
)
def test_what_a_line_means(text, path):
    found = path_of(text)
    assert (found and str(found)) == path


def test_a_claim_is_renewed_though_the_store_failed_once(monkeypatch):
    class Claim:
        def renew(self):
            renewals.append(self)
            if len(renewals) == 1:
                raise Unavailable("down")
            again.set()

    renewals, again = [], threading.Event()
    monkeypatch.setattr(localfiles, "LEASE", 3000)
    with localfiles._renewing(Claim()):
        assert again.wait(60)
