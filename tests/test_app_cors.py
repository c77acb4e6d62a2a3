import pytest

from tests.app_stock import Stock

ORIGIN = {"Origin": "https://viewer.example"}


@pytest.fixture
def stock(tmp_path):
    return Stock(tmp_path)


def test_every_answer_of_delivery_is_open(stock):
    app, reference_id = stock.app(), stock.put_image()
    image = f"/binary/{reference_id}/full/!60,60/0/default.jpg"
    etag = app.get(image).headers["ETag"]
    answers = [
        app.get(f"/binary/{reference_id}", headers=ORIGIN),
        app.get(f"/binary/{reference_id}", headers=ORIGIN | {"Range": "bytes=0-1"}),
        app.get(f"/binary/{reference_id}", headers=ORIGIN | {"Range": "bytes=99999-"}, status=416),
        app.get(image, headers=ORIGIN | {"If-None-Match": etag}, status=304),
        app.get(f"/binary/{reference_id}/info.json", headers=ORIGIN),
        app.get("/binary/unknown", headers=ORIGIN, status=404),
        app.get("/binary/a/b/c/d/e/f", headers=ORIGIN, status=404),
        app.get("/binary/%00", headers=ORIGIN, status=400),
        app.get("/binary/..%2f", headers=ORIGIN, status=400),
        app.put(f"/binary/{reference_id}", headers=ORIGIN, status=405),
    ]
    for answer in answers:
        assert answer.headers["Access-Control-Allow-Origin"] == "*", answer.request.path
        assert "Access-Control-Allow-Credentials" not in answer.headers
        assert "Access-Control-Allow-Methods" not in answer.headers


@pytest.mark.parametrize("tail", ["", "/info.json", "/full/!60,60/0/default.jpg", "/full/!60,60/default.jpg"])
def test_a_preflight_offers_reading_only(stock, tail):
    headers = ORIGIN | {"Access-Control-Request-Method": "DELETE", "Access-Control-Request-Headers": "authorization"}
    answer = stock.app().options(f"/binary/x{tail}", headers=headers)
    assert answer.headers["Access-Control-Allow-Methods"] == "GET, HEAD, OPTIONS"
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert answer.headers["Allow"] == "GET, HEAD, OPTIONS"
    allowed = answer.headers["Access-Control-Allow-Headers"].lower().split(", ")
    assert {"range", "if-none-match"} <= set(allowed) and "authorization" not in allowed


@pytest.mark.parametrize(
    "path",
    ["/", "/binaries", "/binaries/ctx", "/binaries/reference/x", "/binary/logs/ctx", "/metrics", "/openapi.json"],
)
def test_nothing_else_is(stock, path):
    app = stock.app()
    headers = ORIGIN | {"Access-Control-Request-Method": "PUT"}
    for answer in (app.options(path, headers=headers), app.get(path, headers=ORIGIN, status="*")):
        assert not [name for name in answer.headers if name.lower().startswith("access-control")]
