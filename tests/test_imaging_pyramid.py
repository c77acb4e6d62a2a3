"""Pyramids: every tile that a viewer asks for is there as it asks for it, and everything else comes from a level."""

import io
import struct
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from imaging.encoding import Encoding
from imaging.errors import BrokenImage, TookTooLong
from imaging.info import scale_factors
from imaging.limits import Limits
from imaging.pyramid import TILE, Pyramid, Tiles, build
from imaging.render import render, render_tiles
from imaging.request import parse
from imaging.size import Bounds
from tests.imaging_files import Failing, StorageFailed, distance, opened, photo, saved

FINE = Encoding(quality=95)


def pyramid(data, width, height, encoding=FINE, limits=None):
    out = io.BytesIO()
    assert build(io.BytesIO(data), limits or Limits(), encoding, out.write)
    packed = out.getvalue()
    return Tiles(Pyramid(io.BytesIO(packed), width, height), lambda start, stop: packed[start:stop])


def exactly(tiles, one):
    """The tile that is just what is asked for, None when no tile is."""
    place = tiles.index.tile(one)
    return None if place is None else tiles.index.data(tiles.read, *place)


def order(path, width, height):
    return parse(3, *path.split("/")).resolve(width, height, Bounds())


PICTURE = 1300, 1025
PHOTO = saved(photo(*PICTURE), "JPEG", quality=95)


@pytest.fixture(scope="module")
def tiles():
    return pyramid(PHOTO, *PICTURE)


def wanted_by_viewers(width, height):
    """Requests for all tiles that info.json leads to."""
    for by in scale_factors(width, height):
        for x in range(0, width, TILE * by):
            for y in range(0, height, TILE * by):
                w, h = min(TILE * by, width - x), min(TILE * by, height - y)
                yield f"{x},{y},{w},{h}/{-(-w // by)},{-(-h // by)}/0/default.jpg"


@pytest.mark.parametrize("size", [(1300, 1025), (1024, 1024), (1025, 1), (1, 3000), (513, 2047)])
def test_every_tile_of_a_viewer_is_there_in_its_size(size):
    there = pyramid(saved(Image.new("RGB", size, (9, 200, 90)), "PNG"), *size)
    asked = [order(path, *size) for path in wanted_by_viewers(*size)]
    assert len(asked) == there.index.tiles
    for one in asked:
        data = exactly(there, one)
        assert data is not None, one
        assert opened(data).size == one.size


def test_a_tile_shows_what_the_pipeline_would(tiles):
    for path in wanted_by_viewers(*PICTURE):
        one = order(path, *PICTURE)
        made = render(io.BytesIO(PHOTO), one, Limits(), FINE)
        assert distance(opened(exactly(tiles, one)), opened(made)) < 5


@pytest.mark.parametrize(
    "path",
    [
        *("1,0,512,512/max/0/default.jpg", "0,0,511,512/max/0/default.jpg", "0,0,512,512/511,512/0/default.jpg"),
        *("0,0,512,512/max/90/default.jpg", "0,0,512,512/max/!0/default.jpg", "0,0,512,512/max/0/gray.jpg"),
        *("0,0,512,512/max/0/default.png", "512,0,1024,1024/512,/0/default.jpg", "full/max/0/default.jpg"),
    ],
)
def test_what_is_no_tile(tiles, path):
    assert exactly(tiles, order(path, *PICTURE)) is None


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_everything_else_comes_from_the_levels(tiles, draw):
    x, y = draw.draw(st.integers(0, PICTURE[0] - 30)), draw.draw(st.integers(0, PICTURE[1] - 30))
    w, h = draw.draw(st.integers(30, PICTURE[0] - x)), draw.draw(st.integers(30, PICTURE[1] - y))
    size = draw.draw(st.integers(8, w)), draw.draw(st.integers(8, h))
    one = order(f"{x},{y},{w},{h}/{size[0]},{size[1]}/0/default.jpg", *PICTURE)
    made = opened(render_tiles(tiles, one, Limits(), FINE))
    assert made.size == size
    assert distance(made, opened(render(io.BytesIO(PHOTO), one, Limits(), FINE))) < 7


