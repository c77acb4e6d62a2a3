"""The IIIF pipeline: its pixels against a plain computation on the whole image, and the truth of colours."""

import io
import struct

import imagecodecs
import numpy
import pytest
import pyvips
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageCms, ImageOps

from imaging.encoding import Encoding
from imaging.errors import BadRequest, NoSuchPage
from imaging.limits import Limits
from imaging.outputs import outputs
from imaging.picture import inspect
from imaging.render import render
from imaging.request import parse
from tests.imaging_files import Counting, distance, gif_of, gray_tiff, opened, photo, quarters, saved, tiff

FINE = Encoding(quality=95)


def order(data, path, limits, page=1):
    picture = inspect(io.BytesIO(data), limits, page)
    bounds = limits.bounds(picture.width, picture.height)
    return parse(3, *path.split("/")).resolve(picture.width, picture.height, bounds)


def made(data, path, encoding=FINE, page=1, limits=None):
    limits = limits or Limits()
    return render(io.BytesIO(data), order(data, path, limits, page), limits, encoding, page=page)


def pixels(*arguments, **options):
    return opened(made(*arguments, **options))


def turned_jpeg(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    return saved(photo(417, 299), "JPEG", quality=97, subsampling=0, exif=exif)


SOURCES = {
    "png": saved(photo(417, 299), "PNG"),
    "webp": saved(photo(417, 299), "WEBP", lossless=True),
    "tiff": saved(photo(417, 299), "TIFF"),
    **{f"jpeg {orientation}": turned_jpeg(orientation) for orientation in range(1, 9)},
}


def plainly(data, rect, size, degrees, mirrored):
    """The same computed on the whole image, cut and turned by libvips, and scaled by Pillow's filters."""
    whole = pyvips.Image.new_from_buffer(data, "").autorot().extract_area(*rect)
    image = opened(whole.pngsave_buffer())
    for side in ((size[0], image.height), size):
        kernel = Image.Resampling.LANCZOS if side <= image.size else Image.Resampling.BICUBIC
        image = image.resize(side, kernel)
    image = ImageOps.mirror(image) if mirrored else image
    return image.rotate(-degrees, expand=True)


TOLERANCE = 4


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(SOURCES)), st.data())
def test_pixels_are_those_of_a_plain_computation(name, draw):
    data = SOURCES[name]
    picture = inspect(io.BytesIO(data), Limits())
    x, y = draw.draw(st.integers(0, picture.width - 20)), draw.draw(st.integers(0, picture.height - 20))
    w, h = draw.draw(st.integers(20, picture.width - x)), draw.draw(st.integers(20, picture.height - y))
    size = draw.draw(st.integers(8, 2 * w)), draw.draw(st.integers(8, 2 * h))
    degrees, mirrored = draw.draw(st.sampled_from([0, 90, 180, 270])), draw.draw(st.booleans())
    path = f"{x},{y},{w},{h}/^{size[0]},{size[1]}/{'!' if mirrored else ''}{degrees}/default.png"
    result, reference = pixels(data, path), plainly(data, (x, y, w, h), size, degrees, mirrored)
    # Mean distance in levels of 255, in a picture with detail in each pixel. libvips shrinks in blocks first, and a
    # JPEG or WebP may have been shrunk by its decoder. The worst of thousands is at 3, of results of few pixels.
    assert distance(result, reference) < TOLERANCE


@pytest.mark.parametrize("suffix", ["jpg", "png", "webp", "tif", "gif", "avif"])
@pytest.mark.parametrize("path", ["full/max/0/default", "30,20,200,100/100,/90/default", "full/200,/0/gray"])
def test_every_format_shows_the_same(suffix, path):
    reference = pixels(SOURCES["png"], f"{path}.png").convert("RGB")
    image = pixels(SOURCES["png"], f"{path}.{suffix}").convert("RGB")
    assert distance(image, reference) < (6 if suffix == "gif" else 3)


