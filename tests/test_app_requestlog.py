import json
import logging
import re

import pytest

from tests.app_stock import Stock


@pytest.fixture
def stock(tmp_path):
    return Stock(tmp_path)


def lines(caplog):
    return [json.loads(record.getMessage()) for record in caplog.records if record.name == "magazin.access"]


def test_one_line_for_each_request(stock, caplog):
    with caplog.at_level(logging.INFO, "magazin.access"):
        stock.app().get("/binary/unknown", status=404)
        refused = stock.app().get("/binary/%00", status=400)
        stock.app().get(f"/binary/{stock.put(b'four' * 1000)}")
    first, second, third = lines(caplog)
    assert first["ms"] >= 0
    assert {name: first[name] for name in ("method", "path", "status", "peer")} == {
        "method": "GET",
        "path": "/binary/unknown",
        "status": 404,
        "peer": "127.0.0.1",
    }
    assert second["status"] == 400 and second["request_id"] != first["request_id"]
    assert (second["length"], third["length"]) == (len(refused.body), 4000)


def test_no_query_is_logged(stock, caplog):
    with caplog.at_level(logging.INFO):
        stock.app().put("/binaries?context=ctx&url=http://source.example/x?key=geheim")
        stock.app().put("/binaries?context=ctx&url=http://user:geheim@source.example/x", status=422)
    assert "geheim" not in caplog.text


def test_an_id_from_outside_is_taken_if_it_is_sane(stock):
    app = stock.app()
    assert app.get("/health/live", headers={"X-Request-Id": "a-Z.0_9:x"}).headers["X-Request-Id"] == "a-Z.0_9:x"
    for bad in ("", "a b", "x" * 65, 'a"b', "a,b", "é", "a\tb"):
        answer = app.get("/health/live", headers={"X-Request-Id": bad})
        assert re.fullmatch(r"[0-9a-f]{16}", answer.headers["X-Request-Id"])


def test_nothing_is_made_for_a_log_that_nobody_reads(stock, caplog):
    with caplog.at_level(logging.WARNING, "magazin.access"):
        stock.app().get("/health/live")
    assert lines(caplog) == []


def test_hostile_paths_stay_one_line(stock, caplog):
    with caplog.at_level(logging.INFO, "magazin.access"):
        stock.app().get("/binary/a%0ab%1b[2J", status=400)
    [record] = [record for record in caplog.records if record.name == "magazin.access"]
    assert record.getMessage().isprintable()
