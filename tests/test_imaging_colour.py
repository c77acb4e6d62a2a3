"""Colours: what comes out of each kind of pixels. JPEG moves a flat colour by up to 2 levels."""

import io

import pytest
from PIL import Image, ImageCms

from imaging.encoding import Encoding
from imaging.errors import BrokenImage, NotReadHere
from imaging.limits import Limits
from tests.imaging_files import GRAY, jpeg, opened, plain, saved, tiff

SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
LAB = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes()
COLOUR = (10, 100, 200)


def drawn(data, **encoding):
    return opened(jpeg(io.BytesIO(data), 8, 8, Limits(), Encoding(quality=95, **encoding)))


def pixel(data, **encoding):
    return drawn(data, **encoding).convert("RGB").getpixel((3, 3))


def flat(mode, value):
    return Image.new(mode, (16, 16), value)


def deep(bands, value):
    return plain(bands, value, 16, "ushort", "rgb16")


def palette(kind, **options):
    image = flat("P", 1)
    image.putpalette([0, 0, 0, *COLOUR] + [0] * 762)
    return saved(image, kind, **options)


def in_display_p3(bits):
    """COLOUR in Display P3, with that profile embedded: other numbers for the same colour."""
    image = plain(3, list(COLOUR)).icc_transform("p3", input_profile="srgb", depth=bits)
    assert abs(image(0, 0)[0] / (1 if bits == 8 else 257) - COLOUR[0]) > 30
    return image


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        pytest.param(saved(flat("L", 77), "JPEG"), (77,) * 3, id="gray jpeg"),
        pytest.param(saved(flat("L", 77), "PNG"), (77,) * 3, id="gray png"),
        pytest.param(saved(flat("1", 1), "PNG"), (255,) * 3, id="1 bit, white"),
        pytest.param(saved(flat("1", 0), "TIFF"), (0,) * 3, id="1 bit, black"),
        pytest.param(saved(flat("1", 1), "TIFF", compression="group4"), (255,) * 3, id="fax"),
        pytest.param(palette("PNG"), COLOUR, id="palette png"),
        pytest.param(palette("GIF"), COLOUR, id="palette gif"),
        pytest.param(palette("TIFF"), COLOUR, id="palette tiff"),
        pytest.param(saved(flat("I;16", 0x8080), "PNG"), (128,) * 3, id="16 bit gray"),
        pytest.param(deep(3, [0x0A0A, 0x6464, 0xC8C8]).pngsave_buffer(), COLOUR, id="16 bit png"),
        pytest.param(deep(3, [0x0A0A, 0x6464, 0xC8C8]).tiffsave_buffer(), COLOUR, id="16 bit tiff"),
        pytest.param(plain(1, 0.5, 16, "float", "b-w").tiffsave_buffer(), (128,) * 3, id="float tiff"),
        pytest.param(plain(1, 2**31, 16, "uint", "b-w").tiffsave_buffer(), (128,) * 3, id="32 bit tiff"),
        pytest.param(plain(6, [*COLOUR, 1, 2, 3]).tiffsave_buffer(), COLOUR, id="six bands"),
        pytest.param(plain(3, list(COLOUR)).colourspace("lab").tiffsave_buffer(), COLOUR, id="lab tiff"),
        pytest.param(saved(flat("RGB", COLOUR), "TIFF", compression="jpeg"), COLOUR, id="jpeg in tiff"),
        pytest.param(in_display_p3(8).jpegsave_buffer(Q=95), COLOUR, id="profile"),
        pytest.param(in_display_p3(16).pngsave_buffer(), COLOUR, id="profile, 16 bit"),
        pytest.param(saved(flat("RGB", COLOUR), "JPEG", icc_profile=SRGB), COLOUR, id="srgb profile"),
        pytest.param(saved(flat("RGB", COLOUR), "JPEG", icc_profile=b"garbage " * 30), COLOUR, id="no profile at all"),
        pytest.param(saved(flat("RGB", COLOUR), "JPEG", icc_profile=SRGB[:300]), COLOUR, id="half a profile"),
        pytest.param(saved(flat("RGB", COLOUR), "PNG", icc_profile=SRGB[:300]), COLOUR, id="half a profile, png"),
        pytest.param(saved(flat("RGB", COLOUR), "JPEG", icc_profile=LAB), COLOUR, id="another space's profile"),
        pytest.param(saved(flat("L", 77), "JPEG", icc_profile=SRGB), (77,) * 3, id="a colour profile in gray"),
    ],
)
def test_opaque(data, wanted):
    assert all(abs(got - want) <= 3 for got, want in zip(pixel(data), wanted, strict=True))


