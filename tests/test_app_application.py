"""Whatever a client sends, it gets an answer that says what is wrong with it."""

import io
import json
import tempfile
from pathlib import Path
from urllib.parse import quote_from_bytes

import pytest
from falcon.testing import create_environ
from hypothesis import given, settings
from hypothesis import strategies as st

from app.application import create_app
from app.options import Options
from tests.app_stock import LOCAL, Stock

HEADERS = (
    *("ACCEPT", "AUTHORIZATION", "CONTENT_TYPE", "COOKIE", "HOST", "IF_MATCH", "IF_MODIFIED_SINCE", "IF_NONE_MATCH"),
    *("IF_RANGE", "IF_UNMODIFIED_SINCE", "ORIGIN", "PREFER", "RANGE", "SEC_FETCH_SITE", "X_REQUEST_ID"),
)
visible = st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=60)
likely = st.sampled_from(
    ["binary", "binaries", "logs", "context", "reference", "full", "max", "!800,600", "0", "default.jpg", "info.json"]
)
pieces = likely.map(str.encode) | st.binary(max_size=12)


@pytest.fixture(scope="module")
def served():
    with tempfile.TemporaryDirectory() as folder:
        stock = Stock(Path(folder))
        ids = [stock.put(b"text" * 999, mime="text/plain"), stock.put_image(url="http://source.example/image")]
        yield create_app(stock.library(), Options(loopback_writes=True), sleep=lambda _: None), ids


def ask(app, environ):
    """Status, headers and body; a server would refuse what isn't a header."""
    seen = {}

    def start(status, headers, exc_info=None):
        seen.update(status=int(status[:3]), headers={name.lower(): value for name, value in headers})
        for name, value in headers:
            assert "\r" not in value and "\n" not in value and value.encode("latin-1"), name

    body = app(environ, start)
    try:
        return seen["status"], seen["headers"], b"".join(body)
    finally:
        if hasattr(body, "close"):
            body.close()


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_no_request_is_answered_by_a_failure(served, data):
    app, ids = served
    parts = data.draw(st.lists(pieces | st.sampled_from([one.encode() for one in ids]), max_size=6))
    path = b"/" + b"/".join(parts)
    method = data.draw(st.sampled_from(["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "POST"]))
    body = data.draw(st.binary(max_size=80) | st.just(b'{"url": "http://source.example/1", "context": "c"}'))
    headers = {f"HTTP_{name}": data.draw(visible) for name in data.draw(st.sets(st.sampled_from(HEADERS), max_size=4))}
    environ = create_environ("/", method=method, body=body) | LOCAL | headers
    environ["PATH_INFO"] = path.decode("latin-1")
    environ["QUERY_STRING"] = data.draw(visible)
    if data.draw(st.booleans()):
        environ["RAW_URI"] = quote_from_bytes(path)
    status, headers, answer = ask(app, environ)
    assert status < 500 or status in (501, 503), (status, path, answer[:500])
    if status >= 400 and method != "HEAD":
        problem = json.loads(answer)
        assert problem["status"] == status and headers["content-type"] == "application/problem+json"
        assert problem["request_id"] == headers["x-request-id"]
    if status == 200 and method == "GET" and path.startswith(b"/binary/"):
        assert int(headers["content-length"]) == len(answer)


@settings(max_examples=100, deadline=None)
@given(
    body=st.binary(max_size=200)
    | st.text().map(str.encode)
    | st.recursive(
        st.none() | st.booleans() | st.floats() | st.text() | st.integers(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["url", "context", "mime", "x"]), inner),
    ).map(lambda value: json.dumps(value).encode())
)
def test_no_body_is_answered_by_a_failure(served, body):
    environ = create_environ("/binaries", method="PUT", body=body) | LOCAL
    for kind in ("application/json", "application/x-www-form-urlencoded"):
        status, _, _ = ask(served[0], environ | {"CONTENT_TYPE": kind, "wsgi.input": io.BytesIO(body)})
        assert status in (202, 400, 422)
