"""Scaled JPEGs: dimensions, pixels, truth about damage, and what they cost."""

import functools
import io
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest
import pyvips
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from imaging.encoding import Encoding
from imaging.errors import BrokenImage, NotAnImage, TookTooLong, TooLargeImage
from imaging.feed import WHOLE, Feed
from imaging.limits import Limits
from imaging.scale import boxes
from tests.imaging_files import (
    Counting,
    Failing,
    StorageFailed,
    avif_claiming,
    corners,
    distance,
    gif_of,
    gray_tiff,
    jpeg,
    opened,
    photo,
    png_header,
    quarters,
    saved,
    tiled_tiff,
)

BOXES = ((800, 600), (440, 330), (140, 105), (116, 87))
FINE = Encoding(quality=95)
KINDS = [
    pytest.param("JPEG", {"quality": 95}, id="jpeg"),
    pytest.param("JPEG", {"quality": 95, "progressive": True}, id="progressive jpeg"),
    pytest.param("PNG", {}, id="png"),
    pytest.param("TIFF", {}, id="tiff"),
    pytest.param("TIFF", {"compression": "tiff_lzw"}, id="lzw tiff"),
    pytest.param("TIFF", {"compression": "tiff_adobe_deflate"}, id="deflate tiff"),
    pytest.param("WEBP", {"quality": 95}, id="webp"),
    pytest.param("AVIF", {"quality": 95, "speed": 10}, id="avif"),
    pytest.param("GIF", {}, id="gif"),
]


def scaled(data, width, height, encoding=FINE, **limits):
    return opened(jpeg(io.BytesIO(data), width, height, Limits(**limits), encoding))


PHOTO, SMALL = photo(600, 450), photo(320, 240)


@pytest.mark.parametrize(("kind", "options"), KINDS)
@pytest.mark.parametrize("size", [(600, 450), (420, 315), (140, 105), (50, 300)])
def test_pixels_are_those_of_a_plain_reference(kind, options, size):
    data = saved(PHOTO, kind, **options)
    # Lanczos over all pixels of what Pillow decodes, through the same JPEG. Mean distance in levels: shrinking in the
    # decoder costs the most, 1.1 here, in the fine detail.
    reference = opened(data).convert("RGB").resize(size, Image.Resampling.LANCZOS)
    reference = opened(saved(reference, "JPEG", quality=95, subsampling="4:2:0"))
    assert distance(scaled(data, *size), reference) < 1.5


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 400), st.integers(1, 400), st.data())
def test_dimensions_are_exactly_those_asked_for(width, height, data):
    size = data.draw(st.integers(1, width)), data.draw(st.integers(1, height))
    for kind in ("JPEG", "PNG", "WEBP"):
        assert scaled(saved(Image.new("L", (width, height)), kind), *size).size == size


@pytest.mark.parametrize(
    ("source", "size"),
    [((1, 1), (1, 1)), ((1, 10_000), (1, 600)), ((10_000, 1), (140, 1)), ((3, 3), (1, 1)), ((10_000, 3), (1, 3))],
)
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF", "WEBP", "GIF"])
def test_tiny_and_narrow_images(kind, source, size):
    image = scaled(saved(Image.new("RGB", source, (200, 100, 50)), kind), *size)
    assert image.size == size
    assert all(abs(got - want) <= 4 for got, want in zip(image.getpixel((0, 0)), (200, 100, 50), strict=True))


TURNED = {1: "rgbw", 2: "grwb", 3: "wbgr", 4: "bwrg", 5: "rbgw", 6: "brwg", 7: "wgbr", 8: "gwrb"}
"""EXIF 2.32, 4.6.5: what rgbw in the corners, row by row, looks like for each orientation."""


@pytest.mark.parametrize("orientation", TURNED)
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_orientations(kind, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"tiffinfo": {274: orientation}} if kind == "TIFF" else {"exif": exif}
    data = saved(quarters(160, 80), kind, **options)
    size = (20, 40) if orientation > 4 else (40, 20)
    image = scaled(data, *size)
    assert (image.size, corners(image)) == (size, TURNED[orientation])
    assert not image.getexif()  # or a viewer would turn it again


def test_a_turned_square_may_be_distorted():
    exif = Image.Exif()
    exif[0x0112] = 6
    image = scaled(saved(quarters(80, 80), "JPEG", exif=exif), 40, 20)
    assert (image.size, corners(image)) == ((40, 20), TURNED[6])


def test_what_is_written():
    exif = Image.Exif()
    exif[0x010E] = "a description"
    data = jpeg(io.BytesIO(saved(PHOTO, "JPEG", exif=exif, comment=b"words", dpi=(300, 300))), 400, 300, Limits())
    image = opened(data)
    assert data.startswith(b"\xff\xd8\xff")
    assert data.endswith(b"\xff\xd9")
    assert b"\xff\xc0" in data  # baseline
    assert b"\xff\xc2" not in data
    assert image.layer[0][1:3] == (2, 2)  # chroma at half of both
    assert image.layer[1][1:3] == (1, 1)
    assert not set(image.info) & {"exif", "comment", "icc_profile", "xmp"}
    assert opened(jpeg(io.BytesIO(saved(PHOTO, "PNG")), 400, 300, Limits(), Encoding(quality=40))).size == (400, 300)


