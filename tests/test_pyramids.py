"""Pyramids from ingest to the answer, and to their end."""

import io

import pytest
from PIL import Image

from app.pyramids import Pyramids
from imaging.encoding import Encoding
from imaging.limits import Limits
from imaging.request import parse
from ingest.attempts import pyramid_of
from ingest.pictures import Pictures, is_claimed_image
from tests.app_stock import Stock, size_of
from tests.imaging_files import distance, opened, photo, saved

PICTURE = 1100, 700
DATA = saved(photo(*PICTURE), "JPEG", quality=95)
TILE = "512,0,512,512/512,512/0/default.jpg"


@pytest.fixture
def stock(tmp_path):
    return Stock(tmp_path)


def put(stock, url="http://source.example/large.jpg"):
    identifier = stock.put(DATA, url=url, mime="image/jpeg", width=PICTURE[0], height=PICTURE[1], pages=1)
    original = stock.references.find(identifier)[1]
    pictures = Pictures(stock.blobs, limits=Limits(), encoding=Encoding(), pyramid_pixels=700_000)
    prepared = pictures.prepare(original.blob)
    stock.change(original, pyramid_size=prepared.pyramid.size, pyramid_checksum=prepared.pyramid.sha256)
    return identifier


def rendered(app):
    [line] = [one for one in app.get("/metrics").text.splitlines() if one.startswith("magazin_renditions_made_total")]
    return float(line.split()[1])


def test_only_images_above_the_threshold_have_one(stock):
    original = stock.references.find(stock.put(DATA))[1]
    assert Pictures(stock.blobs, limits=Limits(), encoding=Encoding()).prepare(original.blob).pyramid is None
    larger = Pictures(stock.blobs, limits=Limits(), encoding=Encoding(), pyramid_pixels=770_001)
    assert larger.prepare(original.blob).pyramid is None
    assert [one.attempt for one in stock.blobs.scan()] == [original.attempt]
    equal = Pictures(stock.blobs, limits=Limits(), encoding=Encoding(), pyramid_pixels=770_000)
    assert equal.prepare(original.blob).pyramid.attempt == pyramid_of(original.attempt)


def test_tiles_are_copied_and_the_rest_is_computed_without_the_original(stock):
    identifier, app = put(stock), stock.app()
    original = stock.references.find(identifier)[1]
    stock.blobs.erase(original.original_id, original.attempt)
    for version in (2, 3):
        data = app.get(f"/iiif/{version}/{identifier}/{TILE}").body
        assert distance(opened(data), photo(*PICTURE).crop((512, 0, 1024, 512))) < 8
    assert size_of(app.get(f"/iiif/3/{identifier}/full/333,/0/default.jpg").body) == ("JPEG", (333, 212))
    scaled = opened(app.get(f"/binary/{identifier}/full/450,/default.jpg").body)
    assert distance(scaled, photo(*PICTURE).resize(scaled.size, Image.Resampling.LANCZOS)) < 3
    assert rendered(app) == 0


def test_lossless_formats_come_from_the_original(stock):
    identifier, app = put(stock), stock.app()
    part = app.get(f"/iiif/3/{identifier}/0,0,512,512/max/0/default.png").body
    assert distance(opened(part), opened(DATA).crop((0, 0, 512, 512))) == 0


@pytest.mark.parametrize("damage", ["tiles", "whole"])
def test_a_damaged_or_missing_pyramid_costs_time_and_no_answer(stock, damage):
    identifier, app = put(stock), stock.app()
    original = stock.references.find(identifier)[1]
    pyramid = original.pyramid
    if damage == "whole":
        stock.blobs.erase(pyramid.owner, pyramid.attempt)
    else:
        table = stock.store._data["originals_data"]
        for number in range(pyramid.parts - 5):  # the index is at the end
            held = table[(original.original_id, pyramid.attempt, number // 64)]
            held.set((number,), held.rows[(number,)] | {"data": b"z" * 1000})
    for path in (TILE, "full/333,/0/default.jpg"):
        assert opened(app.get(f"/iiif/3/{identifier}/{path}").body).format == "JPEG"
    assert rendered(app) == 2


def test_the_index_is_kept_and_bounded(stock):
    opens = []

    class Blobs:
        def open(self, blob):
            opens.append(blob.owner)
            return stock.blobs.open(blob)

        def path(self, blob):
            return None

        def parts(self, blob, start, stop):
            return stock.blobs.parts(blob, start, stop)

    originals = [stock.references.find(put(stock, f"http://source.example/{one}"))[1] for one in range(3)]
    kept = Pyramids(Blobs(), most=20)  # two of nine tiles each
    for original in (*originals[:2], *originals[:2]):
        assert kept.of(original).index.tiles == 9
    assert len(opens) == 2
    kept.of(originals[2])
    kept.of(originals[1])
    assert len(opens) == 3
    kept.of(originals[0])
    assert len(opens) == 4


def test_hot_tiles_are_read_once_and_bounded(stock):
    reads = []

    class Blobs:
        open, path = stock.blobs.open, staticmethod(lambda blob: None)

        def parts(self, blob, start, stop):
            reads.append(start)
            return stock.blobs.parts(blob, start, stop)

    original = stock.references.find(put(stock))[1]
    orders = [
        parse(3, f"{x},0,512,512", "max", "0", "default.jpg").resolve(*PICTURE, Limits().bounds(*PICTURE))
        for x in (0, 512)
    ]
    kept = Pyramids(Blobs(), hot=10**6)
    tiles = kept.of(original)
    data = [kept.tile(original, tiles, order) for order in orders]
    assert [kept.tile(original, tiles, order) for order in orders * 3] == data * 3
    assert len(reads) == 2
    one = Pyramids(Blobs(), hot=max(map(len, data)))
    for order in orders * 2:
        assert one.tile(original, one.of(original), order) in data
    assert len(reads) == 6
    assert one.tile(original, tiles, orders[0]) == data[0] != data[1]


def test_pages_of_a_pdf_are_images_and_a_pdf_that_can_not_be_drawn_is_a_file(stock):
    pictures = Pictures(stock.blobs, limits=Limits(), encoding=Encoding())
    pages = [Image.new("RGB", (200, 100), colour) for colour in ("red", "lime")]
    out = io.BytesIO()
    pages[0].save(out, "PDF", save_all=True, append_images=pages[1:], resolution=72)
    prepared = pictures.prepare(stock.references.find(stock.put(out.getvalue()))[1].blob)
    assert (prepared.width, prepared.height, prepared.pages) == (556, 278, 2)
    broken = stock.put(b"%PDF-1.7 and no more", url="http://source.example/broken.pdf")
    prepared = pictures.prepare(stock.references.find(broken)[1].blob)
    assert (prepared.width, prepared.note.startswith("kept without images")) == (None, True)
    assert is_claimed_image("application/pdf")
    assert not is_claimed_image("text/html", None)
