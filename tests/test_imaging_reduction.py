"""Which reduced version serves a request, and where a region lies in it."""

import pytest

from imaging.reduction import choose, reduced
from imaging.region import Rect

PICTURE = 4001, 3000
POWERS = (1, 2, 4, 8, 16)


@pytest.mark.parametrize(
    ("rect", "size", "by"),
    [
        (Rect(0, 0, 4001, 3000), (500, 375), 8),
        (Rect(0, 0, 4001, 3000), (501, 375), 4),
        (Rect(0, 0, 4001, 3000), (4001, 3000), 1),
        (Rect(0, 0, 4001, 3000), (8000, 9000), 1),
        (Rect(1024, 512, 512, 512), (128, 128), 4),
        (Rect(2048, 0, 1953, 512), (400, 100), 4),  # its right edge is the picture's
        (Rect(1025, 512, 512, 512), (128, 128), 2),  # between the pixels: twice as fine
        (Rect(1024, 512, 510, 512), (127, 128), 2),
        (Rect(1025, 513, 30, 30), (10, 10), 1),
    ],
)
def test_the_smallest_that_suffices(rect, size, by):
    assert choose(rect, size, PICTURE, POWERS) == by


@pytest.mark.parametrize(
    ("rect", "by", "part"),
    [
        (Rect(0, 0, 4001, 3000), 4, Rect(0, 0, 1001, 750)),
        (Rect(1024, 512, 512, 256), 4, Rect(256, 128, 128, 64)),
        (Rect(1025, 513, 512, 256), 4, Rect(256, 128, 128, 64)),  # to the nearest pixel
        (Rect(1027, 514, 512, 256), 4, Rect(257, 129, 128, 64)),
        (Rect(4000, 2999, 1, 1), 8, Rect(500, 374, 1, 1)),
        (Rect(100, 100, 1, 1), 8, Rect(13, 13, 1, 1)),
    ],
)
def test_where_a_region_lies(rect, by, part):
    assert reduced(rect, by, -(-4001 // by), -(-3000 // by), PICTURE) == part
