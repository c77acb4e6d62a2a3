"""What a TIFF's directories tell."""

import pytest

from imaging.errors import BrokenImage, TooLargeImage
from imaging.feed import Feed
from imaging.tiff import Layout, layout
from tests.imaging_files import GRAY, Counting, gray_tiff, tiff, tiled_tiff

VARIANTS = [{"order": "<"}, {"order": ">"}, {"order": "<", "big": True}, {"order": ">", "big": True}]


def look(data, most=100):
    return layout(Feed(Counting(data)), most)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("pages", [1, 7])
def test_pages_and_rows(variant, pages):
    assert look(gray_tiff(8, 50, bytes(400), pages=pages, **variant)) == Layout(pages, False, 50)


def with_tags(tags, height=5000):
    return tiff({**GRAY, 256: (4, 100), 257: (4, height), **tags})


@pytest.mark.parametrize(
    ("tags", "rows"),
    [
        ({278: (4, 64)}, 64),
        ({278: (4, 2**32 - 1)}, 128),  # strips this high are decoded row by row
        ({}, 128),
        ({278: (4, 4000), 284: (3, 2)}, 4000),  # planes in strips are not
        ({278: (4, 4000), 262: (3, 6)}, 4000),  # nor is YCbCr
        ({278: (4, 2**32 - 1), 284: (3, 2)}, 5000),
        ({322: (3, 256), 323: (3, 256)}, 512),
        ({322: (3, 8192), 323: (3, 8192)}, 5000),
    ],
)
def test_rows_that_are_held(tags, rows):
    assert look(with_tags(tags)) == Layout(1, 323 in tags, rows)


def test_tiles():
    assert look(tiled_tiff(1000, 900, 128)) == Layout(1, True, 256)


def test_more_pages_than_allowed():
    data = gray_tiff(8, 8, bytes(64), pages=100)
    assert look(data, 100).pages == 100
    with pytest.raises(TooLargeImage, match="99 pages"):
        look(data, 99)


def test_a_directory_that_names_itself_next_is_one_page():
    data = bytearray(gray_tiff(8, 8, bytes(64)))
    end = 8 + 2 + 12 * int.from_bytes(data[8:10], "little")
    data[end : end + 4] = (8).to_bytes(4, "little")
    assert look(bytes(data)).pages == 1


def test_the_last_offset_may_be_missing():
    data = gray_tiff(8, 8, bytes(64))
    end = 8 + 2 + 12 * int.from_bytes(data[8:10], "little")
    assert look(data[:end]).pages == 1


@pytest.mark.parametrize(
    "data",
    [
        b"II*\0",
        b"II*\0\0\0\0\0",
        b"II*\0\xff\xff\xff\x7f",
        b"II*\0\x08\0\0\0\0\0",
        b"II*\0\x08\0\0\0\xff\xff" + bytes(100),
        b"MM\0+\0\x08\0\0" + b"\xff" * 8 + bytes(50),
        b"II+\0\x08\0\0\0\x10\0\0\0\0\0\0\0" + b"\xff" * 100,
        gray_tiff(8, 8, bytes(64))[:60],
    ],
)
def test_damaged_directories(data):
    with pytest.raises(BrokenImage):
        look(data)
