import io

import pytest
from PIL import Image

from imaging.errors import BrokenImage, TooLargeImage
from imaging.limits import Limits
from imaging.pages import sizes_of_pages
from imaging.picture import inspect
from tests.imaging_files import jpeg_claiming

SIZES = [(60, 40), (50, 80), (70, 30)]


def document(kind, **options):
    out = io.BytesIO()
    first, *others = (Image.new("RGB", size, "teal") for size in SIZES)
    first.save(out, kind, save_all=True, append_images=others, **options)
    return out


@pytest.mark.parametrize("kind", ["TIFF", "PDF"])
def test_they_are_what_a_look_at_each_page_finds(kind):
    pages = document(kind)
    looked = [inspect(pages, Limits(), page) for page in (1, 2, 3)]
    assert sizes_of_pages(pages, Limits(), 3) == [(picture.width, picture.height) for picture in looked]
    assert sizes_of_pages(pages, Limits(), 2) == [(picture.width, picture.height) for picture in looked[:2]]


def test_other_formats_are_looked_at_page_by_page():
    out = io.BytesIO()
    Image.new("RGB", (60, 40)).save(out, "AVIF")
    assert sizes_of_pages(out, Limits(), 2) == [(60, 40), None]


def test_a_turned_page_is_as_it_is_displayed():
    pages = document("TIFF", tiffinfo={274: 6})
    assert sizes_of_pages(pages, Limits(), 3) == [(height, width) for width, height in SIZES]
    assert inspect(pages, Limits(), 2).width == 80


def test_pages_that_cant_be_shown_are_none():
    pages = document("TIFF")
    assert sizes_of_pages(pages, Limits(), 5) == [*SIZES, None, None]
    assert sizes_of_pages(pages, Limits(streamed_pixels=2500), 3) == [(60, 40), None, (70, 30)]
    assert sizes_of_pages(io.BytesIO(jpeg_claiming(60_000, 60_000)), Limits(), 1) == [None]


def test_documents_that_cant_be_read():
    with pytest.raises(TooLargeImage, match="more than 2 pages"):
        sizes_of_pages(document("TIFF"), Limits(pages=2), 3)
    with pytest.raises(BrokenImage):
        sizes_of_pages(io.BytesIO(document("PDF").getvalue()[:200]), Limits(), 3)
    cut = document("TIFF").getvalue()
    with pytest.raises(BrokenImage):
        sizes_of_pages(io.BytesIO(cut[: len(cut) // 2]), Limits(), 3)