def test_a_small_size_reads_little(tiles):
    read = 0

    def counting(start, stop):
        nonlocal read
        data = tiles.read(start, stop)
        read += len(data)
        return data

    one = order("full/200,/0/default.jpg", *PICTURE)
    render_tiles(Tiles(tiles.index, counting), one, Limits(), FINE)
    assert read < len(PHOTO) / 10


def test_gray_and_turned_and_coloured_pictures():
    gray = pyramid(saved(photo(700, 600).convert("L"), "TIFF"), 700, 600)
    assert opened(exactly(gray, order("512,512,188,88/max/0/default.jpg", 700, 600))).mode == "L"
    exif = Image.Exif()
    exif[0x0112] = 6
    turned = pyramid(saved(photo(700, 600), "JPEG", exif=exif, quality=95), 600, 700)
    shown = opened(exactly(turned, order("0,512,512,188/max/0/default.jpg", 600, 700)))
    assert distance(shown, photo(700, 600).transpose(Image.Transpose.ROTATE_270).crop((0, 512, 512, 700))) < 4
    inks = pyramid(saved(Image.new("CMYK", (520, 520), (0, 255, 255, 0)), "TIFF"), 520, 520)
    red, green, blue = opened(exactly(inks, order("0,0,512,512/max/0/default.jpg", 520, 520))).getpixel((99, 99))
    assert red > 180 and green < 80 and blue < 80


def test_transparency_has_no_pyramid():
    out = io.BytesIO()
    data = saved(Image.new("RGBA", (600, 600)), "PNG")
    assert not build(io.BytesIO(data), Limits(), FINE, out.write)
    assert out.getvalue() == b""


class TestFailures:
    def test_of_the_writer_and_of_the_reader_come_back(self):
        class Full(Exception):
            pass

        def write(data):
            raise Full

        with pytest.raises(Full):
            build(io.BytesIO(PHOTO), Limits(), FINE, write)
        with pytest.raises(StorageFailed):
            build(Failing(PHOTO, len(PHOTO) // 2), Limits(), FINE, io.BytesIO().write)

    def test_of_the_image(self):
        with pytest.raises(BrokenImage):
            build(io.BytesIO(PHOTO[: len(PHOTO) // 2]), Limits(), FINE, io.BytesIO().write)
        with pytest.raises(TookTooLong):
            build(io.BytesIO(PHOTO), Limits(seconds=0), FINE, io.BytesIO().write)

    def test_a_damaged_tile_is_no_tile(self, tiles):
        one = order("0,0,512,512/max/0/default.jpg", *PICTURE)

        def flipped(start, stop):
            data = bytearray(tiles.read(start, stop))
            data[300] ^= 1
            return bytes(data)

        for read in (flipped, lambda start, stop: b"", lambda start, stop: tiles.read(start, stop - 200)):
            with pytest.raises(BrokenImage):
                exactly(Tiles(tiles.index, read), one)
            with pytest.raises(BrokenImage):
                render_tiles(Tiles(tiles.index, read), order("full/200,/0/default.jpg", *PICTURE), Limits(), FINE)

    def test_an_index_of_something_else(self):
        packed = io.BytesIO()
        build(io.BytesIO(PHOTO), Limits(), FINE, packed.write)
        for size in ((1300, 1600), (2000, 1025), (500, 500), (5000, 5000)):
            with pytest.raises(BrokenImage):
                Pyramid(packed, *size)
        for other in (b"", b"PK", struct.pack("<I", 0x04034B50) * 9):
            with pytest.raises(BrokenImage):
                Pyramid(io.BytesIO(other), *PICTURE)
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as file:
            file.writestr("p_files/0/0_0.jpg", b"x")
        with pytest.raises(BrokenImage):
            Pyramid(out, *PICTURE)
