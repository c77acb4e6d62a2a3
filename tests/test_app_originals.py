from urllib.parse import unquote

import pytest

from app.options import Options
from ingest.records import Status
from storage.schema import ORIGINALS_DATA
from tests.app_stock import PART, START, Stock

DATA = bytes(range(256)) * 10  # 2,560 bytes: three parts
MODIFIED = "Tue, 14 Nov 2023 22:13:20 GMT"


@pytest.fixture
def stock(tmp_path):
    return Stock(tmp_path)


def damage(stock, reference_id, part, **changes):
    """Change a row of an original's parts behind everyone's back; with no changes, drop it."""
    original = stock.references.find(reference_id)[1]
    held = stock.store._data[ORIGINALS_DATA.name][(original.original_id, original.attempt, 0)]
    row = held.rows[(part,)]
    held.set((part,), row | changes if changes else None)


def test_the_whole(stock):
    reference_id = stock.put(DATA, mime="application/zip", filename="Übung.zip")
    answer = stock.app().get(f"/binary/{reference_id}")
    assert (answer.status_int, answer.body) == (200, DATA)
    checksum = stock.references.find(reference_id)[1].checksum
    expected = {
        "Content-Type": "application/zip",
        "Content-Length": "2560",
        "ETag": f'"{checksum}"',
        "Last-Modified": MODIFIED,
        "Accept-Ranges": "bytes",
        "Cache-Control": "public, max-age=3600",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "sandbox",
        "Access-Control-Allow-Origin": "*",
    }
    assert {name: answer.headers[name] for name in expected} == expected
    disposition = answer.headers["Content-Disposition"]
    assert disposition.startswith('attachment; filename="Ubung.zip"; ')
    assert unquote(disposition.partition("filename*=UTF-8''")[2]) == "Übung.zip"


def test_an_extension_changes_nothing(stock):
    reference_id = stock.put(DATA, mime="video/mp4")
    answer = stock.app().get(f"/binary/{reference_id}.mpeg")
    assert (answer.body, answer.content_type) == (DATA, "video/mp4")


def test_head_is_get_without_the_bytes(stock):
    app, reference_id = stock.app(), stock.put(DATA)
    get, head = app.get(f"/binary/{reference_id}"), app.head(f"/binary/{reference_id}")
    assert dict(head.headers) | {"x-request-id": ""} == dict(get.headers) | {"x-request-id": ""}
    assert head.body == b""
    ranged = app.head(f"/binary/{reference_id}", headers={"Range": "bytes=0-9"})  # Range is for GET only
    assert (ranged.status_int, ranged.headers["Content-Length"]) == (200, "2560")


@pytest.mark.parametrize(
    ("header", "start", "stop"),
    [("bytes=0-0", 0, 1), ("bytes=990-1009", 990, 1010), ("bytes=-10", 2550, 2560), ("bytes=2000-", 2000, 2560)],
)
def test_a_range(stock, header, start, stop):
    reference_id = stock.put(DATA)
    answer = stock.app().get(f"/binary/{reference_id}", headers={"Range": header})
    assert (answer.status_int, answer.body) == (206, DATA[start:stop])
    assert answer.headers["Content-Range"] == f"bytes {start}-{stop - 1}/2560"
    assert answer.headers["Content-Length"] == str(stop - start)


def test_ranges_that_give_the_whole_or_nothing(stock):
    app, path = stock.app(), f"/binary/{stock.put(DATA)}"
    several = app.get(path, headers={"Range": "bytes=0-1,5-6"})
    assert (several.status_int, several.body) == (200, DATA)
    assert "Content-Range" not in several.headers
    beyond = app.get(path, headers={"Range": "bytes=2560-"}, status=416)
    assert beyond.headers["Content-Range"] == "bytes */2560"
    assert (beyond.json["field"], beyond.json["size"]) == ("Range", 2560)
    assert "ETag" not in beyond.headers
    assert app.get(path, headers={"Range": "bytes=x-y"}, status=400).json["field"] == "Range"


def test_conditions(stock):
    app, path = stock.app(), f"/binary/{stock.put(DATA)}"
    etag = app.head(path).headers["ETag"]
    for headers in ({"If-None-Match": etag}, {"If-Modified-Since": MODIFIED}):
        for method in (app.get, app.head):
            answer = method(path, headers=headers)
            assert (answer.status_int, answer.body) == (304, b"")
            assert answer.headers["ETag"] == etag
            assert answer.headers["Cache-Control"] == "public, max-age=3600"
            assert "Content-Length" not in answer.headers
    assert app.get(path, headers={"Range": "bytes=0-1", "If-None-Match": etag}).status_int == 304
    assert app.get(path, headers={"Range": "bytes=0-1", "If-Range": etag}).status_int == 206
    assert app.get(path, headers={"Range": "bytes=0-1", "If-Range": '"other"'}).status_int == 200
    assert app.get(path, headers={"Range": "bytes=9999-", "If-Range": '"other"'}).body == DATA
    assert app.get(path, headers={"If-Match": '"other"'}, status=412).json["field"] == "If-Match"


