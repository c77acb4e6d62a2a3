"""What users of IIIF servers complain of most, one test for each complaint, over HTTP requests to the application.

The modules' own tests go into detail; here a stranger finds whether a fault that drove him away elsewhere is there.
"""

import hashlib
import io
import threading
from ipaddress import ip_network

import numpy
import pytest
import pyvips
from PIL import Image, ImageCms

from app.options import Options
from imaging.encoding import Encoding
from imaging.info import scale_factors
from imaging.limits import Limits
from imaging.renditions import Renditions
from imaging.request import parse
from ingest.pictures import Pictures
from storage.cache import Cache
from tests.app_stock import Stock
from tests.imaging_files import Counting, distance, gif_of, opened, photo, saved, tiff

SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


class Shelf(Stock):
    """A library that takes in images as a worker does."""

    def take(self, data, mime="image/png", pyramid_pixels=0):
        """The path under which an image is asked for."""
        identifier = self.put(data, url=f"http://source.example/{hashlib.md5(data).hexdigest()}", mime=mime)
        original = self.references.find(identifier)[1]
        pictures = Pictures(
            self.blobs, limits=self.limits, encoding=self.encoding, pyramid_pixels=pyramid_pixels, prepare_boxes=False
        )
        made = pictures.prepare(original.blob)
        self.change(
            original,
            width=made.width,
            height=made.height,
            pages=made.pages,
            pyramid_size=made.pyramid and made.pyramid.size,
            pyramid_checksum=made.pyramid and made.pyramid.sha256,
        )
        return f"/iiif/3/{identifier}"


@pytest.fixture
def shelf(tmp_path):
    return Shelf(tmp_path)


def swapped_profile():
    """sRGB's with red and blue exchanged: what isn't converted is seen at once."""
    profile = bytearray(SRGB)
    table = {bytes(profile[at : at + 4]): at for at in range(132, 132 + 12 * profile[131], 12)}
    red, blue = table[b"rXYZ"], table[b"bXYZ"]
    profile[red : red + 4], profile[blue : blue + 4] = b"bXYZ", b"rXYZ"
    return bytes(profile)


def shown(app, path):
    return opened(app.get(path).body)


def pixels(image):
    return list(image.convert("RGB").getdata())


def test_colour_differs_by_region(shelf):
    source = photo(600, 400)
    app, base = shelf.app(), shelf.take(saved(source, "PNG", icc_profile=swapped_profile()))
    whole = shown(app, f"{base}/full/max/0/default.png")
    assert distance(whole, source) > 20  # the profile counts
    for x, y, w, h in ((0, 0, 600, 200), (17, 31, 300, 111), (599, 399, 1, 1), (0, 200, 600, 200)):
        part = shown(app, f"{base}/{x},{y},{w},{h}/max/0/default.png")
        assert pixels(part) == pixels(whole.crop((x, y, x + w, y + h)))
    large = photo(1100, 700)
    base = shelf.take(saved(large, "JPEG", quality=97, icc_profile=swapped_profile()), "image/jpeg", 700_000)
    whole = shown(app, f"{base}/full/max/0/default.png")
    # a tile of the pyramid, a region computed from it, and one of the original
    for path in ("512,0,512,512/512,512/0/default.jpg", "500,10,512,512/512,512/0/default.jpg"):
        x, y, w, h = map(int, path.partition("/")[0].split(","))
        assert distance(shown(app, f"{base}/{path}"), whole.crop((x, y, x + w, y + h))) < 6


LAB = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes()
HOLLOW = (132).to_bytes(4, "big") + SRGB[4:128] + bytes(4)
"""A sound header, and no tag behind it."""


@pytest.mark.parametrize("profile", [b"x", b"garbage " * 90, SRGB[:200], SRGB[:40] + bytes(400), HOLLOW, LAB])
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF"])
def test_invalid_icc_is_an_exception(shelf, kind, profile):
    source = photo(90, 60)
    base = shelf.take(saved(source, kind, icc_profile=profile))
    image = shown(shelf.app(), f"{base}/full/max/0/default.png")
    assert distance(image, source) < (8 if kind == "JPEG" else 0.01)


@pytest.mark.parametrize("kind", ["JPEG", "TIFF"])
def test_cmyk_is_wrong(shelf, kind):
    image = Image.new("CMYK", (80, 20))
    inks = {(0, 0, 0, 0): (255, 255, 255), (255, 0, 0, 0): (0, 154, 228), (0, 255, 255, 0): (231, 0, 18)}
    inks[0, 0, 0, 255] = (13, 0, 18)
    for number, ink in enumerate(inks):
        image.paste(ink, (20 * number, 0, 20 * number + 20, 20))
    seen = shown(shelf.app(), f"{shelf.take(saved(image, kind))}/full/max/0/default.png").convert("RGB")
    for number, colour in enumerate(inks.values()):
        assert seen.getpixel((20 * number + 10, 10)) == pytest.approx(colour, abs=12)


