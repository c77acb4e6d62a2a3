from http import HTTPStatus

import pytest
from falcon import Request
from falcon.testing import create_environ

from app.conditional import Validators, not_modified, range_applies
from app.problems import Problem

STATE = Validators("abc", 1_700_000_000)
SAME = "Tue, 14 Nov 2023 22:13:20 GMT"
BEFORE, AFTER = "Tue, 14 Nov 2023 22:13:19 GMT", "Tue, 14 Nov 2023 22:13:21 GMT"


def request(**headers):
    return Request(create_environ(headers={name.replace("_", "-"): value for name, value in headers.items()}))


def test_validators_as_headers():
    assert (STATE.etag, STATE.last_modified) == ('"abc"', SAME)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, False),
        ({"If_None_Match": '"abc"'}, True),
        ({"If_None_Match": 'W/"abc"'}, True),
        ({"If_None_Match": '"x", "abc"'}, True),
        ({"If_None_Match": "*"}, True),
        ({"If_None_Match": '"abcd"'}, False),
        ({"If_None_Match": '"ABC"'}, False),
        ({"If_Modified_Since": SAME}, True),
        ({"If_Modified_Since": AFTER}, True),
        ({"If_Modified_Since": BEFORE}, False),
        ({"If_Modified_Since": "yesterday"}, False),
        ({"If_None_Match": '"x"', "If_Modified_Since": AFTER}, False),  # the tag alone decides
        ({"If_Match": '"abc"'}, False),
        ({"If_Match": "*", "If_None_Match": '"abc"'}, True),
        ({"If_Unmodified_Since": SAME}, False),
        ({"If_Unmodified_Since": "never"}, False),
        ({"If_Match": '"abc"', "If_Unmodified_Since": BEFORE}, False),  # the tag alone decides
    ],
)
def test_not_modified(headers, expected):
    assert not_modified(request(**headers), STATE) is expected


@pytest.mark.parametrize("headers", [{"If_Match": '"x"'}, {"If_Match": 'W/"abc"'}, {"If_Unmodified_Since": BEFORE}])
def test_what_the_client_insists_on(headers):
    with pytest.raises(Problem) as caught:
        not_modified(request(**headers), STATE)
    assert caught.value.status == HTTPStatus.PRECONDITION_FAILED


@pytest.mark.parametrize(
    ("value", "applies"),
    [(None, True), ('"abc"', True), ('W/"abc"', False), ('"x"', False), (SAME, True), (AFTER, False), ("soon", False)],
)
def test_if_range(value, applies):
    assert range_applies(request(**({} if value is None else {"If_Range": value})), STATE) is applies