def test_jp2_and_pdf_are_read_back():
    array = imagecodecs.jpeg2k_decode(made(SOURCES["png"], "full/200,/0/default.jp2"))
    assert distance(Image.fromarray(array), pixels(SOURCES["png"], "full/200,/0/default.png")) < 3
    document = made(SOURCES["png"], "full/max/0/default.pdf")
    assert (inspect(io.BytesIO(document), Limits()).format, document[:5]) == ("pdf", b"%PDF-")
    assert distance(pixels(document, "full/417,/0/default.png").crop((0, 0, 417, 299)), photo(417, 299)) < 12


def test_all_formats_are_written_where_the_extras_are():
    assert list(outputs()) == ["jpg", "png", "webp", "tif", "gif", "avif", "jp2", "pdf"]


class TestRotation:
    def test_any_angle_has_its_bounding_box(self):
        image = pixels(saved(Image.new("RGB", (200, 100), (200, 0, 0)), "PNG"), "full/max/45/default.png")
        assert image.size == pytest.approx((212, 212), abs=2)
        assert image.mode == "RGBA"
        assert image.getpixel((0, 0))[3] == 0
        assert image.getpixel((106, 106)) == (200, 0, 0, 255)

    def test_in_jpeg_black_is_beside_it(self):
        data = saved(Image.new("RGB", (200, 100), (200, 0, 0)), "PNG")
        image = pixels(data, "full/max/45/default.jpg", FINE)
        assert distance(image.crop((0, 0, 8, 8)), Image.new("RGB", (8, 8))) < 3

    def test_it_is_clockwise_and_mirrored_before(self):
        data = saved(quarters(64, 32), "PNG")
        colours = {"0": "rgbw", "90": "brwg", "180": "wbgr", "!0": "grwb", "!90": "wgbr"}
        names = {(255, 0, 0): "r", (0, 255, 0): "g", (0, 0, 255): "b", (255, 255, 255): "w"}
        for rotation, wanted in colours.items():
            image = pixels(data, f"full/max/{rotation}/default.png")
            wide, high = image.size
            spots = ((2, 2), (wide - 3, 2), (2, high - 3), (wide - 3, high - 3))
            assert "".join(names[image.getpixel(spot)] for spot in spots) == wanted