@pytest.mark.parametrize(("photometric", "wanted"), [(0, 255 - 40), (1, 40)])
def test_white_is_zero_where_the_tiff_says_so(photometric, wanted):
    size = {256: (4, 16), 257: (4, 16), 273: (4, 0), 278: (4, 16), 279: (4, 256)}
    data = tiff({**GRAY, **size, 262: (3, photometric)}, bytes([40]) * 256)
    assert pixel(data)[0] == pytest.approx(wanted, abs=2)


@pytest.mark.parametrize(("photometric", "wanted"), [(0, 255), (1, 0)])
def test_white_is_zero_in_one_bit(photometric, wanted):
    size = {256: (4, 16), 257: (4, 16), 273: (4, 0), 278: (4, 16), 279: (4, 32)}
    assert pixel(tiff({**GRAY, **size, 258: (3, 1), 262: (3, photometric)}, bytes(32)))[0] == wanted


def ycbcr_tiff(y, cb, cr, halved=(1, 1), **more):
    """One colour; ``halved``: pixels across and down that share a chroma."""
    across, down = halved
    data = (bytes([y]) * (across * down) + bytes([cb, cr])) * (16 // across * 16 // down)
    size = {256: (4, 16), 257: (4, 16), 273: (4, 0), 278: (4, 16), 279: (4, len(data)), 277: (3, 3)}
    entries = size | {258: (3, (8, 8, 8)), 259: (3, 1), 262: (3, 6), 530: (3, halved)}
    return tiff(entries | more.get("entries", {}), data, order=more.get("order", "<"), big=more.get("big", False))


def test_64_bits_a_sample_are_refused_and_not_called_broken():
    with pytest.raises(NotReadHere, match="64 bits"):
        pixel(plain(1, 0.5, 16, "double", "b-w").tiffsave_buffer())


class TestYCbCrInTiff:
    """Without JPEG compression, where libvips takes it for RGB."""

    @pytest.mark.parametrize("halved", [(1, 1), (2, 1), (2, 2)])
    @pytest.mark.parametrize(("order", "big"), [("<", False), (">", False), ("<", True)])
    def test_it_becomes_rgb(self, halved, order, big):
        got = pixel(ycbcr_tiff(84, 193, 75, halved, order=order, big=big))
        assert all(abs(one - want) <= 3 for one, want in zip(got, COLOUR, strict=True))

    def test_what_is_beyond_rgb_is_clipped(self):
        assert pixel(ycbcr_tiff(255, 128, 255)) == pytest.approx((255, 164, 255), abs=3)
        assert pixel(ycbcr_tiff(0, 0, 128)) == pytest.approx((0, 44, 0), abs=3)

    def test_coefficients_and_range_are_those_of_the_file(self):
        bt709 = {529: (5, (2126, 10000, 7152, 10000, 722, 10000))}
        narrow = {532: (5, (16, 1, 235, 1, 128, 1, 240, 1, 128, 1, 240, 1))}
        assert pixel(ycbcr_tiff(54, 98, 255, entries=bt709)) == pytest.approx((254, 0, 0), abs=4)
        assert pixel(ycbcr_tiff(235, 128, 128, entries=narrow)) == pytest.approx((255, 255, 255), abs=2)
        assert pixel(ycbcr_tiff(16, 128, 128, entries=narrow)) == pytest.approx((0, 0, 0), abs=2)

    @pytest.mark.parametrize("where", [(5, (2126, 0, 7152, 10000, 722, 10000)), (5, (1, 2)), (4, 9)])
    def test_senseless_coefficients_are_the_usual_ones(self, where):
        got = pixel(ycbcr_tiff(84, 193, 75, entries={529: where}))
        assert all(abs(one - want) <= 3 for one, want in zip(got, COLOUR, strict=True))

    def test_a_range_of_nothing_is_broken(self):
        with pytest.raises(BrokenImage, match="range"):
            pixel(ycbcr_tiff(84, 193, 75, entries={532: (5, (0, 1) * 6)}))

    def test_in_planes_it_is_refused_and_not_mixed_up(self):
        with pytest.raises(NotReadHere, match="planes"):
            pixel(ycbcr_tiff(84, 193, 75, entries={284: (3, 2)}))


@pytest.mark.parametrize("kind", ["JPEG", "TIFF"])
@pytest.mark.parametrize(
    ("ink", "wanted"),
    [
        ((0, 0, 0, 0), (255, 255, 255)),
        ((0, 0, 0, 255), (13, 0, 18)),  # the fallback profile's black
        ((255, 0, 0, 0), (0, 154, 228)),
        ((0, 255, 255, 0), (231, 0, 18)),
    ],
)
@pytest.mark.parametrize("profile", [None, SRGB, b"garbage"])
def test_cmyk_by_the_fallback_profile(kind, ink, wanted, profile):
    got = pixel(saved(flat("CMYK", ink), kind, icc_profile=profile))
    assert all(abs(one - other) <= 8 for one, other in zip(got, wanted, strict=True))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(saved(flat("RGBA", (*COLOUR, 128)), "PNG"), id="png"),
        pytest.param(saved(flat("RGBA", (*COLOUR, 128)), "WEBP", lossless=True), id="webp"),
        pytest.param(saved(flat("RGBA", (*COLOUR, 128)), "TIFF"), id="tiff"),
        pytest.param(deep(4, [*(257 * level for level in COLOUR), 0x8080]).pngsave_buffer(), id="16 bit"),
        pytest.param(in_display_p3(8).bandjoin(128).pngsave_buffer(), id="profile"),
        pytest.param(in_display_p3(16).bandjoin(0x8080).pngsave_buffer(), id="profile, 16 bit"),
    ],
)
def test_half_transparent_on_white_and_on_red(data):
    on_white = [round((level * 128 + 255 * 127) / 255) for level in COLOUR]
    on_red = [round((level * 128 + back * 127) / 255) for level, back in zip(COLOUR, (255, 0, 0), strict=True)]
    assert all(abs(got - want) <= 3 for got, want in zip(pixel(data), on_white, strict=True))
    assert all(abs(got - want) <= 3 for got, want in zip(pixel(data, background=(255, 0, 0)), on_red, strict=True))


@pytest.mark.parametrize(
    "data",
    [
        saved(flat("RGBA", (0, 0, 0, 0)), "PNG"),
        saved(flat("LA", (0, 0)), "PNG"),
        saved(flat("RGBA", (0, 0, 0, 0)), "WEBP", lossless=True),
        palette("PNG", transparency=1),
        palette("GIF", transparency=1),
    ],
)
def test_transparent_is_the_background_and_never_black(data):
    assert pixel(data) == (255, 255, 255)
    assert all(abs(got - want) <= 3 for got, want in zip(pixel(data, background=COLOUR), COLOUR, strict=True))


def test_colours_of_transparent_pixels_do_not_run_into_others():
    image = Image.new("RGBA", (64, 64), (0, 0, 0, 0))
    image.paste((255, 255, 255, 255), (0, 0, 64, 33))  # an odd edge, so that scaling mixes both sides
    assert min(min(level) for level in drawn(saved(image, "PNG")).convert("RGB").getdata()) >= 253


def test_gray_stays_gray_and_carries_no_profile():
    assert drawn(saved(flat("L", 77), "JPEG")).mode == "L"
    assert "icc_profile" not in drawn(saved(flat("RGB", COLOUR), "JPEG", icc_profile=SRGB)).info
