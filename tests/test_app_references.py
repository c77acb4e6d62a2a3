import json

import pytest

from app.options import Options
from ingest.records import Status
from tests.app_stock import Stock

URL = "http://source.example/photo.jpg"


@pytest.fixture
def stock(tmp_path):
    return Stock(tmp_path)


def put(app, body=None, status=202, **headers):
    return app.put_json("/binaries", body or {"url": URL, "context": "ctx"}, headers=headers, status=status)


def test_put_queues_and_tells_where(stock):
    answer = put(stock.app())
    reference, original = stock.references.find(answer.json["reference_id"])
    assert answer.json == {
        "reference_id": reference.reference_id,
        "original_id": original.original_id,
        "context": "ctx",
        "url": URL,
        "status": "PROCESSING",
    }
    assert answer.headers["Location"] == f"/binary/{reference.reference_id}"
    assert answer.headers["Cache-Control"] == "no-store"


def test_put_again_is_the_same_reference_and_200_once_it_is_here(stock):
    app, reference_id = stock.app(), stock.put(b"x", url=URL)
    answer = put(app, status=200)
    assert (answer.json["reference_id"], answer.json["status"]) == (reference_id, "OK")
    other = put(app, {"url": URL, "context": "other"}, status=200)
    assert other.json["reference_id"] != reference_id
    assert other.json["original_id"] == answer.json["original_id"]


@pytest.mark.parametrize(
    "send",
    [
        lambda app: app.put_json("/binaries", {"url": URL, "context": "ctx", "mime": "image/PNG"}),
        lambda app: app.put("/binaries", {"url": URL, "context": "ctx", "mime": "image/PNG"}),
        lambda app: app.put(f"/binaries?url={URL}&context=ctx&mime=image%2FPNG"),
        lambda app: app.put_json("/binaries", {"url": f" {URL}\n", "context": "ctx", "mime": "image/png"}),
    ],
)
def test_put_takes_json_a_form_or_a_query(stock, send):
    answer = send(stock.app())
    _, original = stock.references.find(answer.json["reference_id"])
    assert (original.url, original.mime_declared) == (URL, "image/png")


def test_mime_may_be_null(stock):
    answer = put(stock.app(), {"url": URL, "context": "ctx", "mime": None})
    assert stock.references.find(answer.json["reference_id"])[1].mime_declared is None


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ('{"url": "http://a.example/", "context": "c", "color": 1, "size": 2}', "color"),
        ('{"url": "http://a.example/"}', "context"),
        ('{"context": "c"}', "url"),
        ('{"url": "", "context": "c"}', "url"),
        ('{"url": null, "context": "c"}', "url"),
        ('{"url": 5, "context": "c"}', "url"),
        ('{"url": ["http://a.example/"], "context": "c"}', "url"),
        ('{"url": "http://a.example/", "url": "http://b.example/", "context": "c"}', "url"),
        ('{"url": "http://a.example/", "context": {"url": 1}}', "context"),
        ('{"url": "http://a.example/\\u0000", "context": "c"}', "url"),
        ('{"url": "http://a.example/\\ud800", "context": "c"}', "url"),
        ('{"url": "http://a.example/", "context": "a/b"}', "context"),
        ('{"url": "http://a.example/", "context": ".."}', "context"),
        ('{"url": "http://a.example/", "context": "' + "x" * 256 + '"}', "context"),
        ('{"url": "http://a.example/", "context": "c", "mime": "image"}', "mime"),
        ('{"url": "http://a.example/", "context": "c", "mime": "image/png\\r\\nX: y"}', "mime"),
        ('{"url": "http://a.example/", "context": "c", "mime": 7}', "mime"),
    ],
)
def test_bad_fields_get_400_with_the_field(stock, body, field):
    answer = stock.app().put("/binaries", body, content_type="application/json", status=400)
    assert answer.json["field"] == field
    assert answer.content_type == "application/problem+json"


@pytest.mark.parametrize(
    "body",
    ["{", "[]", '"x"', "nul", "NaN", "[" * 60_000, '{"a":' * 10_000, '{"url": ' + "9" * 5000 + "}", b"\xff", b"\0"],
)
def test_what_isnt_json_gets_400(stock, body):
    answer = stock.app().put("/binaries", body, content_type="application/json", status=400)
    assert answer.content_type == "application/problem+json"


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("url=http://a.example/&context=c&color=1", 400),
        ("url=http://a.example/&url=http://b.example/&context=c", 400),
        ("url=http://a.example/%ff&context=c", 400),
        ("url", 400),
        ("", 400),
        ("&".join(f"a{n}=1" for n in range(1000)), 400),
    ],
)
def test_bad_queries(stock, query, status):
    stock.app().put("/binaries?" + query, status=status)


def test_body_and_query_together_are_refused(stock):
    stock.app().put("/binaries?context=c", {"url": URL}, status=400)


def test_other_types_get_415(stock):
    app = stock.app()
    for kind in ("text/plain", "application/xml", "multipart/form-data; boundary=x", "application/jsonx"):
        app.put("/binaries", "x", content_type=kind, status=415)