class TestColour:
    """What others get wrong."""

    P3 = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()

    def odd_profile(self):
        """sRGB's profile with red and blue exchanged: what isn't converted is seen at once."""
        profile = bytearray(self.P3)
        table = {bytes(profile[at : at + 4]): at for at in range(132, 132 + 12 * profile[131], 12)}
        red, blue = table[b"rXYZ"], table[b"bXYZ"]
        profile[red : red + 4], profile[blue : blue + 4] = b"bXYZ", b"rXYZ"
        return bytes(profile)

    def test_the_same_pixel_whatever_region_asks_for_it(self):
        data = saved(photo(300, 200), "PNG", icc_profile=self.odd_profile())
        whole = pixels(data, "full/max/0/default.png")
        assert distance(whole, photo(300, 200)) > 20  # the profile is honoured
        for x, y, w, h in ((0, 0, 300, 100), (7, 11, 130, 90), (299, 199, 1, 1), (150, 0, 150, 200)):
            part = pixels(data, f"{x},{y},{w},{h}/max/0/default.png")
            assert list(part.getdata()) == list(whole.crop((x, y, x + w, y + h)).getdata())

    @pytest.mark.parametrize("profile", [b"x", bytes(500), b"garbage" * 100])
    def test_a_broken_profile_is_dropped(self, profile):
        data = saved(photo(60, 40), "PNG", icc_profile=profile)
        assert distance(pixels(data, "full/max/0/default.png"), photo(60, 40)) == 0

    def test_a_profile_of_another_colour_space_is_dropped(self):
        gray = saved(Image.new("L", (20, 20), 90), "PNG", icc_profile=self.P3)
        assert pixels(gray, "full/max/0/default.png").getpixel((5, 5)) in (90, (90, 90, 90))

    def test_cmyk_without_a_profile(self):
        image = Image.new("CMYK", (20, 20), (0, 0, 0, 0))
        image.paste((0, 255, 255, 0), (0, 0, 10, 20))
        for kind in ("TIFF", "JPEG"):
            shown = pixels(saved(image, kind), "full/max/0/default.png")
            assert min(shown.getpixel((15, 10))) > 250, kind
            red, green, blue = shown.getpixel((3, 10))
            assert red > 180 and green < 80 and blue < 80, kind

    @pytest.mark.parametrize("bits", [1, 4, 8, 16])
    def test_min_is_white(self, bits):
        row = bytes([0] * bits + [255] * bits)  # eight pixels of the least value, eight of the largest
        size = {256: (4, 16), 257: (4, 1), 273: (4, 0), 278: (4, 1), 279: (4, len(row))}
        entries = {258: (3, bits), 259: (3, 1), 277: (3, 1)} | size
        for photometric, first, last in ((0, 255, 0), (1, 0, 255)):
            shown = pixels(tiff(entries | {262: (3, photometric)}, row), "full/max/0/gray.png")
            top = 257 if bits == 16 else 1
            assert [shown.getpixel((x, 0)) for x in (2, 13)] == [first * top, last * top]

    def test_16_bits_are_kept_for_png_and_tif(self):
        levels = numpy.arange(65536, dtype="uint16").reshape(256, 256)
        data = pyvips.Image.new_from_array(levels).copy(interpretation="grey16").tiffsave_buffer()
        for suffix in ("png", "tif"):
            back = pyvips.Image.new_from_buffer(made(data, f"full/max/0/default.{suffix}"), "")
            assert (back.format, numpy.array_equal(back.numpy(), levels)) == ("ushort", True)
        part = pyvips.Image.new_from_buffer(made(data, "10,10,100,100/max/0/default.png"), "")
        assert numpy.array_equal(part.numpy(), levels[10:110, 10:110])
        assert pixels(data, "full/max/0/default.jpg").mode == "L"

    @pytest.mark.parametrize(
        ("kind", "numbers", "levels"),
        [
            ("float", [0, 0.25, 0.5, 0.75], [0, 64, 128, 191]),  # a fraction of white
            ("float", [0, 100, 50, 255], [0, 100, 50, 255]),
            ("float", [-1000, 0, 3000, 1000], [0, 64, 255, 128]),
            ("char", [-128, 127, 0, 0], [0, 255, 128, 128]),
            ("short", [-100, 0, 300, 100], [0, 64, 255, 128]),
            ("int", [0, 1000, 4000, 2000], [0, 64, 255, 128]),
            ("float", [7, 7, 7, 7], [255] * 4),
            ("float", [0, 0, 0, 0], [0] * 4),
        ],
    )
    def test_floats_and_signed_numbers_are_scaled_to_what_can_be_seen(self, kind, numbers, levels):
        data = pyvips.Image.new_from_array([numbers]).cast(kind).tiffsave_buffer()
        for x, level in enumerate(levels):
            assert pixels(data, "full/max/0/default.png").getpixel((x, 0)) == pytest.approx(level, abs=1)
            # the same pixel whatever region asks for it
            assert pixels(data, f"{x},0,1,1/max/0/gray.png").getpixel((0, 0)) == pytest.approx(level, abs=1)

    def test_linear_light_in_floats(self):
        data = pyvips.Image.black(4, 4, bands=3).linear(1, [1, 0.2140, 7]).cast("float").copy(interpretation="scrgb")
        shown = pixels(data.tiffsave_buffer(), "full/max/0/default.png").getpixel((0, 0))
        assert shown == pytest.approx((255, 127, 255), abs=2)

    def test_alpha_is_flattened_for_jpeg_and_kept_elsewhere(self):
        image = Image.new("RGBA", (40, 40), (0, 0, 0, 0))
        image.paste((200, 0, 0, 255), (0, 0, 20, 40))
        data = saved(image, "PNG")
        flat = pixels(data, "full/20,/0/default.jpg", Encoding(quality=95, background=(0, 255, 0)))
        assert distance(flat.crop((14, 4, 18, 16)), Image.new("RGB", (4, 12), (0, 255, 0))) < 4
        for suffix in ("png", "webp", "tif", "avif"):
            kept = pixels(data, f"full/20,/0/default.{suffix}").convert("RGBA")
            assert kept.getpixel((17, 10))[3] == 0
            assert kept.getpixel((3, 10)) == pytest.approx((200, 0, 0, 255), abs=6)
            assert kept.getpixel((9, 10))[0] > 150  # no black from transparent pixels

    @pytest.mark.parametrize("suffix", ["png", "tif", "jpg"])
    def test_bitonal(self, suffix):
        image = pixels(SOURCES["png"], f"full/100,/0/bitonal.{suffix}").convert("L")
        assert sum(1 for level in image.getdata() if 12 < level < 243) < (1 if suffix != "jpg" else 2500)
        assert len(set(image.getdata())) > 1

    def test_gray_and_color(self):
        assert pixels(SOURCES["png"], "full/9,/0/gray.png").mode == "L"
        assert pixels(saved(Image.new("L", (9, 9)), "PNG"), "full/max/0/color.png").mode == "RGB"


