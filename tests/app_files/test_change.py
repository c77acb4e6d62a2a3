"""Renaming, describing and deleting files over HTTP."""

import pytest

from tests.app_files.setting import names, put


def test_rename_by_id(app):
    one, two = put(app, "a", b"1"), put(app, "a", b"2")
    answer = app.patch_json(f"/files/fs/id/{one['id']}", {"filename": "b/ü"})
    assert answer.json == one | {"filename": "b/ü"}
    assert (app.get("/files/fs/b/%C3%BC").body, app.get("/files/fs/a?revision=0").body) == (b"1", b"2")
    assert names(app.get("/files/fs?filename=a")) == ["a"]
    assert two["filename"] == "a"


def test_rename_by_name_takes_all_revisions(app):
    for number in range(3):
        put(app, "a", b"%d" % number)
    assert app.patch_json("/files/fs/a", {"filename": "b"}).json["filename"] == "b"
    app.get("/files/fs/a", status=404)
    assert [app.get(f"/files/fs/b?revision={number}").body for number in range(3)] == [b"0", b"1", b"2"]
    app.patch_json("/files/fs/b?revision=1", {"filename": "c"})
    assert [app.get(f"/files/fs/{path}").body for path in ("b?revision=0", "b?revision=1", "c")] == [b"0", b"2", b"1"]


def test_metadata(app):
    one, two = put(app, "a"), put(app, "a")
    assert app.patch_json("/files/fs/a", {"metadata": {"x": [1]}}).json == two | {"metadata": {"x": [1]}}
    assert app.patch_json(f"/files/fs/id/{one['id']}", {"metadata": "y"}).json["metadata"] == "y"
    both = app.patch_json("/files/fs/a", {"filename": "b", "metadata": None}).json
    assert (both["id"], both["filename"], both["metadata"]) == (two["id"], "b", None)


@pytest.mark.parametrize(
    "change",
    [
        b"",
        b"x",
        b"[]",
        b"{}",
        b'{"name": "x"}',
        b'{"filename": 1}',
        b'{"filename": ""}',
        b'{"filename": null}',
        b'{"filename": "a\\u0000"}',
        b'{"filename": "\\ud800"}',
        b'{"metadata": NaN}',
        b"[" * 5000,
        b'{"metadata": "' + b"x" * 70_000 + b'"}',
        b'{"metadata": ' + b"[" * 101 + b"]" * 101 + b"}",
        b'{"filename": "b", "metadata": "' + b"x" * 70_000 + b'"}',
        b'{"filename": "", "metadata": 1}',
    ],
)
def test_bad_changes(app, change):
    record = put(app, "a")
    for path in ("/files/fs/a", f"/files/fs/id/{record['id']}"):
        app.patch(path, change, headers={"Content-Type": "application/json"}, status=400)
    assert app.get(f"/files/fs/id/{record['id']}/record").json == record


def test_changes_of_other_types_or_too_long(app):
    put(app, "a")
    app.patch("/files/fs/a", b"{}", headers={"Content-Type": "text/plain"}, status=415)
    app.patch("/files/fs/a", b" " * 200_000, headers={"Content-Type": "application/json"}, status=413)
    app.patch_json("/files/fs/unknown", {"metadata": 1}, status=404)


def test_delete(app, bucket):
    ids = [put(app, "a", b"%d" % number)["id"] for number in range(4)]
    app.delete(f"/files/fs/id/{ids[0]}", status=204)
    app.get(f"/files/fs/id/{ids[0]}", status=404)
    assert app.get("/files/fs/a?revision=0").body == b"1"
    app.delete("/files/fs/a?revision=-1", status=204)
    assert app.get("/files/fs/a").body == b"2"
    app.delete("/files/fs/a", status=204)
    app.get("/files/fs/a", status=404)
    app.delete("/files/fs/a", status=404)
    assert {record.id for record in bucket.find(status="Deleted")} == set(ids)
    app.delete(f"/files/fs/id/{ids[0]}", status=204)
    app.delete(f"/files/fs/id/{ids[0]}?hard=true", status=204)
    app.delete(f"/files/fs/id/{ids[0]}?hard=true", status=404)
    app.delete("/files/fs/a?hard=true", status=204)
    assert bucket.check().files == {"Incomplete": 0, "Complete": 0, "Deleted": 0}
    for wrong in ("1", "yes", "", "true&hard=true"):
        assert app.delete(f"/files/fs/a?hard={wrong}", status=400).json["field"] == "hard"
