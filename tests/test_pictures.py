"""What ingest takes for an image, and what it makes of SVG."""

import gzip

import pytest

from imaging.encoding import Encoding
from imaging.errors import NotAnImage
from imaging.limits import Limits
from ingest.pictures import Pictures
from storage.chunks import ChunkBlobs
from storage.memory import MemoryStore
from storage.schema import BOXES, ORIGINALS_DATA
from tests.imaging_files import opened

SVG = b"<svg xmlns='http://www.w3.org/2000/svg' width='40' height='20'><rect width='9' height='9'/></svg>"
MIME = "image/svg+xml"


@pytest.fixture
def blobs():
    store = MemoryStore(strict=True)
    store.create([ORIGINALS_DATA])
    return ChunkBlobs(store, part_size=1000)


def pictures(blobs, **limits):
    return Pictures(blobs, limits=Limits(**limits), encoding=Encoding(), pyramid_pixels=100)


def blob(blobs, data):
    with blobs.create("owner", "attempt") as writer:
        writer.write(data)
        return writer.commit()


def test_svg_is_an_image_only_where_it_is_switched_on(blobs):
    for claims in ((MIME, None), (None, "text/xml", MIME, MIME), ("image/png", MIME)):
        assert not pictures(blobs).are_made_of(*claims)
        assert pictures(blobs, svg=True).are_made_of(*claims)
    for claims in (("image/png", None), ("application/pdf",)):
        assert pictures(blobs).are_made_of(*claims)
    assert not pictures(blobs, svg=True).are_made_of("text/html", None)


def test_an_svg_is_drawn(blobs):
    prepared = pictures(blobs, svg=True).prepare(blob(blobs, SVG), MIME)
    assert (prepared.width, prepared.height, prepared.pyramid) == (2000, 1000, None)
    assert opened(prepared.made[BOXES[0]]).size == (800, 400)


@pytest.mark.parametrize(
    "data", [SVG[:50], b"<!DOCTYPE svg [<!ENTITY a 'b'>]>" + SVG, gzip.compress(SVG, mtime=0), b"text"]
)
def test_one_that_can_not_be_drawn_is_a_file_all_the_same(blobs, data):
    prepared = pictures(blobs, svg=True).prepare(blob(blobs, data), MIME)
    assert prepared.note.startswith("kept without images: ")
    assert prepared.width is None


def test_what_claims_to_be_another_image_must_be_one(blobs):
    with pytest.raises(NotAnImage):
        pictures(blobs, svg=True).prepare(blob(blobs, b"text"), "image/png")