def test_quality_is_a_setting():
    data = saved(PHOTO, "PNG")
    sizes = [len(jpeg(io.BytesIO(data), 400, 300, Limits(), Encoding(quality=quality))) for quality in (30, 75, 95)]
    assert sizes == sorted(sizes)
    assert sizes[2] > 2 * sizes[0]


class TestDamage:
    """Never a plausible picture of half the bytes."""

    @pytest.mark.parametrize(("kind", "options"), KINDS)
    @pytest.mark.parametrize("part", [0.3, 0.5, 0.9])
    def test_cut_off(self, kind, options, part):
        data = saved(SMALL, kind, **options)
        for make in (lambda r: jpeg(r, 64, 48, Limits()), lambda r: boxes(r, BOXES, Limits())):
            with pytest.raises(BrokenImage):
                make(io.BytesIO(data[: int(part * len(data))]))

    @pytest.mark.parametrize("compress", [None, zlib.compress])
    @pytest.mark.parametrize("part", [0.3, 0.5, 0.9])
    def test_a_tiled_tiff_cut_off_behind_its_directory(self, compress, part):
        data = tiled_tiff(1000, 800, 256, compress)
        assert scaled(data, 100, 80).size == (100, 80)
        with pytest.raises(BrokenImage):
            scaled(data[: int(part * len(data))], 100, 80)

    def test_tiles_that_can_not_be_unpacked(self):
        data = bytearray(tiled_tiff(1000, 800, 256, zlib.compress))
        data[-2000:-1000] = bytes(1000)
        with pytest.raises(BrokenImage):
            scaled(bytes(data), 100, 80)

    @pytest.mark.parametrize("kind", ["PNG", "TIFF"])
    def test_checksums_and_codes_are_looked_at(self, kind):
        data = bytearray(saved(SMALL, kind, **({"compression": "tiff_lzw"} if kind == "TIFF" else {})))
        middle = len(data) // 2
        data[middle : middle + 8] = bytes(byte ^ 255 for byte in data[middle : middle + 8])
        with pytest.raises(BrokenImage):
            scaled(bytes(data), 64, 48)

    @pytest.mark.parametrize("data", [gray_tiff(300, 200, bytes(60_000)), tiled_tiff(300, 200, 128)])
    def test_a_tiff_that_libtiff_only_warns_of_is_sound(self, data):
        unsorted = data[:10] + data[22:34] + data[10:22] + data[34:]
        assert scaled(unsorted, 30, 20).size == (30, 20)

    def test_a_gif_cut_off_behind_its_first_frame(self):
        data = gif_of(3)[:-10]
        assert opened(jpeg(io.BytesIO(data), 8, 8, Limits())).size == (8, 8)
        with pytest.raises(BrokenImage):
            boxes(io.BytesIO(data), BOXES, Limits())

    def test_what_is_no_image(self):
        for data in (b"", b"hello", bytes(1000)):
            with pytest.raises(NotAnImage):
                scaled(data, 1, 1)

    def test_headers_without_pixels(self):
        for data in (png_header(500, 500), avif_claiming(500, 500), gray_tiff(500, 500, b"")):
            with pytest.raises(BrokenImage):
                scaled(data, 50, 50)


@functools.cache
def large(kind):
    """More than is read in one go."""
    if kind == "tiles":
        return tiled_tiff(4200, 4200, 256)
    noise = Image.effect_noise((4200, 4200), 200)
    return saved(noise, kind, **{"PNG": {"compress_level": 0}, "JPEG": {"quality": 100}, "TIFF": {}}[kind])