class TestMetadata:
    def source(self):
        exif = Image.Exif()
        exif[0x8298], exif[0x010E], exif[0x013B] = "(c) 1899 Museum", "a secret", "A. Painter"
        return saved(photo(60, 40), "JPEG", exif=exif, dpi=(300, 300))

    @pytest.mark.parametrize("suffix", ["jpg", "png", "webp"])
    def test_copyright_alone_is_kept(self, suffix):
        exif = pixels(self.source(), f"full/max/0/default.{suffix}").getexif()
        assert (exif[0x8298], exif[0x013B], exif.get(0x010E)) == ("(c) 1899 Museum", "A. Painter", None)

    def test_all_or_nothing_are_settings(self):
        assert pixels(self.source(), "full/max/0/default.jpg", Encoding(metadata="all")).getexif()[0x010E] == "a secret"
        assert not pixels(self.source(), "full/max/0/default.jpg", Encoding(metadata="none")).getexif()

    def test_rights_are_read(self):
        exif = Image.Exif()
        exif[0x8298] = "CC BY, https://creativecommons.org/licenses/by/4.0/"
        data = saved(photo(60, 40), "JPEG", exif=exif)
        assert inspect(io.BytesIO(data), Limits()).rights == "http://creativecommons.org/licenses/by/4.0/"
        xmp = b"<x><a rdf:resource='http://rightsstatements.org/page/InC/1.0/'/></x>"
        data = saved(photo(60, 40), "JPEG", xmp=xmp)
        assert inspect(io.BytesIO(data), Limits()).rights == "http://rightsstatements.org/vocab/InC/1.0/"
        assert inspect(io.BytesIO(self.source()), Limits()).rights is None


class TestEdges:
    def test_tiny_pictures_and_far_scales(self):
        for source in ((1, 1), (1, 5000), (5000, 1), (3, 2)):
            data = saved(Image.new("RGB", source, (9, 99, 199)), "PNG")
            for path in ("full/^300,200/0/default.png", "full/1,1/0/default.png", "square/^pct:1000/0/default.png"):
                assert pixels(data, path).getpixel((0, 0)) == pytest.approx((9, 99, 199), abs=1)

    def test_a_scaled_edge_is_neither_cropped_nor_doubled(self):
        data = saved(Image.new("RGB", (1025, 1025), (10, 200, 10)), "JPEG", quality=95)
        image = pixels(data, "1024,1024,512,512/1,1/0/default.jpg")
        assert image.getpixel((0, 0)) == pytest.approx((10, 200, 10), abs=4)

    def test_a_format_that_is_not_there(self):
        broken = order(SOURCES["png"], "full/max/0/default.jp2", Limits())
        if "jp2" in outputs():
            pytest.skip("imagecodecs is there")
        with pytest.raises(BadRequest, match="can't be written"):
            render(io.BytesIO(SOURCES["png"]), broken, Limits(), FINE)


