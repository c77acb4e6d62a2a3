"""Log lines: one record is one line, for people and for machines."""

import io
import json
import logging

import pytest

from cli.logs import configure
from cli.settings import Log


@pytest.fixture
def written():
    stream = io.StringIO()
    root = logging.getLogger()
    before = root.handlers[:], root.level

    def log(**settings):
        configure(Log(**settings), stream)
        return stream

    yield log
    root.handlers[:], root.level = before
    logging.getLogger("magazin.access").disabled = False


def test_a_line_for_people(written):
    stream = written(format="text")
    logging.getLogger("magazin.worker").warning("fetched\nin %d s\r", 3, extra={"host": "h"})
    line = stream.getvalue()
    assert line.count("\n") == 1
    assert line[:4].isdigit()
    assert line.endswith("Z warning magazin.worker: fetched\\nin 3 s\\r host=h\n")


def test_an_object_for_machines(written):
    stream = written(format="json")
    try:
        raise ValueError("why")
    except ValueError:
        logging.getLogger("x").exception("bad\n", extra={"host": "h"})
    (line,) = stream.getvalue().splitlines()
    found = json.loads(line)
    assert (found["level"], found["logger"], found["message"], found["host"]) == ("error", "x", "bad\n", "h")
    assert "ValueError: why" in found["exception"]


def test_the_fields_of_a_request_become_fields_of_the_object(written):
    stream = written(format="json")
    logging.getLogger("magazin.access").info('{"status": 200}')
    assert json.loads(stream.getvalue())["status"] == 200


def test_levels_and_the_access_log_can_be_turned_off(written):
    stream = written(level="warning", access=False)
    logging.getLogger("magazin.worker").info("quiet")
    logging.getLogger("magazin.access").error("{}")
    assert stream.getvalue() == ""