def test_a_long_body_gets_413(stock):
    body = json.dumps({"url": URL, "context": "c", "mime": "x" * 65536})
    stock.app().put("/binaries", body, content_type="application/json", status=413)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://source.example/x",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "//source.example/x",
        "photo.jpg",
        "http://",
        "http://user@source.example/x",
        "http://user:secret@source.example/x",
        "http://127.0.0.1/x",
        "http://127.1/x",
        "http://2130706433/x",
        "http://[::1]/x",
        "http://169.254.169.254/latest/meta-data",
    ],
)
def test_urls_that_are_never_fetched_get_422(stock, url):
    answer = put(stock.app(), {"url": url, "context": "c"}, status=422)
    assert answer.json["field"] == "url"
    assert "secret" not in answer.text


def test_put_needs_a_token(stock):
    app = stock.app(Options())
    assert "magazin token" in put(app, status=403).json["detail"]
    put(app, status=401, Authorization="Bearer mgz_00000000_" + "0" * 32)
    put(app, Authorization=f"Bearer {stock.tokens.issue('x')}")
    for path in ("/binaries/reference/x", "/binaries/context/x"):
        app.delete(path, status=403)
    app.get("/binaries/ctx", status=403)


class Settling:
    """A sleep in which a worker comes to an end with the one original there is."""

    def __init__(self, stock, after, **outcome):
        self.stock, self.after, self.outcome, self.slept = stock, after, outcome, 0

    def __call__(self, seconds):
        self.slept += 1
        if self.slept == self.after:
            _, original = self.stock.references.page("ctx", limit=1)[0]
            self.stock.change(original, **self.outcome)


def test_prefer_wait_answers_with_the_outcome(stock):
    sleep = Settling(stock, 3, status=Status.OK)
    answer = put(stock.app(sleep=sleep), status=200, Prefer="respond-async, wait=10")
    assert (answer.json["status"], answer.headers["Preference-Applied"]) == ("OK", "wait=10")
    assert sleep.slept == 3


def test_prefer_wait_ends_with_a_failure_and_its_reason(stock):
    sleep = Settling(stock, 1, status=Status.RETRY, outcome="TIMEOUT", reason="nothing came for 60 s")
    answer = put(stock.app(sleep=sleep), Prefer="wait=10")
    assert answer.json["status"] == "RETRY"
    assert (answer.json["outcome"], answer.json["error"]) == ("TIMEOUT", "nothing came for 60 s")
    listed = stock.app().get("/binaries/ctx").json[0]
    assert listed["error"] == "nothing came for 60 s"


def test_when_no_place_is_left_nobody_waits(stock):
    answer = put(stock.app(Options(loopback_writes=True, waiters=0)), Prefer="wait=10")
    assert "Preference-Applied" not in answer.headers


def test_a_context_is_listed_in_pages(stock):
    for number in range(7):
        stock.attach(f"http://source.example/{number}")
    stock.attach("http://source.example/0", context="other")
    app, path, seen, pages = stock.app(), "/binaries/ctx?limit=3", [], 0
    while path:
        answer = app.get(path)
        assert len(answer.json) <= 3
        seen += answer.json
        pages += 1
        link = answer.headers.get("Link", "")
        path = link[1 : link.index(">")] if link.endswith('; rel="next"') else None
    assert pages == 3
    ids = [entry["reference_id"] for entry in seen]
    assert ids == sorted(set(ids)) and len(ids) == 7
    assert {entry["url"] for entry in seen} == {f"http://source.example/{number}" for number in range(7)}
    assert set(seen[0]) == {"reference_id", "original_id", "url", "status"}


def test_a_full_last_page_has_no_next(stock):
    for number in range(3):
        stock.attach(f"http://source.example/{number}")
    answer = stock.app().get("/binaries/ctx?limit=3")
    assert len(answer.json) == 3 and "Link" not in answer.headers


def test_unknown_contexts_list_nothing(stock):
    answer = stock.app().get("/binaries/never")
    assert (answer.json, answer.content_type) == ([], "application/json")


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=-1", "limit"),
        ("limit=x", "limit"),
        ("limit=", "limit"),
        ("limit=1&limit=2", "limit"),
        (f"limit={10**100}", "limit"),
        ("limit=٣", "limit"),
        ("after=a/b", "after"),
        ("after=" + "x" * 129, "after"),
    ],
)
def test_bad_pages(stock, query, field):
    assert stock.app().get(f"/binaries/ctx?{query}", status=400).json["field"] == field


def test_lists_may_be_open(stock):
    stock.attach()
    elsewhere = {"REMOTE_ADDR": "192.0.2.1"}
    assert len(stock.app(Options(open_lists=True)).get("/binaries/ctx", extra_environ=elsewhere).json) == 1


def test_deletes_are_204_whatever_was_there(stock):
    app, keep, gone = stock.app(), stock.put(b"x", context="a"), stock.put(b"y", context="b", url=URL + "?2")
    for path in (f"/binaries/reference/{gone}", "/binaries/context/b", "/binaries/context/never"):
        for _ in range(2):
            answer = app.delete(path)
            assert (answer.status_int, answer.body) == (204, b"")
    app.get(f"/binary/{gone}", status=404)
    assert app.get(f"/binary/{keep}").body == b"x"
    app.delete("/binaries/context/a")
    app.get(f"/binary/{keep}", status=404)
    assert app.get("/binaries/a").json == []


def test_bad_names(stock):
    app = stock.app()
    assert app.delete("/binaries/reference/a_b", status=400).json["field"] == "reference_id"
    assert app.delete("/binaries/context/a%20b", status=400).json["field"] == "context"
    assert app.get("/binaries/" + "x" * 256, status=400).json["field"] == "context"
    app.put("/binaries/ctx", status=405)
    app.delete("/binaries/ctx", status=405)
