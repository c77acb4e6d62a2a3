"""Renditions over the real cache."""

import io

import pytest
from PIL import Image

from imaging.encoding import Encoding
from imaging.errors import BrokenImage, ImageError
from imaging.limits import Limits
from imaging.renditions import Renditions
from imaging.request import parse
from storage.cache import Cache
from tests.imaging_files import Failing, StorageFailed, opened, photo, saved

PICTURE = (300, 200)
DATA = saved(photo(*PICTURE), "JPEG")
SUM = "ab" * 32
LIMITS = Limits()


class Original:
    """Opens readers and counts them."""

    def __init__(self, data=DATA, reader=io.BytesIO):
        self._data, self._reader, self.readers = data, reader, []

    def open(self):
        self.readers.append(self._reader(self._data))
        return self.readers[-1]


@pytest.fixture
def cache(tmp_path):
    cache = Cache(tmp_path / "cache", size_limit=10_000_000, file_limit=1000)
    yield cache
    cache.close()


def made(renditions, original, text, checksum=SUM, limits=LIMITS):
    return renditions.image(checksum, ordered(text, limits), 1, original.open)


def ordered(text, limits=LIMITS):
    return parse(2, "full", text, "0", "default.jpg").resolve(*PICTURE, limits.bounds(*PICTURE))


def test_a_rendition_is_made_once_however_it_is_asked_for(cache):
    original, renditions = Original(), Renditions(cache, Limits())
    data = {made(renditions, original, text) for text in ("!60,60", "60,", ",40", "60,40", "pct:20", "!060,40")}
    assert len(data) == 1
    assert opened(data.pop()).size == (60, 40)
    assert len(original.readers) == 1
    assert original.readers[0].closed


def test_other_pixels_originals_and_settings_have_keys_of_their_own(cache):
    original = Original()
    for encoding in (Encoding(), Encoding(quality=80), Encoding(background=(0, 0, 0))):
        for checksum in (SUM, "cd" * 32):
            for text in ("60,", "61,"):
                made(Renditions(cache, Limits(), encoding), original, text, checksum)
    assert len(original.readers) == 12


def test_it_is_found_by_another_instance_with_the_same_settings(cache):
    original = Original()
    first = made(Renditions(cache, Limits()), original, "60,")
    assert made(Renditions(cache, Limits(seconds=1.0), Encoding()), original, "60,") == first
    assert len(original.readers) == 1


@pytest.mark.parametrize(
    ("original", "error"),
    [
        (Original(reader=lambda data: Failing(data, len(data) // 2)), StorageFailed),
        (Original(DATA[: len(DATA) // 2]), BrokenImage),
    ],
)
def test_an_error_passes_and_nothing_is_kept(cache, original, error):
    renditions = Renditions(cache, Limits())
    for times in (1, 2):
        with pytest.raises(error):
            made(renditions, original, "60,")
        assert len(original.readers) == times
        assert original.readers[-1].closed
    assert opened(made(renditions, Original(), "60,")).size == (60, 40)


@pytest.mark.parametrize("nonsense", [b"", b"\x89PNG"])
def test_what_the_encoder_gives_is_looked_at(cache, nonsense):
    class Faulty(Encoding):
        def jpeg(self, image):
            return nonsense

    renditions = Renditions(cache, Limits(), Faulty())
    with pytest.raises(ImageError, match="no jpg"):
        made(renditions, Original(), "60,")
    assert cache.get(renditions.key_of(SUM, ordered("60,"), 1)) is None


def test_of_whatever_format_it_is_a_jpeg(cache):
    original = Original(saved(Image.new("RGBA", PICTURE, (0, 0, 0, 0)), "PNG"))
    assert made(Renditions(cache, Limits()), original, "max").startswith(b"\xff\xd8\xff")