class TestPages:
    def document(self, pages=5):
        images = [Image.new("RGB", (100 + 10 * page, 80), (40 * page, 0, 0)) for page in range(pages)]
        out = io.BytesIO()
        images[0].save(out, "TIFF", save_all=True, append_images=images[1:])
        return out.getvalue()

    def test_a_page_of_a_tiff(self):
        data = self.document()
        for page in (1, 3, 5):
            image = pixels(data, "full/max/0/default.png", page=page)
            assert (image.size, image.getpixel((5, 5))) == ((90 + 10 * page, 80), (40 * (page - 1), 0, 0))
        for page in (6, 2**31):
            with pytest.raises(NoSuchPage):
                made(data, "full/max/0/default.png", page=page)

    def test_one_page_is_read_and_not_the_whole_file(self):
        images = [Image.effect_noise((2000, 2000), 90)] * 12
        out = io.BytesIO()
        images[0].save(out, "TIFF", save_all=True, append_images=images[1:])
        reader = Counting(out.getvalue())
        wanted = order(out.getvalue(), "full/100,/0/default.jpg", Limits(), page=10)
        render(reader, wanted, Limits(), FINE, page=10)
        assert reader.bytes_read < 0.25 * len(out.getvalue())

    def test_a_page_of_a_pdf(self):
        images = [Image.new("RGB", (200, 100), colour) for colour in ("red", "lime", "blue")]
        out = io.BytesIO()
        images[0].save(out, "PDF", save_all=True, append_images=images[1:], resolution=72)
        data = out.getvalue()
        picture = inspect(io.BytesIO(data), Limits(), page=2)
        assert (picture.pages, picture.width, picture.height) == (3, 556, 278)
        assert pixels(data, "full/50,/0/default.png", page=2).getpixel((20, 10)) == pytest.approx((0, 255, 0), abs=4)
        with pytest.raises(NoSuchPage):
            inspect(io.BytesIO(data), Limits(), page=4)

    def test_one_page_of_a_pdf_is_read_and_not_the_whole_file(self):
        images = [Image.effect_noise((900, 900), 90).convert("RGB") for _ in range(20)]
        out = io.BytesIO()
        images[0].save(out, "PDF", save_all=True, append_images=images[1:], quality=95)
        reader = Counting(out.getvalue())
        assert len(out.getvalue()) > 12_000_000
        assert inspect(reader, Limits(), page=11).pages == 20
        # through blocks with read-ahead; what is small enough for one go is read in one
        assert reader.bytes_read < 0.25 * len(out.getvalue())

    def test_a_huge_page_of_a_pdf_is_drawn_smaller(self):
        data = made(saved(Image.new("L", (10, 10)), "PNG"), "full/max/0/default.pdf").replace(b"10 10]", b"9000 9000]")
        picture = inspect(io.BytesIO(data), Limits())
        assert picture.width * picture.height <= 41_000_000


@pytest.mark.parametrize("big", [False, True])
def test_dimensions_of_jpeg_2000_and_xl_come_from_the_header(big):
    array = numpy.zeros((300, 1000, 3) if big else (8, 16), "uint8")
    for data in (
        imagecodecs.jpeg2k_encode(array, codecformat="jp2"),
        imagecodecs.jpeg2k_encode(array, codecformat="j2k"),
        imagecodecs.jpegxl_encode(array),
        imagecodecs.jpegxl_encode(array, usecontainer=True),
    ):
        reader = Counting(bytes(data) + bytes(1_000_000))
        picture = inspect(reader, Limits())
        assert (picture.width, picture.height) == array.shape[1::-1]
        assert reader.bytes_read < 300_000
        assert pixels(bytes(data), "full/max/0/gray.png").size == array.shape[1::-1]


def test_bombs_in_jpeg_2000_are_refused_from_the_header():
    data = bytearray(imagecodecs.jpeg2k_encode(numpy.zeros((8, 8), "uint8"), codecformat="j2k"))
    data[8:16] = struct.pack(">II", 60_000, 60_000)
    with pytest.raises(Exception, match="beyond the limit"):
        inspect(io.BytesIO(bytes(data)), Limits())


def test_of_a_gif_of_100000_frames_the_first_is_shown_and_nothing_behind_it_read():
    reader = Counting(gif_of(100_000))
    wanted = parse(3, "full", "max", "0", "default.png").resolve(8, 8, Limits().bounds(8, 8))
    assert opened(render(reader, wanted, Limits(), FINE)).size == (8, 8)
    assert reader.bytes_read < len(reader.getvalue()) / 4


def test_a_gray_tiff_stays_gray():
    assert pixels(gray_tiff(30, 20, bytes(600)), "full/max/0/default.jpg").mode == "L"
