import gzip

import pytest
from webob import Request

from app.viewerfiles import FOLDER, bundle
from tests.app_stock import Stock


@pytest.fixture
def app(tmp_path):
    return Stock(tmp_path).app()


def test_the_names_hold_a_hash_of_what_is_in_them(tmp_path):
    (tmp_path / "viewer.css").write_text("a {}")
    first = bundle(tmp_path).links.style
    bundle.cache_clear()
    (tmp_path / "viewer.css").write_text("b {}")
    second = bundle(tmp_path).links.style
    assert first != second
    assert first.startswith("viewer-") and first.endswith(".css")


def test_a_file(app):
    style = bundle().links.style
    answer = app.get(f"/viewer/{style}")
    assert answer.body == (FOLDER / "viewer.css").read_bytes()
    assert answer.headers["Content-Type"] == "text/css; charset=utf-8"
    assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    unchanged = app.get(f"/viewer/{style}", headers={"If-None-Match": answer.headers["ETag"]}, status=304)
    assert unchanged.body == b"" and unchanged.headers["ETag"] == answer.headers["ETag"]
    head = app.head(f"/viewer/{style}")
    assert head.headers["Content-Length"] == str(len(answer.body))


@pytest.mark.parametrize(
    ("accepted", "packed"),
    [
        ("gzip, deflate, br, zstd", True),
        ("br;q=1.0, GZIP ; q=0.5", True),
        ("gzip;q=0", False),
        ("gzip;q=0.000, br", False),
        ("gzip;q=0.001", True),
        ("x-gzip, deflate", False),
        ("", False),
    ],
)
def test_it_is_packed_for_whoever_takes_that(app, accepted, packed):
    path, data = f"/viewer/{bundle().links.style}", (FOLDER / "viewer.css").read_bytes()
    answer = Request.blank(path, headers={"Accept-Encoding": accepted}).get_response(app.app)  # webtest would unpack it
    assert answer.headers.get("Content-Encoding") == ("gzip" if packed else None)
    assert (gzip.decompress(answer.body) if packed else answer.body) == data
    assert answer.headers["Vary"] == "Accept-Encoding"
    assert answer.headers["ETag"].endswith('-gzip"') is packed
    app.get(path, headers={"Accept-Encoding": accepted, "If-None-Match": answer.headers["ETag"]}, status=304)


def test_scripts_are_scripts(tmp_path):
    (tmp_path / "dist").mkdir()
    for name in ("viewer.css", "viewer.js", "dist/openseadragon.js"):
        (tmp_path / name).write_text(name)
    made = bundle(tmp_path)
    library, own = made.links.scripts  # in this order: the one needs the other
    assert (made.files[library].data, made.files[own].data) == (b"dist/openseadragon.js", b"viewer.js")
    assert made.files[own].type == "text/javascript; charset=utf-8"


@pytest.mark.parametrize(
    "name", ["viewer.css", "package.json", ".npmrc", "..", "..%2fview.py", "%2e%2e", "dist", "viewer-0.css", "%00"]
)
def test_nothing_else_is_served(app, name):
    assert app.get(f"/viewer/{name}", status="*").status_int in (400, 404)
    assert app.get("/viewer/dist/openseadragon.js", status=404)