@pytest.mark.parametrize("bits", [1, 4, 8, 16])
def test_min_is_white_is_inverted(shelf, bits):
    row = bytes([0] * bits + [255] * bits)  # eight pixels of the least value, eight of the largest
    size = {256: (4, 16), 257: (4, 1), 273: (4, 0), 278: (4, 1), 279: (4, len(row))}
    base = shelf.take(tiff({258: (3, bits), 259: (3, 1), 277: (3, 1), 262: (3, 0)} | size, row))
    seen = shown(shelf.app(), f"{base}/full/max/0/default.jpg").convert("L")
    assert (seen.getpixel((2, 0)), seen.getpixel((13, 0))) == (pytest.approx(255, abs=3), pytest.approx(0, abs=3))


@pytest.mark.parametrize("suffix", ["png", "tif"])
def test_no_16_bit_output(shelf, suffix):
    levels = numpy.arange(65536, dtype="uint16").reshape(256, 256)
    base = shelf.take(pyvips.Image.new_from_array(levels).copy(interpretation="grey16").pngsave_buffer())
    for region, part in (("full", levels), ("10,20,90,80", levels[20:100, 10:100])):
        back = pyvips.Image.new_from_buffer(shelf.app().get(f"{base}/{region}/max/0/default.{suffix}").body, "")
        assert (back.format, numpy.array_equal(back.numpy(), part)) == ("ushort", True)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_rotation_is_lost(shelf, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    source = Image.new("RGB", (64, 32), (0, 0, 255))
    source.paste((255, 0, 0), (0, 0, 32, 16))
    base = shelf.take(saved(source, "JPEG", quality=97, subsampling=0, exif=exif), "image/jpeg")
    app = shelf.app()
    upright = opened(pyvips.Image.new_from_buffer(saved(source, "JPEG", exif=exif), "").autorot().pngsave_buffer())
    info = app.get(f"{base}/info.json").json
    assert (info["width"], info["height"]) == upright.size
    image = shown(app, f"{base}/full/max/0/default.jpg")
    assert distance(image, upright) < 6
    assert 0x0112 not in image.getexif()  # or viewers would turn it again
    part = shown(app, f"{base}/0,0,16,16/max/0/default.jpg")
    assert distance(part, upright.crop((0, 0, 16, 16))) < 6


def test_alpha_is_black_in_jpg(shelf):
    image = Image.new("RGBA", (40, 40), (0, 0, 0, 0))
    image.paste((200, 0, 0, 255), (0, 0, 20, 40))
    shelf.encoding = Encoding(background=(0, 255, 0), quality=95)
    base, app = shelf.take(saved(image, "PNG")), shelf.app()
    for size in ("max", "20,", "^80,"):
        seen = shown(app, f"{base}/full/{size}/0/default.jpg")
        assert seen.getpixel((seen.width - 3, 5)) == pytest.approx((0, 255, 0), abs=5)
        assert seen.getpixel((2, 5)) == pytest.approx((200, 0, 0), abs=8)


@pytest.mark.parametrize("size", [(1025, 513), (1, 2000), (1024, 1024), (2049, 3)])
@pytest.mark.parametrize("pyramid", [0, 1])
def test_an_edge_tile_has_a_width_of_0(shelf, size, pyramid):
    width, height = size
    base, app = shelf.take(saved(Image.new("RGB", size, (9, 99, 199)), "PNG"), pyramid_pixels=pyramid), shelf.app()
    told = app.get(f"{base}/info.json").json["tiles"][0]
    assert (told["width"], told["scaleFactors"]) == (512, scale_factors(*size))
    for by in told["scaleFactors"]:
        for x in range(0, width, 512 * by):
            for y in range(0, height, 512 * by):
                w, h = min(512 * by, width - x), min(512 * by, height - y)
                wanted = max(1, -(-w // by)), max(1, -(-h // by))
                for text in (f"{wanted[0]},{wanted[1]}", f"{wanted[0]},") if w >= h else (f"{wanted[0]},{wanted[1]}",):
                    tile = shown(app, f"{base}/{x},{y},{w},{h}/{text}/0/default.jpg")
                    assert min(tile.size) >= 1
                    assert tile.getpixel((0, 0)) == pytest.approx((9, 99, 199), abs=4)


@pytest.mark.parametrize("kind", ["JPEG", "WEBP", "TIFF", "PNG"])
def test_bad_extract_area(shelf, kind):
    """Regions that reach over the edge, in an image whose decoder shrinks with rounding of its own."""
    source = photo(417, 299)
    base, app = shelf.take(saved(source, kind)), shelf.app()
    for region, size in (
        *(("400,290,100,100", (17, 9)), ("416,298,1,1", (1, 1)), ("0,298,9999,9999", (417, 1))),
        *(("pct:99.9,99.9,50,50", (1, 1)), ("pct:0,0,100,100", (417, 299)), ("1,1,416,298", (416, 298))),
    ):
        assert shown(app, f"{base}/{region}/max/0/default.png").size == size
        for across in (1, 2, 3, 7):
            if across <= size[0]:
                image = shown(app, f"{base}/{region}/{across},/0/default.png")
                assert image.width == across
    app.get(f"{base}/417,0,1,1/max/0/default.png", status=400)


def test_edges_are_off_scale_or_cropped(shelf):
    """A frame of one colour stays a frame of one width on all four sides, whatever the scale and whatever the way."""
    source = Image.new("RGB", (1600, 1200), (255, 255, 255))
    source.paste((0, 0, 0), (100, 100, 1500, 1100))
    for pyramid in (0, 1):
        data = saved(source, "JPEG" if pyramid else "PNG", **({"quality": 97} if pyramid else {}))
        base, app = shelf.take(data, pyramid_pixels=pyramid), shelf.app()
        for width in (1600, 801, 400, 333, 160):
            image = shown(app, f"{base}/full/{width},/0/gray.jpg")
            edge = 100 * width / 1600
            row = [255 - image.getpixel((x, image.height // 2)) for x in range(image.width)]
            column = [255 - image.getpixel((image.width // 2, y)) for y in range(image.height)]
            for line in (row, column):
                # how much of the line is frame, before its middle and behind it
                half = len(line) // 2
                before, behind = (sum(255 - dark for dark in part) / 255 for part in (line[:half], line[half:]))
                assert (before, behind) == (pytest.approx(edge, abs=0.8), pytest.approx(edge, abs=0.8))


@pytest.mark.parametrize(
    "path", ["full/0,/0/default.jpg", "full/,0/0/default.jpg", "full/0,0/0/default.jpg", "full/!0,9/0/default.jpg"]
)
@pytest.mark.parametrize("version", [2, 3])
def test_w_0_hangs(shelf, path, version):
    base = shelf.take(saved(photo(60, 40), "PNG")).replace("/iiif/3/", f"/iiif/{version}/")
    answer = shelf.app().get(f"{base}/{path}", status=400)
    assert (answer.json["field"], answer.headers["Access-Control-Allow-Origin"]) == ("size", "*")
    assert shelf.app().get(f"{base}/0,0,0,9/max/0/default.jpg", status=400).json["field"] == "region"


def test_w_h_over_the_source_is_an_error(shelf):
    base, app = shelf.take(saved(photo(120, 80), "PNG")), shelf.app()
    assert shown(app, f"{base.replace('/iiif/3/', '/iiif/2/')}/full/!800,600/0/default.jpg").size == (120, 80)
    assert shown(app, f"{base}/full/!800,60/0/default.jpg").size == (90, 60)
    assert shown(app, f"{base}/full/^!800,600/0/default.jpg").size == (800, 533)
    assert shown(app, f"/binary/{base.rpartition('/')[2]}/full/!800,600/0/default.jpg").size == (120, 80)


def test_max_over_the_limit_is_403(shelf):
    shelf.limits = Limits(max_area=240_000)
    base, app = shelf.take(saved(photo(1200, 800), "PNG")), shelf.app()
    assert app.get(f"{base}/info.json").json["maxArea"] == 240_000
    for version, size in ((2, "max"), (3, "max"), (3, "^max")):
        path = base.replace("/iiif/3/", f"/iiif/{version}/")
        assert shown(app, f"{path}/full/{size}/0/default.jpg").size == (600, 400)
    app.get(f"{base}/full/601,/0/default.jpg", status=400)


def test_the_id_is_wrong_behind_a_proxy(shelf):
    base = shelf.take(saved(photo(60, 40), "PNG"))
    fixed = shelf.app(Options(base_url="https://media.example.org/img"))
    said = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "cdn.example", "X-Forwarded-Prefix": "/img"}
    trusting = shelf.app(Options(trusted_proxies=(ip_network("127.0.0.0/8"),)))
    for app, headers, where in (
        (fixed, {}, "https://media.example.org/img"),
        (fixed, said, "https://media.example.org/img"),
        (trusting, said, "https://cdn.example/img"),
        (trusting, {"Forwarded": "for=9.9.9.9;proto=https;host=a.example:444"}, "https://a.example:444"),
        (shelf.app(), said, "http://127.0.0.1:8000"),  # nobody who could say anything is trusted
    ):
        for version, name in ((2, "@id"), (3, "id")):
            path = base.replace("/iiif/3/", f"/iiif/{version}/")
            assert app.get(f"{path}/info.json", headers=headers).json[name] == where + path
            assert app.get(path, headers=headers, status=303).headers["Location"] == f"{where}{path}/info.json"
            link = app.get(f"{path}/full/30,/0/default.jpg", headers=headers).headers["Link"]
            assert link.startswith(f"<{where}{path}/full/30,")


def test_a_wrong_cors_header_is_cached(shelf):
    """An answer that a cache keeps of a request without Origin, or from another, is right for every page."""
    base, app = shelf.take(saved(photo(60, 40), "PNG")), shelf.app()
    tag = app.get(f"{base}/full/30,/0/default.jpg").headers["ETag"]
    for path in (f"{base}/info.json", f"{base}/full/30,/0/default.jpg", f"{base}/full/0,/0/default.jpg", base):
        seen = set()
        for headers in ({}, {"Origin": "https://one.example"}, {"Origin": "null"}, {"If-None-Match": tag}):
            answer = app.get(path, headers=headers, expect_errors=True)
            seen.add(answer.headers["Access-Control-Allow-Origin"])
            assert "Access-Control-Allow-Credentials" not in answer.headers
            assert "Origin" not in answer.headers.get("Vary", "")
        assert seen == {"*"}


def test_the_cache_has_no_bound_and_inodes_run_out(shelf, tmp_path):
    folder = tmp_path / "bounded"
    size, files = 3_000_000, 20
    cache = Cache(folder, size_limit=size, file_limit=files)
    data = saved(Image.effect_noise((1500, 1000), 120).convert("RGB"), "PNG")
    renditions = Renditions(cache, Limits(), Encoding(quality=100))
    made = 0
    for width in range(200, 1400, 25):
        order = parse(3, "full", f"{width},", "0", "default.jpg").resolve(1500, 1000, Limits().bounds(1500, 1000))
        made += len(renditions.image("ab" * 32, order, 1, lambda: io.BytesIO(data)))
        held = [path for path in folder.rglob("*") if path.is_file()]
        values = [path for path in held if path.parent.parent == folder and len(path.parent.name) == 2]
        assert len(values) <= files
        assert sum(path.stat().st_size for path in held if "-" not in path.name) <= size + 100_000
    assert made > 3 * size  # it was asked to keep much more
    assert sum(1 for path in folder.rglob("*") if path.is_dir()) <= 258
    cache.close()


def test_a_concurrent_miss_serves_a_truncated_file(shelf, tmp_path):
    data = saved(photo(1800, 1200), "PNG")
    order = parse(3, "full", "900,", "0", "default.png").resolve(1800, 1200, Limits().bounds(1800, 1200))
    opens, gate = [], threading.Barrier(12)
    caches = [Cache(tmp_path / "shared", size_limit=50_000_000, file_limit=100, waiters=12) for _ in range(3)]
    got = []

    def open_reader():
        opens.append(1)
        return io.BytesIO(data)

    def ask(number):
        gate.wait()
        got.append(Renditions(caches[number % 3], Limits()).image("cd" * 32, order, 1, open_reader))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 12
    assert len(set(got)) == 1
    assert opened(got[0]).size == (900, 600)
    assert len(opens) == 1
    for cache in caches:
        cache.close()


def test_a_whole_pdf_is_read_per_page(shelf):
    noise = [Image.effect_noise((900, 900), 90).convert("RGB") for _ in range(20)]
    out = io.BytesIO()
    noise[0].save(out, "PDF", save_all=True, append_images=noise[1:], quality=95)
    reader = Counting(out.getvalue())
    order = parse(3, "full", "300,", "0", "default.jpg").resolve(2500, 2500, Limits().bounds(2500, 2500))
    shown_page = Renditions(shelf.cache, Limits()).image("ef" * 32, order, 15, lambda: reader)
    assert opened(shown_page).size == (300, 300)
    assert reader.bytes_read < len(out.getvalue()) / 4


def test_a_gif_of_100000_frames(shelf):
    data = gif_of(100_000)
    reader = Counting(data)
    order = parse(3, "full", "max", "0", "default.png").resolve(8, 8, Limits().bounds(8, 8))
    image = Renditions(shelf.cache, Limits()).image("01" * 32, order, 1, lambda: reader)
    assert opened(image).size == (8, 8)
    assert reader.bytes_read < len(data) / 4
    base = shelf.take(data, "image/gif")
    assert shown(shelf.app(), f"{base}/full/max/0/default.jpg").size == (8, 8)