class TestReader:
    @pytest.mark.parametrize(("kind", "options"), KINDS)
    def test_a_failure_in_a_small_file_comes_back(self, kind, options):
        data = saved(SMALL, kind, **options)
        with pytest.raises(StorageFailed):
            jpeg(Failing(data, len(data) // 2), 64, 48, Limits())

    @pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF", "tiles"])
    def test_a_failure_in_the_middle_of_a_large_file_comes_back(self, kind):
        data = large(kind)
        assert len(data) > WHOLE
        with pytest.raises(StorageFailed):
            jpeg(Failing(data, len(data) // 2), 64, 48, Limits())
        with pytest.raises(StorageFailed):
            boxes(Failing(data, len(data) - 1000), BOXES, Limits())

    @pytest.mark.parametrize("kind", ["JPEG", "TIFF", "tiles"])
    def test_a_large_file_takes_few_reads(self, kind):
        reader = Counting(large(kind))
        jpeg(reader, 64, 48, Limits())
        assert reader.bytes_read <= 1.1 * len(reader.getvalue())
        assert reader.reads <= len(reader.getvalue()) / (400 * 1024) + 20

    def test_the_reader_is_left_open_and_may_stand_anywhere(self):
        reader = io.BytesIO(saved(PHOTO, "PNG"))
        reader.seek(77)
        assert opened(jpeg(reader, 64, 48, Limits())).size == (64, 48)
        assert not reader.closed

    def test_libvips_gives_no_reason_when_another_thread_took_it(self):
        with pytest.raises(BrokenImage, match=r"^the decoder gave no reason$"), Feed(io.BytesIO(b"x")):
            raise pyvips.Error("unable to call")

    def test_several_threads_at_once(self):
        data = large("tiles")
        with ThreadPoolExecutor(4) as pool:
            made = list(pool.map(lambda size: scaled(data, size, size).size, [40, 50, 60, 70] * 2))
        assert made == [(size, size) for size in [40, 50, 60, 70] * 2]


class TestBoxes:
    def test_each_box_is_filled_and_nothing_is_enlarged(self):
        for source in ((3000, 2000), (700, 500), (300, 900), (100, 50), (1, 1), (5000, 2)):
            made = boxes(io.BytesIO(saved(Image.new("RGB", source), "PNG")), BOXES, Limits())
            assert list(made) == list(BOXES)
            for (wide, high), data in made.items():
                scale = min(1, wide / source[0], high / source[1])
                assert opened(data).size == tuple(max(1, round(side * scale)) for side in source)

    def test_smaller_ones_are_like_those_made_directly(self):
        data = saved(photo(2000, 1500), "JPEG", quality=95)
        for box, made in boxes(io.BytesIO(data), BOXES, Limits(), FINE).items():
            assert distance(opened(made), scaled(data, *box)) < 1.5

    def test_one_decoding_serves_all(self):
        data = large("TIFF")
        reader = Counting(data)
        boxes(reader, BOXES, Limits())
        assert reader.bytes_read <= 1.1 * len(data)

    def test_orientation_holds_for_all(self):
        exif = Image.Exif()
        exif[0x0112] = 6
        made = boxes(io.BytesIO(saved(quarters(1600, 800), "JPEG", exif=exif)), BOXES, Limits())
        assert [opened(data).size for data in made.values()] == [(300, 600), (165, 330), (53, 105), (44, 87)]
        assert {corners(opened(data)) for data in made.values()} == {TURNED[6]}


class TestLimits:
    def test_they_hold_for_every_way_in(self):
        data = saved(Image.new("RGB", (100, 100)), "PNG")
        for make in (
            lambda limits: jpeg(io.BytesIO(data), 10, 10, limits),
            lambda limits: boxes(io.BytesIO(data), BOXES, limits),
        ):
            assert make(Limits(streamed_pixels=10_000))
            with pytest.raises(TooLargeImage):
                make(Limits(streamed_pixels=9_999))

    @pytest.mark.parametrize("orientation", [1, 6])
    def test_time(self, orientation):
        exif = Image.Exif()
        exif[0x0112] = orientation
        data = saved(PHOTO, "JPEG", exif=exif)
        for make in (
            lambda limits: jpeg(io.BytesIO(data), 10, 10, limits),
            lambda limits: boxes(io.BytesIO(data), BOXES, limits),
        ):
            assert make(Limits())
            with pytest.raises(TookTooLong, match="longer than 0 s"):
                make(Limits(seconds=0))

    def test_time_for_the_look_at_measures(self):
        data = pyvips.Image.black(9000, 9000).linear(1, [7]).cast("float").tiffsave_buffer(compression="deflate")
        with pytest.raises(TookTooLong, match=r"longer than 0\.01 s"):
            scaled(data, 10, 10, seconds=0.01)

    def test_time_in_the_middle_of_decoding(self):
        data = saved(Image.new("L", (12_000, 12_000)), "JPEG")  # takes much longer than its header
        with pytest.raises(TookTooLong, match=r"longer than 0\.01 s"):
            scaled(data, 10, 10, seconds=0.01)


MEASURE = """
import sys
from imaging import libvips
from imaging.limits import Limits
from imaging.scale import boxes
libvips.configure(1)
with open(sys.argv[1], "rb") as file:
    boxes(file, [(800, 600), (116, 87)], Limits())
with open("/proc/self/status") as status:
    print(next(line for line in status if line.startswith("VmHWM")))
"""


def megabytes(path):
    """The most memory that a process takes which makes boxes of this file."""
    run = subprocess.run([sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True)
    return int(run.stdout.split()[1]) // 1024


def test_memory_is_flat(tmp_path):
    path = tmp_path / "large"
    Image.new("RGB", (12_000, 8_000)).save(path, "JPEG")  # 288 MB of pixels
    assert megabytes(path) < 150


@pytest.mark.stress
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("tiles.tif", {"tile": True, "tile_width": 512, "tile_height": 512, "compression": "deflate"}),
        ("strips.tif", {"compression": "lzw"}),
        ("one.jpg", {"Q": 50}),
        ("one.png", {"compression": 1}),
    ],
)
def test_memory_is_flat_for_two_gigapixels(tmp_path, name, options):
    path = tmp_path / name
    pyvips.Image.black(60_000, 33_000, bands=3).copy(interpretation="srgb").write_to_file(str(path), **options)
    assert megabytes(path) < 600  # of 5.9 GB; two rows of these tiles are 184 MB, kept twice