def test_what_isnt_here(stock):
    app = stock.app()
    for path in ("/binary/unknown", "/binary/00000000-0000-5000-8000-000000000000.jpg"):
        answer = app.get(path, status=404)
        assert answer.headers["Cache-Control"] == "public, max-age=60"
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
    for name in ("a_b", "x" * 65, "x.", "x.a.b", "x.jpg%20", "%C3%A9", ".jpg", "a%20b"):
        answer = app.get(f"/binary/{name}", status=400)
        assert answer.json["field"] == "reference_id", name


def test_a_failed_one_says_what_became_of_it(stock):
    reference, original = stock.attach()
    stock.change(original, status=Status.ERROR, outcome="HTTP_ERROR", reason="the source answered 410")
    answer = stock.app().get(f"/binary/{reference.reference_id}", status=404)
    assert answer.headers["Cache-Control"] == "public, max-age=60"
    assert answer.json["original_status"] == "ERROR"
    assert answer.json["outcome"] == "HTTP_ERROR"
    assert "the source answered 410" not in answer.text  # which is for those who may list: it names sources


def test_one_under_way_is_503(stock):
    reference, original = stock.attach()
    path = f"/binary/{reference.reference_id}"
    answer = stock.app().get(path, status=503)
    assert (answer.headers["Retry-After"], answer.headers["Cache-Control"]) == ("2", "no-store")
    assert answer.json["original_status"] == "PROCESSING"
    original = stock.change(original, status=Status.RETRY, due=START + 90_000_000)
    assert 80 < int(stock.app().get(path, status=503).headers["Retry-After"]) <= 90
    stock.change(original, due=START + 10**13)
    assert stock.app().head(path, status=503).headers["Retry-After"] == "3600"


@pytest.mark.parametrize("changes", [{}, {"data": b"\0" * PART}, {"data": b"short"}, {"crc": "0" * 16}])
def test_a_damaged_first_part_is_an_error_before_the_headers(stock, changes):
    reference_id = stock.put(DATA)
    damage(stock, reference_id, 0, **changes)
    answer = stock.app().get(f"/binary/{reference_id}", status=500)
    assert answer.content_type == "application/problem+json"
    assert "magazin check" in answer.json["detail"]
    assert not {"ETag", "Accept-Ranges", "Content-Disposition", "Last-Modified"} & set(answer.headers)
    assert answer.headers["Cache-Control"] == "no-store"
    assert "ctx" not in answer.text and "Traceback" not in answer.text
    whole = stock.app().get(f"/binary/{reference_id}", headers={"Range": "bytes=1000-"})
    assert whole.body == DATA[1000:]  # the sound parts are still given


@pytest.mark.parametrize("changes", [{}, {"data": b"\0" * PART}])
def test_later_damage_breaks_the_iteration(stock, changes):
    reference_id = stock.put(DATA)
    damage(stock, reference_id, 1, **changes)
    with pytest.raises(Exception, match="part 1"):
        stock.app().get(f"/binary/{reference_id}")


@pytest.mark.parametrize(
    ("mime", "sent", "kind"),
    [
        ("image/jpeg", "image/jpeg", "inline"),
        ("image/tiff", "image/tiff", "inline"),
        ("audio/mpeg", "audio/mpeg", "inline"),
        ("video/mp4", "video/mp4", "inline"),
        ("application/pdf", "application/pdf", "inline"),
        ("text/plain", "text/plain", "inline"),
        ("text/plain; charset=utf-8", "text/plain", "inline"),
        ("image/svg+xml", "image/svg+xml", "attachment"),
        ("image/svg", "image/svg", "attachment"),
        ("image/x+xml", "image/x+xml", "attachment"),
        ("IMAGE/SVG+XML", "image/svg+xml", "attachment"),
        ("text/html", "text/html", "attachment"),
        ("text/xml", "text/xml", "attachment"),
        ("application/xhtml+xml", "application/xhtml+xml", "attachment"),
        ("application/javascript", "application/javascript", "attachment"),
        ("multipart/x-mixed-replace", "multipart/x-mixed-replace", "attachment"),
        ("text/html\r\nX-Evil: 1", "application/octet-stream", "attachment"),
        ("image/é", "application/octet-stream", "attachment"),
        ("nonsense", "application/octet-stream", "attachment"),
        ("", "application/octet-stream", "attachment"),
        (None, "application/octet-stream", "attachment"),
    ],
)
def test_types(stock, mime, sent, kind):
    answer = stock.app().get(f"/binary/{stock.put(DATA, mime=mime)}")
    assert answer.headers["Content-Type"] == sent
    assert answer.headers["Content-Disposition"].split(";")[0] == kind


def test_max_age_is_a_setting(stock):
    answer = stock.app(Options(max_age=7)).get(f"/binary/{stock.put(DATA)}")
    assert answer.headers["Cache-Control"] == "public, max-age=7"
