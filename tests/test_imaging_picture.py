"""What an image is, from its header alone; and what is refused there."""

import io

import pytest
from PIL import Image

from imaging.errors import BrokenImage, NotAnImage, TooLargeImage
from imaging.limits import Limits
from imaging.picture import inspect
from tests.imaging_files import (
    Counting,
    Failing,
    StorageFailed,
    avif_claiming,
    gif_of,
    gray_tiff,
    jpeg_claiming,
    plain,
    png_header,
    quarters,
    saved,
    tiff,
    tiled_tiff,
)

IMAGE = quarters(64, 32)
NO_IMAGES = (
    *(b"", b"\0" * 5000, b"hello", b"1,2\n3,4\n", b"P6 2 2 255 " + bytes(12), b"BM" + bytes(60)),
    *(b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"\x08\xf2\xa6\xb6" + bytes(100), b"RIFF\0\0\0\0WAVE"),
    *(b"\0\0\0\x18ftypmp42\0\0\0\0", b"\xff\xd8", b"\x89PNG", b"GIF8"),
)
STARTS = (
    *(b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"RIFF\x10\0\0\0WEBPVP8 ", b"II*\0", b"MM\0*"),
    *(b"II+\0\x08\0\0\0", b"\0\0\0\x1cftypavif\0\0\0\0avifmif1miaf", b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"),
)
GARBAGE = bytes(range(256)) * 20


def look(data, **limits):
    return inspect(io.BytesIO(data), Limits(**limits))


@pytest.mark.parametrize(
    ("kind", "options", "name", "mime", "whole_frame"),
    [
        ("JPEG", {}, "jpeg", "image/jpeg", False),
        ("JPEG", {"progressive": True}, "jpeg", "image/jpeg", True),
        ("PNG", {}, "png", "image/png", False),
        ("GIF", {}, "gif", "image/gif", True),
        ("WEBP", {}, "webp", "image/webp", True),
        ("TIFF", {}, "tiff", "image/tiff", False),
        ("TIFF", {"compression": "tiff_lzw"}, "tiff", "image/tiff", False),
        ("AVIF", {}, "avif", "image/avif", True),
    ],
)
def test_formats(kind, options, name, mime, whole_frame):
    picture = look(saved(IMAGE, kind, **options))
    assert (picture.format, picture.mime, picture.width, picture.height) == (name, mime, 64, 32)
    assert (picture.whole_frame, picture.pages, picture.orientation, picture.tiled) == (whole_frame, 1, 1, False)


def test_an_interlaced_png_is_decoded_whole():
    assert look(png_header(10, 10, interlaced=True)).whole_frame


def test_a_jpeg_in_several_scans_is_decoded_whole_though_not_progressive():
    # one scan for each component: the frame is baseline (FFC0), and libjpeg has to keep all coefficients all the same
    data = bytearray(plain(3, 90, 64).jpegsave_buffer(subsample_mode="off"))
    scan = data.index(b"\xff\xda")
    data[scan : scan + 14] = b"\xff\xda\0\x08\x01\x01\x00\x00\x3f\0"
    assert look(bytes(data)).whole_frame


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_dimensions_are_as_displayed(kind, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    picture = look(saved(IMAGE, kind, **({"tiffinfo": {274: orientation}} if kind == "TIFF" else {"exif": exif})))
    assert picture.orientation == orientation
    assert (picture.width, picture.height) == ((32, 64) if orientation > 4 else (64, 32))
    assert picture.stored == (64, 32)


@pytest.mark.parametrize("orientation", [0, 9, 65535])
def test_a_senseless_orientation_is_none(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    assert look(saved(IMAGE, "JPEG", exif=exif)).orientation == 1


def test_pages_of_a_tiff():
    assert look(saved(IMAGE, "TIFF", save_all=True, append_images=[IMAGE, IMAGE])).pages == 3


def test_an_animation_is_one_page():
    for kind in ("GIF", "WEBP"):
        picture = look(saved(IMAGE, kind, save_all=True, append_images=[Image.new("RGB", IMAGE.size)]))
        assert (picture.pages, picture.width, picture.height) == (1, 64, 32)


def test_an_ultra_hdr_jpeg_or_any_other_is_read_as_the_jpeg_it_is():
    data = saved(IMAGE, "MPO", save_all=True, append_images=[IMAGE])
    assert look(data).format == "jpeg"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(avif_claiming(16384, 16384), id="avif"),
        pytest.param(png_header(20_000, 20_000, interlaced=True), id="interlaced png"),
        pytest.param(jpeg_claiming(20_000, 20_000, progressive=True), id="progressive jpeg"),
        pytest.param(gif_of(1, 20_000, 20_000), id="gif"),
        pytest.param(png_header(50_000, 50_000), id="png"),
        pytest.param(png_header(20_000_000, 90), id="png with long rows"),
        pytest.param(jpeg_claiming(65_500, 65_500), id="jpeg"),
        pytest.param(gray_tiff(50_000, 50_000, b""), id="tiff"),
        pytest.param(gray_tiff(8, 8, bytes(64), pages=10_001), id="tiff of many pages"),
        pytest.param(
            tiff(
                {256: (4, 20_000), 257: (4, 20_000), 258: (3, (8,) * 3), 259: (3, 1), 262: (3, 2)}
                | {273: (4, (0,) * 3), 277: (3, 3), 278: (4, 20_000), 279: (4, (20_000**2,) * 3), 284: (3, 2)}
            ),
            id="planes",
        ),
    ],
)
def test_bombs_are_refused_from_the_header(data):
    # the pixels are missing, so decoding any would be a BrokenImage
    with pytest.raises(TooLargeImage, match=r"limit|more than"):
        look(data)


@pytest.mark.parametrize(
    ("data", "whole_frame"),
    [
        (avif_claiming(10_000, 10_000), True),
        (png_header(10_000, 10_000, interlaced=True), True),
        (jpeg_claiming(10_000, 10_000, progressive=True), True),
        (jpeg_claiming(44_000, 45_000), False),
        (png_header(44_000, 45_000), False),
        (gray_tiff(44_000, 45_000, b""), False),
        (tiled_tiff(10_000, 10_000, 256), False),
    ],
)
def test_what_the_limits_allow(data, whole_frame):
    assert look(data).whole_frame == whole_frame


def test_a_tile_row_counts_as_held():
    # 2,000,000 pixels in all; two rows of tiles hold 512,000 of them
    data = tiled_tiff(1000, 2000, 256)
    assert look(data, whole_frame_pixels=512_000).tiled
    with pytest.raises(TooLargeImage, match="512 rows"):
        look(data, whole_frame_pixels=511_999)


def test_the_encoded_bytes_of_whole_frame_formats_are_limited():
    data = saved(IMAGE, "WEBP", lossless=True)
    assert look(data, whole_frame_bytes=len(data)).format == "webp"
    with pytest.raises(TooLargeImage, match="bytes of webp"):
        look(data, whole_frame_bytes=len(data) - 1)


def test_only_the_header_is_read():
    noise = Image.effect_noise((3000, 2000), 90)
    for data in (
        saved(noise, "TIFF"),
        saved(noise, "PNG"),
        saved(noise, "JPEG", quality=95),
        tiled_tiff(3000, 2000, 256),
    ):
        reader = Counting(data)
        inspect(reader, Limits())
        assert reader.reads <= 4
        assert reader.bytes_read <= 400_000 < len(data)


@pytest.mark.parametrize("data", NO_IMAGES)
def test_what_is_no_image(data):
    with pytest.raises(NotAnImage):
        look(data)


def test_an_empty_file_is_called_that():
    with pytest.raises(NotAnImage, match="empty"):
        look(b"")


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("rest", [b"", b"\0", GARBAGE, GARBAGE[::-1], bytes(5000), b"\xff" * 5000])
def test_garbage_behind_a_true_beginning(start, rest):
    with pytest.raises((BrokenImage, TooLargeImage)):
        look(start + rest)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WEBP", "TIFF", "AVIF"])
def test_the_readers_error_comes_back(kind):
    with pytest.raises(StorageFailed):
        inspect(Failing(saved(IMAGE, kind), 0), Limits())


def test_a_reader_that_fails_to_seek():
    class Lost(io.BytesIO):
        def seek(self, offset, whence=0):
            raise StorageFailed

    with pytest.raises(StorageFailed):
        inspect(Lost(saved(IMAGE, "PNG")), Limits())
