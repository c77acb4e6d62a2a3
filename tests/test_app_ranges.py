from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.problems import Problem
from app.ranges import wanted


@pytest.mark.parametrize(
    ("header", "span"),
    [
        ("bytes=0-0", (0, 1)),
        ("bytes=0-99", (0, 100)),
        ("bytes=2-4", (2, 5)),
        ("bytes=99-", (99, 100)),
        ("bytes=90-1000", (90, 100)),
        ("bytes=0-9223372036854775807", (0, 100)),
        ("bytes=-1", (99, 100)),
        ("bytes=-100", (0, 100)),
        ("bytes=-101", (0, 100)),
        ("Bytes = 5-5 ", (5, 6)),
        ("bytes=0-1,5-6", None),  # several: the whole
        ("bytes=0-1,", None),
        ("items=0-1", None),  # another unit: the whole
    ],
)
def test_what_of_100_bytes_is_wanted(header, span):
    assert wanted(header, 100) == span


@pytest.mark.parametrize("header", ["bytes=100-", "bytes=100-200", "bytes=-0", "bytes=9223372036854775807-"])
def test_beyond_the_end_is_416_with_the_size(header):
    with pytest.raises(Problem) as caught:
        wanted(header, 100)
    assert caught.value.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE
    assert caught.value.headers["Content-Range"] == "bytes */100"
    assert caught.value.members["field"] == "Range"


@pytest.mark.parametrize(
    "header",
    [
        "bytes",
        "0-1",
        "bytes=",
        "bytes=-",
        "bytes=a-b",
        "bytes=1_0-2_0",
        "bytes=+1-2",
        "bytes=--1",
        "bytes=٣-٤",
        "bytes=4-2",
        "bytes=0x1-2",
        f"bytes={2**63}-",
        f"bytes=0-{10**100}",
        f"bytes=-{10**100}",
        f"bytes={'9' * 5000}-",
    ],
)
def test_what_is_no_range_is_400(header):
    with pytest.raises(Problem) as caught:
        wanted(header, 100)
    assert (caught.value.status, caught.value.members["field"]) == (HTTPStatus.BAD_REQUEST, "Range")


@given(st.integers(0, 40), st.integers(0, 40), st.integers(1, 30))
def test_a_range_is_the_slice_that_it_names(first, last, size):
    data = bytes(range(size))
    if first <= last and first < size:
        start, stop = wanted(f"bytes={first}-{last}", size)
        assert data[start:stop] == data[first : last + 1]
    if last:
        start, stop = wanted(f"bytes=-{last}", size)
        assert data[start:stop] == data[-last:]
