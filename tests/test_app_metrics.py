import pytest

from app.options import Options
from storage.schema import ORIGINALS_DATA
from tests.app_stock import PART, Stock


@pytest.fixture
def stock(tmp_path):
    return Stock(tmp_path)


def values(app):
    lines = app.get("/metrics").text.splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))}


def test_requests_count_by_route_not_by_path(stock):
    app = stock.app()
    for path in ("/binary/a", "/binary/b", "/nothing/1", "/nothing/2"):
        app.get(path, status=404)
    app.request("/binaries", method="BREW", status=400)
    counted = values(app)
    assert counted['magazin_http_requests_total{method="GET",route="/binary/{reference_id}",status="404"}'] == 2
    assert counted['magazin_http_requests_total{method="GET",route="none",status="404"}'] == 2
    assert counted['magazin_http_requests_total{method="other",route="/binaries",status="400"}'] == 1
    assert counted['magazin_http_request_seconds_count{route="/binary/{reference_id}"}'] == 2
    assert not [name for name in counted if "/binary/a" in name or "BREW" in name]


def test_streams_count_by_how_they_end(stock):
    app, reference_id = stock.app(), stock.put(b"x" * 3 * PART)
    app.get(f"/binary/{reference_id}")
    left = app.app(app.RequestClass.blank(f"/binary/{reference_id}").environ, lambda *_: None)
    next(iter(left))
    left.close()
    original = stock.references.find(reference_id)[1]
    stock.store.erase(ORIGINALS_DATA, (original.original_id, original.attempt, 0))
    app.get(f"/binary/{reference_id}", status=500)
    counted = values(app)
    assert counted['magazin_http_streams_total{end="whole"}'] == 1
    assert counted['magazin_http_streams_total{end="gone"}'] == 1
    assert counted['magazin_http_streams_total{end="failed"}'] == 1
    assert not [name for name in counted if "cut" in name]


def test_who_may_see_them(stock):
    stock.app(Options()).get("/metrics", status=403)
    stock.app(Options(open_lists=True)).get("/metrics", status=200)
    token = stock.tokens.issue("prometheus")
    answer = stock.app(Options()).get("/metrics", headers={"Authorization": f"Bearer {token}"})
    assert answer.headers["Content-Type"].startswith("text/plain; version=")
