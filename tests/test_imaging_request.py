"""Requests of both versions: what they ask for, and their canonical form."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imaging.errors import BadRequest
from imaging.region import Rect
from imaging.region import parse as region
from imaging.request import parse
from imaging.rotation import Rotation
from imaging.rotation import parse as rotation
from imaging.size import Bounds, parse_v3

SIDES = st.integers(1, 50_000)
MOST = Bounds(10**8, stated=True)


def order(version, path, picture=(3000, 2000), most=MOST):
    return parse(version, *path.split("/")).resolve(*picture, most)


@pytest.mark.parametrize(
    ("text", "picture", "rect"),
    [
        ("full", (300, 200), (0, 0, 300, 200)),
        ("square", (300, 200), (50, 0, 200, 200)),
        ("square", (200, 301), (0, 50, 200, 200)),
        ("10,20,30,40", (300, 200), (10, 20, 30, 40)),
        ("290,190,30,40", (300, 200), (290, 190, 10, 10)),
        ("299,199,2147483647,1", (300, 200), (299, 199, 1, 1)),
        ("pct:0,0,100,100", (300, 200), (0, 0, 300, 200)),
        ("pct:10,10,20,20", (300, 200), (30, 20, 60, 40)),
        ("pct:50,50,80,80", (301, 201), (151, 101, 150, 100)),
        ("pct:0,0,0.0001,0.0001", (300, 200), (0, 0, 1, 1)),
        ("pct:99.9999,99.9999,1,1", (300, 200), (299, 199, 1, 1)),
        ("pct:33.333333333333336,0,33.333333333333336,100", (9, 9), (3, 0, 3, 9)),
    ],
)
def test_regions(text, picture, rect):
    assert region(text).crop(*picture) == Rect(*rect)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "Full",
            "full ",
            "1,2,3",
            "1,2,3,4,5",
            "-1,0,1,1",
            "1.5,0,1,1",
            "a,b,c,d",
            "pct:",
            "pct:1,2,3",
            "١,0,1,1",
        ),
        *("0,0,0,1", "0,0,1,0", "pct:0,0,0,1", "pct:0,0,1,0.00", "pct:-1,0,1,1", "pct:1e1,0,1,1", "pct:.5,0,1,1"),
        *(f"0,0,{2**31},1", f"0,0,{2**63},1", f"{10**100},0,1,1", "9" * 4096, "pct:" + "1," * 2000),
    ],
)
def test_what_no_region_is(text):
    with pytest.raises(BadRequest, match="region"):
        region(text)


@pytest.mark.parametrize("text", ["300,0,1,1", "0,200,1,1", "pct:100,0,1,1", "pct:0,100,1,1"])
def test_a_region_outside_is_refused(text):
    with pytest.raises(BadRequest, match="outside"):
        region(text).crop(300, 200)


@given(SIDES, st.integers(1, 99), st.integers(0, 10**6))
def test_regions_that_meet_in_percent_meet_in_pixels(side, cut, more):
    at = Fraction(cut) + Fraction(more, 10**6 + 1)
    split = f"{cut}.{int((at - cut) * 10**10):010}"
    left, rest = Fraction(split), 100 - Fraction(split)
    tail = f"{rest.numerator // rest.denominator}.{int(rest % 1 * 10**10):010}"
    first = region(f"pct:0,0,{split},100").crop(side, 10)
    second = region(f"pct:{split},0,{tail},100").crop(side, 10)
    assert first.right == second.x or side * min(left, rest) < 100
    assert second.right == side


@pytest.mark.parametrize(
    ("text", "degrees", "mirrored", "canonical"),
    [
        ("0", 0, False, "0"),
        ("360", 0, False, "0"),
        ("!0", 0, True, "!0"),
        ("090", 90, False, "90"),
        ("22.50", Fraction("22.5"), False, "22.5"),
        ("!0.050", Fraction("0.05"), True, "!0.05"),
        ("359.9999999999", Fraction("359.9999999999"), False, "359.9999999999"),
    ],
)
def test_rotations(text, degrees, mirrored, canonical):
    assert rotation(text) == Rotation(Fraction(degrees), mirrored)
    assert rotation(text).text == canonical


@pytest.mark.parametrize(
    "text", ["", "-1", "361", "360.1", "!", "!!0", "1e1", "90.", ".5", "+90", "nan", "٩", "9" * 999]
)
def test_what_no_rotation_is(text):
    with pytest.raises(BadRequest, match="rotation"):
        rotation(text)


@pytest.mark.parametrize("file", ["default", "default.bmp", "native.jpg", "default.jpg.jpg", "DEFAULT.jpg", ".jpg", ""])
def test_what_no_quality_and_format_is(file):
    with pytest.raises(BadRequest, match="quality and format"):
        parse(3, "full", "max", "0", file)


@pytest.mark.parametrize(
    ("text", "fitted"),
    [
        ("max", (300, 200)),
        ("^max", (1500, 1000)),
        ("150,", (150, 100)),
        ("^600,", (600, 400)),
        ("^,600", (900, 600)),
        ("^600,600", (600, 600)),
        ("^10,600", (10, 600)),
        ("^150,100", (150, 100)),
        ("!600,200", (300, 200)),
        ("!600,100", (150, 100)),
        ("^!600,600", (600, 400)),
        ("^!100,100", (100, 67)),
        ("^!9000,9000", (1500, 1000)),
        ("pct:50", (150, 100)),
        ("^pct:200", (600, 400)),
        ("^pct:50", (150, 100)),
    ],
)
def test_sizes_of_version_3(text, fitted):
    assert parse_v3(text).fit(300, 200, Bounds(1_500_000, stated=True)) == fitted


@pytest.mark.parametrize(
    "text",
    ["301,", ",201", "301,200", "!301,201", "pct:101", "full", "^full", "^^max", "^", "^!", "0,", "^0,", "^pct:0"],
)
def test_what_version_3_refuses(text):
    with pytest.raises(BadRequest, match="size"):
        parse_v3(text).fit(300, 200)


@pytest.mark.parametrize("text", ["^1501,", "^,1001", "^1500,1001", "^pct:501"])
def test_enlarging_ends_at_the_limit(text):
    with pytest.raises(BadRequest, match="limit"):
        parse_v3(text).fit(300, 200, Bounds(1_500_000))


def test_without_a_stated_limit_nothing_is_the_largest():
    assert parse_v3("^max").fit(300, 200, Bounds(10**6)) == (300, 200)


def test_each_side_has_a_limit_too():
    assert parse_v3("max").fit(3000, 2000, Bounds(10**9, width=300)) == (300, 200)
    assert parse_v3("^max").fit(30, 20, Bounds(10**9, height=200, stated=True)) == (300, 200)
    with pytest.raises(BadRequest, match="limit"):
        parse_v3("301,").fit(3000, 2000, Bounds(10**9, width=300))


@pytest.mark.parametrize(
    ("path", "v2", "v3"),
    [
        ("full/max/0/default.jpg", "full/full/0/default.jpg", "full/max/0/default.jpg"),
        ("0,0,3000,2000/3000,/360/color.png", "full/full/0/color.png", "full/max/0/color.png"),
        ("pct:0,0,50,50/!750,9000/!0/gray.jpg", "0,0,1500,1000/750,/!0/gray.jpg", "0,0,1500,1000/750,500/!0/gray.jpg"),
        (
            "square/100,200/22.50/default.jpg",
            "500,0,2000,2000/100,200/22.5/default.jpg",
            "500,0,2000,2000/100,200/22.5/default.jpg",
        ),
    ],
)
def test_canonical_forms(path, v2, v3):
    assert order(2, path).canonical(2) == v2
    assert order(3, path).canonical(3) == v3


@pytest.mark.parametrize(
    ("size", "canonical"),
    [
        ("^max", "^max"),
        ("^4000,", "^4000,2667"),
        ("^3000,", "max"),
        ("^300,200", "300,200"),
        ("^100,2001", "^100,2001"),
    ],
)
def test_canonical_sizes_that_enlarge(size, canonical):
    assert order(3, f"full/{size}/0/default.jpg").canonical(3).split("/")[1] == canonical


REGIONS = st.sampled_from(["full", "square", "pct:10,20,30.5,40", "5,6,700,800", "1,1,1,1"])
SIZES = st.sampled_from(["max", "70,", ",33", "pct:12.5", "!90,80", "31,17"])


@given(st.sampled_from([2, 3]), REGIONS, SIZES, SIDES, SIDES)
def test_a_canonical_form_comes_to_the_same_and_is_its_own(version, part, size, width, height):
    try:
        first = order(version, f"{part}/{size}/0/default.jpg", (width, height))
    except BadRequest:
        return
    again = order(version, first.canonical(version), (width, height))
    assert again == first
    assert again.key == first.key


def test_both_versions_share_a_key():
    assert order(2, "full/full/0/default.jpg").key == order(3, "full/^3000,/0/default.jpg").key


@given(
    st.sampled_from([2, 3]), st.lists(st.text("0123456789,.!^pct:fulmaxsqrdeojg", max_size=20), min_size=4, max_size=4)
)
def test_any_text_is_a_request_or_a_bad_one(version, parts):
    try:
        made = parse(version, *parts).resolve(300, 200, MOST)
    except BadRequest:
        return
    assert made.region.width * made.region.height * made.size[0] * made.size[1] > 0
