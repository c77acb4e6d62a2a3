from http import HTTPStatus

import pytest

from app.problems import Problem
from app.rawpath import LONGEST, check


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/binary/3f/full/!800,600/0/default.jpg",
        "/binary/3f/full/%21800%2C600/0/default.jpg",
        "/binaries/a.b~c:d",
        "/binaries/caf%C3%A9",
        "/binary/.hidden",
        "/binary/x..y",
        "/binary/%252e%252e",  # no dots: a percent sign and digits, which is no id either
        "http://127.0.0.1:8000/binary/x",
    ],
)
def test_paths_that_pass(path):
    check(path)


@pytest.mark.parametrize(
    "path",
    [
        "/binary/..%2f..%2fetc",
        "/binary/a%2Fb",
        "/binary/%00",
        "/binary/a%0d%0aX:y",
        "/binary/%ff",
        "/binary/%c0%ae",
        "/binary/%5c",
        "/binary/a\\b",
        "/binary/..",
        "/../etc/passwd",
        "/binary/./x",
        "/binary/%2e%2e/x",
        "/binary/%2E",
        "/binary/%zz",
        "/binary/50%",
        "http://127.0.0.1/../x",
    ],
)
def test_paths_that_get_400(path):
    with pytest.raises(Problem) as caught:
        check(path)
    assert (caught.value.status, caught.value.members["field"]) == (HTTPStatus.BAD_REQUEST, "path")


def test_a_long_path_gets_414():
    check("/" + "x" * (LONGEST - 1))
    with pytest.raises(Problem) as caught:
        check("/" + "x" * LONGEST)
    assert caught.value.status == HTTPStatus.REQUEST_URI_TOO_LONG
