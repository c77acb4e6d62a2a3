"""Sizes: from the text to pixels, in rational arithmetic."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imaging.errors import BadRequest
from imaging.size import MAX_SIDE, Bounds, Exact, Full, Height, Max, Percent, Width, Within, parse

MALFORMED = (
    *("", ",", "!", "!,", "!800,", "!,600", "800", "800x600", "800,600,", "-1,5", "+8,6", "8 ,6", "8.5,6", "1e3,"),
    *("^max", "^800,", "^pct:120", "MAX", "max\n", "full ", "0x10,", "８００,", "٣,", "800,600\0", "\0"),
    *("pct:", "pct:.5", "pct:5.", "pct:1e2", "pct:-1", "pct:nan", "pct:101", "pct:100.1"),
)
ZERO = ("0,", ",0", "0,0", "!0,5", "!5,0", "5,0", "pct:0", "pct:0.000")
HUGE = (
    *("2147483648,", f"{2**63},", f",{10**100}", f"!{10**100},1", f"pct:{10**100}", "9" * 4096 + ","),
    *("pct:0." + "0" * 4000 + "1", "!" * 4096, "," * 4096, "pct:" * 1000),
)
SIDES = st.integers(1, 100_000)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("max", Max()),
        ("full", Full()),
        ("800,", Width(800)),
        (",600", Height(600)),
        ("800,600", Exact(800, 600)),
        ("!800,600", Within(800, 600)),
        ("!0800,600", Within(800, 600)),
        ("!2147483647,1", Within(2**31 - 1, 1)),
        ("pct:50", Percent(Fraction(50))),
        ("pct:33.333333333333336", Percent(Fraction("33.333333333333336"))),
    ],
)
def test_what_a_text_asks_for(text, size):
    assert parse(text) == size


@pytest.mark.parametrize("text", [*MALFORMED, *ZERO, *HUGE])
def test_what_no_size_is(text):
    with pytest.raises(BadRequest, match="size"):
        parse(text)


def test_enlarging_is_named_as_what_is_missing():
    with pytest.raises(BadRequest, match="enlarging"):
        parse("^800,")


@given(st.text(max_size=60) | st.text("0123456789,!.^pct:maxful", max_size=60))
def test_any_text_is_a_size_or_a_bad_request(text):
    try:
        size = parse(text)
    except BadRequest:
        return
    try:
        wide, high = size.fit(1000, 700)
    except BadRequest:
        return
    assert 1 <= wide <= 1000
    assert 1 <= high <= 700


@pytest.mark.parametrize(
    ("text", "source", "fitted"),
    [
        ("max", (3000, 2000), (3000, 2000)),
        ("full", (3000, 2000), (3000, 2000)),
        ("800,", (3000, 2000), (800, 533)),
        (",600", (3000, 2000), (900, 600)),
        ("10,2000", (3000, 2000), (10, 2000)),
        ("3000,2000", (3000, 2000), (3000, 2000)),
        ("!800,600", (3000, 2000), (800, 533)),
        ("!800,600", (2000, 3000), (400, 600)),
        ("!800,600", (1600, 1200), (800, 600)),
        ("!800,600", (100, 50), (100, 50)),  # never enlarged
        ("!100,50", (100, 50), (100, 50)),
        ("!800,600", (801, 1), (800, 1)),
        ("!800,600", (1, 10_000), (1, 600)),
        ("!140,105", (10_000, 1), (140, 1)),
        ("pct:50", (3000, 2000), (1500, 1000)),
        ("pct:50", (3, 5), (2, 3)),  # halves go up
        ("pct:100", (3, 5), (3, 5)),
        ("pct:0.00001", (3000, 2000), (1, 1)),
        ("1,", (10, 100_000), (1, 10_000)),
        ("5,", (10, 3), (5, 2)),
    ],
)
def test_pixels(text, source, fitted):
    assert parse(text).fit(*source) == fitted


@pytest.mark.parametrize("text", ["101,", ",51", "101,50", "100,51", "2147483647,2147483647"])
def test_beyond_the_source_is_refused(text):
    with pytest.raises(BadRequest, match="beyond the 100,50"):
        parse(text).fit(100, 50)


@pytest.mark.parametrize("text", ["full", "1000,", ",1000", "1000,1000", "pct:100"])
def test_what_is_stated_exactly_is_refused_beyond_the_limit(text):
    assert parse(text).fit(1000, 1000, Bounds(1_000_000)) == (1000, 1000)
    with pytest.raises(BadRequest, match="limit"):
        parse(text).fit(1000, 1000, Bounds(999_999))


@pytest.mark.parametrize("text", ["max", "!5000,5000"])
@pytest.mark.parametrize(
    ("source", "most", "fitted"),
    [
        ((1000, 1000), 999_999, (999, 999)),
        ((3000, 2000), 1_500_000, (1500, 1000)),
        ((2000, 3000), 1_500_000, (1000, 1500)),
        ((3, 4999), 100, (1, 100)),
    ],
)
def test_the_largest_there_is_is_reduced_to_the_limit(text, source, most, fitted):
    assert parse(text).fit(*source, Bounds(most)) == fitted


def test_no_side_is_longer_than_jpeg_can_say():
    assert parse("max").fit(131_000, 2) == (65_500, 1)
    with pytest.raises(BadRequest, match="limit"):
        parse("full").fit(65_501, 1)


@given(SIDES, SIDES, SIDES, SIDES)
def test_a_box_is_filled_and_not_left(width, height, wide, high):
    fitted = Within(wide, high).fit(width, height, Bounds(10**10))
    scale = min(Fraction(1), Fraction(wide, width), Fraction(high, height), Fraction(MAX_SIDE, max(width, height)))
    assert fitted[0] <= min(wide, width)
    assert fitted[1] <= min(high, height)
    for got, side in zip(fitted, (width, height), strict=True):
        assert got == 1 or abs(got - side * scale) <= Fraction(1, 2)


@given(SIDES, SIDES, st.integers(1, 10**9))
def test_the_limit_holds(width, height, most):
    wide, high = Max().fit(width, height, Bounds(most))
    assert 1 <= wide * high <= most
    assert max(wide, high) <= MAX_SIDE
