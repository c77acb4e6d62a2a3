import logging

import pytest

from app.problems import MEDIA_TYPE
from imaging.errors import BrokenImage, NotAnImage, TookTooLong, TooLargeImage
from storage.cache import Busy
from storage.errors import BrokenPromise, Damaged, Full, TooLarge, Unavailable, Unknown
from tests.app_stock import Stock


@pytest.fixture
def stock(tmp_path):
    return Stock(tmp_path)


class Failing:
    """Stands in for a collaborator whose every method fails."""

    def __init__(self, error):
        self._error = error

    def __getattr__(self, name):
        def fail(*args, **kwargs):
            raise self._error

        return fail


SECRET = "/srv/data/store.sqlite: SELECT secret"


@pytest.mark.parametrize(
    ("error", "status", "retry"),
    [
        (Unavailable(SECRET), 503, True),
        (Unknown(SECRET), 503, True),
        (Busy(SECRET), 503, True),
        (Full(SECRET), 507, False),
        (TooLarge(SECRET), 500, False),
        (BrokenPromise(SECRET), 500, False),
        (Damaged("o", "a", 1, SECRET), 500, False),
        (BrokenImage(SECRET), 500, False),
        (OSError(5, SECRET), 500, False),
        (ZeroDivisionError(SECRET), 500, False),
        (RecursionError(SECRET), 500, False),
        (NotAnImage("of no format"), 404, False),
        (TooLargeImage("of 10 gigapixels"), 404, False),
        (TookTooLong("takes longer than 300 s"), 503, True),
    ],
)
def test_failures_below(stock, error, status, retry, caplog):
    stock.references = Failing(error)
    with caplog.at_level(logging.INFO):
        answer = stock.app().get("/binary/x", headers={"X-Request-Id": "my-id.7"}, status=status)
    assert answer.content_type == MEDIA_TYPE
    assert answer.json["status"] == status
    assert answer.json["request_id"] == answer.headers["X-Request-Id"] == "my-id.7"
    assert ("Retry-After" in answer.headers) is retry
    assert answer.headers["Cache-Control"] == ("public, max-age=60" if status == 404 else "no-store")
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert SECRET not in answer.text and "Traceback" not in answer.text
    if status in (500, 507):
        assert any("my-id.7" in record.getMessage() and record.levelno >= logging.ERROR for record in caplog.records)


def test_an_unexpected_failure_leaves_its_trace_in_the_log(stock, caplog):
    stock.references = Failing(ZeroDivisionError("here"))
    stock.app().get("/binary/x", status=500)
    [record] = [record for record in caplog.records if record.exc_info]
    assert record.exc_info[0] is ZeroDivisionError


@pytest.mark.parametrize(
    ("method", "path", "status", "title"),
    [
        ("GET", "/nothing/here", 404, "Not Found"),
        ("GET", "/binary/", 400, "Bad Request"),
        ("POST", "/binaries", 405, "Method Not Allowed"),
        ("DELETE", "/binary/x", 405, "Method Not Allowed"),
        ("BREW", "/binaries", 400, "Bad Request"),
        ("GET", "/binary/%00", 400, "Bad Request"),
        ("GET", "/binary/" + "x" * 3000, 414, None),
    ],
)
def test_falcons_own_and_the_middlewares(stock, method, path, status, title):
    answer = stock.app().request(path, method=method, status=status)
    assert answer.content_type == MEDIA_TYPE
    assert set(answer.json) >= {"type", "title", "status", "detail", "request_id"}
    assert (answer.json["type"], answer.json["status"]) == ("about:blank", status)
    if title:
        assert answer.json["title"] == title
    if status == 405:
        assert "Allow" in answer.headers


def test_details_may_be_in_any_script(stock):
    answer = stock.app().get("/binary/x/full/%E5%9B%BE/0/default.jpg", status=400)
    assert answer.json["field"] == "size"


def test_head_has_no_body(stock):
    answer = stock.app().head("/binary/unknown", status=404)
    assert answer.body == b"" and answer.content_type == MEDIA_TYPE
