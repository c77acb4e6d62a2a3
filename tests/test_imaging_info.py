"""info.json, level 0."""

import pytest

from imaging.info import document
from imaging.size import Bounds, parse

ADDRESS = "https://example.org/binary/1"


def sizes(width, height, **more):
    return [(one["width"], one["height"]) for one in document(ADDRESS, width, height, **more)["sizes"]]


def test_the_document():
    answer = document(ADDRESS, 4000, 3000, Bounds(10_000_000))
    assert answer["@context"] == "http://iiif.io/api/image/2/context.json"
    assert answer["@id"] == ADDRESS
    assert answer["protocol"] == "http://iiif.io/api/image"
    assert (answer["width"], answer["height"]) == (4000, 3000)
    assert answer["profile"][0] == "http://iiif.io/api/image/2/level0.json"
    assert answer["profile"][1]["formats"] == ["jpg"]
    assert answer["profile"][1]["maxArea"] == 10_000_000


@pytest.mark.parametrize(
    ("picture", "wanted"),
    [
        ((4000, 3000), [(116, 87), (140, 105), (440, 330), (800, 600), (4000, 3000)]),
        ((3000, 4000), [(65, 87), (79, 105), (248, 330), (450, 600), (3000, 4000)]),
        ((440, 330), [(116, 87), (140, 105), (440, 330)]),
        ((100, 50), [(100, 50)]),
        ((1, 1), [(1, 1)]),
    ],
)
def test_sizes_smallest_first_and_none_twice(picture, wanted):
    assert sizes(*picture) == wanted


def test_no_size_is_beyond_the_limit():
    assert sizes(4000, 3000, most=Bounds(1_000_000))[-1] == (1154, 866)


@pytest.mark.parametrize("picture", [(4000, 3000), (33, 7001), (9, 5)])
def test_every_size_can_be_had(picture):
    for width, height in sizes(*picture):
        assert parse(f"{width},{height}").fit(*picture) == (width, height)
        assert parse(f"!{width},{height}").fit(*picture) == (width, height)
