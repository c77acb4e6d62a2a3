"""Lists of files over HTTP, and a file's record."""

import base64
from urllib.parse import quote

import pytest

from tests.app_files.setting import KEYS, names, put


def test_a_list(app):
    for name in ("b/1", "a", "b/2", "ä", "a"):
        put(app, name)
    answer = app.get("/files/fs")
    assert names(answer) == ["a", "a", "b/1", "b/2", "ä"]
    assert answer.json[0]["finishedAt"] > answer.json[1]["finishedAt"]
    assert all(one.keys() == KEYS for one in answer.json)
    assert "Link" not in answer.headers
    assert names(app.get("/files/fs?prefix=b/")) == ["b/1", "b/2"]
    assert names(app.get(f"/files/fs?prefix={quote('ä')}")) == ["ä"]
    assert names(app.get("/files/fs?filename=a")) == ["a", "a"]
    assert names(app.get(f"/files/fs?pattern={quote('^b/[2-9]$')}")) == ["b/2"]
    assert names(app.get("/files/fs?prefix=nothing")) == []
    app.delete("/files/fs/a?revision=0", status=204)
    assert names(app.get("/files/fs?filename=a")) == ["a"]


@pytest.mark.parametrize("query", ["", "prefix=a&", "pattern=%5Ea.*%5B0-9%5D&", "filename=a/%C3%A9%201&"])
def test_pages(app, query):
    for number in range(7):
        put(app, "a/é 1" if query.startswith("filename") else f"a/é {number}")
    put(app, "b")
    seen, path = [], f"/files/fs?{query}limit=3"
    while path:
        answer = app.get(path)
        assert len(answer.json) <= 3
        seen += [one["id"] for one in answer.json]
        link = answer.headers.get("Link")
        assert link is None or (link.startswith("</files/fs?") and link.endswith('>; rel="next"'))
        path = link and link[1:].partition(">")[0]
    assert len(seen) == len(set(seen)) == (7 if query else 8)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=x", "limit"),
        ("after=!", "after"),
        ("after=abcd", "after"),
        ("after=" + base64.urlsafe_b64encode(b'["a", "b", "c"]').decode(), "after"),
        ("after=" + base64.urlsafe_b64encode(b'["a", 1e300, "c"]').decode(), "after"),
        ("after=" + base64.urlsafe_b64encode(b'["a", 99999999999999999999, "c"]').decode(), "after"),
        ("after=" + base64.urlsafe_b64encode(b"[" * 3000).decode(), "after"),
        ("pattern=(", "pattern"),
        ("pattern=(%3F%3Da)", "pattern"),
        ("pattern=" + "x" * 1001, "pattern"),
        ("prefix=a&prefix=b", "prefix"),
    ],
)
def test_bad_lists(app, query, field):
    assert app.get(f"/files/fs?{query}", status=400).json["field"] == field


def test_a_record(app):
    record = put(app, "a")
    assert app.get(f"/files/fs/id/{record['id']}/record").json == record
    app.delete("/files/fs/a", status=204)
    deleted = app.get(f"/files/fs/id/{record['id']}/record").json
    assert deleted == record | {"status": "Deleted", "deletedAt": deleted["deletedAt"]}
    assert deleted["deletedAt"] > record["finishedAt"]
