import pytest

from app.options import Options
from tests.app_stock import Stock


@pytest.fixture
def stock(tmp_path):
    return Stock(tmp_path)


def test_the_document(stock):
    reference_id = stock.put_image(1000, 500)
    answer = stock.app().get(f"/binary/{reference_id}/info.json")
    assert answer.json["@id"] == f"http://127.0.0.1:8000/binary/{reference_id}"
    assert answer.json["@context"] == "http://iiif.io/api/image/2/context.json"
    assert (answer.json["width"], answer.json["height"]) == (1000, 500)
    assert [(one["width"], one["height"]) for one in answer.json["sizes"]] == [
        (116, 58),
        (140, 70),
        (440, 220),
        (800, 400),
        (1000, 500),
    ]
    assert answer.content_type == "application/json"
    assert 'rel="http://www.w3.org/ns/json-ld#context"' in answer.headers["Link"]
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert answer.headers["Cache-Control"] == "public, max-age=3600"


def test_every_size_told_is_given(stock):
    app, reference_id = stock.app(), stock.put_image(1000, 500)
    for size in app.get(f"/binary/{reference_id}/info.json").json["sizes"]:
        app.get(f"/binary/{reference_id}/full/{size['width']},{size['height']}/0/default.jpg", status=200)


def test_json_ld_for_who_asks(stock):
    path = f"/binary/{stock.put_image()}/info.json"
    answer = stock.app().get(path, headers={"Accept": "application/ld+json"})
    assert answer.content_type == "application/ld+json"
    assert (answer.headers["Vary"], "Link" in answer.headers) == ("Accept", False)


def test_the_base_is_a_setting_or_as_asked(stock):
    reference_id = stock.put_image()
    path = f"/binary/{reference_id}/info.json"
    fixed = stock.app(Options(base_url="https://media.example.org/files/"))
    assert fixed.get(path).json["@id"] == f"https://media.example.org/files/binary/{reference_id}"
    asked = stock.app().get(path, extra_environ={"HTTP_HOST": "[::1]:81", "wsgi.url_scheme": "https"})
    assert asked.json["@id"] == f"https://[::1]:81/binary/{reference_id}"
    forwarded = stock.app().get(path, headers={"X-Forwarded-Host": "evil.example", "Forwarded": "host=evil.example"})
    assert forwarded.json["@id"].startswith("http://127.0.0.1:8000/")
    for host in ('a"b', "a b", "a/b", "user@host", "x" * 300, "a:b", "a\r\nb", "<script>"):
        assert stock.app().get(path, extra_environ={"HTTP_HOST": host}, status=400).json["field"] == "Host"


def test_conditions(stock):
    app, path = stock.app(), f"/binary/{stock.put_image()}/info.json"
    etag = app.get(path).headers["ETag"]
    unchanged = app.get(path, headers={"If-None-Match": etag})
    assert (unchanged.status_int, unchanged.body) == (304, b"")
    elsewhere = app.get(path, headers={"If-None-Match": etag}, extra_environ={"HTTP_HOST": "localhost"})
    assert elsewhere.status_int == 200  # another address is another document
    assert app.head(path).headers["ETag"] == etag


def test_an_error_has_no_headers_of_what_it_isnt(stock):
    answer = stock.app().get(f"/binary/{stock.put_image()}/info.json", headers={"If-Match": '"x"'}, status=412)
    assert not {"ETag", "Last-Modified"} & set(answer.headers)
    assert answer.headers["Cache-Control"] == "no-store"


def test_logs_is_no_id_and_info_json_no_context(stock):
    assert stock.app().get("/binary/logs/info.json").json == []


def test_no_image(stock):
    stock.app().get(f"/binary/{stock.put(b'text', mime='text/plain')}/info.json", status=404)
