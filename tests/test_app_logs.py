import pytest

from app.options import Options
from tests.app_stock import Stock


@pytest.fixture
def stock(tmp_path):
    return Stock(tmp_path)


def said(lines):
    """The messages that a test put there, without what attaching says itself."""
    return [line["message"] for line in lines if not line["message"].startswith("queued")]


def walk(app, path):
    lines = []
    while path:
        answer = app.get(path)
        lines.append(answer.json)
        link = answer.headers.get("Link", "")
        path = link[1 : link.index(">")] if link.endswith('; rel="next"') else None
    return lines


def test_lines_of_reference_and_original_oldest_first(stock):
    reference, original = stock.attach()
    stock.logs.note_reference(reference, "attached")
    stock.logs.note_original(original.original_id, "attempt 1: HTTP 503")
    stock.logs.note_reference(reference, "attached again")
    answer = stock.app().get("/binary/logs/ctx")
    assert said(answer.json) == ["attached", "attempt 1: HTTP 503", "attached again"]
    assert {line["reference_id"] for line in answer.json} == {reference.reference_id}
    assert set(answer.json[0]) == {"reference_id", "time", "message"}
    assert answer.json[0]["time"].startswith("2023-11-14T22:13:20.") and answer.json[0]["time"].endswith("Z")
    assert answer.headers["Cache-Control"] == "no-store"
    assert "Access-Control-Allow-Origin" not in answer.headers


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 7, 11, 12, 13, 14, 15, 16, 1000])
def test_pages_give_every_line_once(stock, limit):
    for number in range(3):
        reference, original = stock.attach(f"http://source.example/{number}")
        for line in range(3):
            stock.logs.note_reference(reference, f"reference {number}, {line}")
        stock.logs.note_original(original.original_id, f"original {number}")
    pages = walk(stock.app(), f"/binary/logs/ctx?limit={limit}")
    lines = [line for page in pages for line in page]
    assert all(len(page) == limit for page in pages[:-1]) and 0 < len(pages[-1]) <= limit
    assert len(set(said(lines))) == len(said(lines)) == 12
    order = [(line["reference_id"], line["time"]) for line in lines]
    assert order == sorted(order)


def test_two_lines_of_one_millisecond_are_both_there_over_pages(tmp_path):
    stock = Stock(tmp_path)
    stock.logs._clock = lambda: 1_700_000_000_000_000
    reference, _ = stock.attach()
    for message in "abc":
        stock.logs.note_reference(reference, message)
    pages = walk(stock.app(), "/binary/logs/ctx?limit=1")
    assert [message for page in pages for message in said(page)] == ["a", "b", "c"]


def test_many_references(stock):
    for number in range(120):
        reference, _ = stock.attach(f"http://source.example/{number}")
        stock.logs.note_reference(reference, str(number))
    assert sum(len(said(page)) for page in walk(stock.app(), "/binary/logs/ctx?limit=50")) == 120


def test_a_cursor_whose_reference_has_gone_goes_on_behind_it(stock):
    references = sorted(
        (stock.attach(f"http://source.example/{number}")[0] for number in range(3)), key=lambda one: one.reference_id
    )
    for reference in references:
        stock.logs.note_reference(reference, reference.reference_id)
    first = stock.app().get("/binary/logs/ctx?limit=1")
    stock.references.detach(references[0].reference_id)
    link = first.headers["Link"]
    rest = stock.app().get(link[1 : link.index(">")].replace("limit=1", "limit=9"))
    assert said(rest.json) == [one.reference_id for one in references[1:]]


def test_unknown_and_malformed(stock):
    app = stock.app()
    assert app.get("/binary/logs/never").json == []
    assert app.get("/binary/logs/a%20b", status=400).json["field"] == "context"
    for after in ("x", "x.1", "x.1.y", "x.y." + "0" * 32, "a_b.1." + "0" * 32):
        assert app.get(f"/binary/logs/ctx?after={after}", status=400).json["field"] == "after"
    foreign = app.get("/binary/logs/ctx?after=x.1." + "0" * 32)
    assert foreign.json == []


def test_a_cursor_opens_no_other_context(stock):
    reference, _ = stock.attach(context="secret")
    stock.logs.note_reference(reference, "hidden")
    after = f"{reference.reference_id}.1.{'0' * 32}"
    assert stock.app().get(f"/binary/logs/ctx?after={after}").json == []


def test_who_may_see_them(stock):
    stock.app(Options()).get("/binary/logs/ctx", status=403)
    stock.app(Options(open_lists=True)).get("/binary/logs/ctx", status=200)
    token = stock.tokens.issue("x")
    stock.app(Options()).get("/binary/logs/ctx", headers={"Authorization": f"Bearer {token}"}, status=200)
