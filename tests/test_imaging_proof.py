"""Which formats are read: what is told is what is proved."""

import base64

import pytest
import pyvips

from imaging import proof
from imaging.formats import FORMATS


def test_everything_is_read_where_the_extras_are():
    assert proof.readable() == (*(known.name for known in FORMATS), "svg")


@pytest.mark.parametrize("name", sorted(proof._ENCODED))
def test_a_picture_that_is_damaged_or_of_another_colour_proves_nothing(name):
    data = base64.b64decode(proof._ENCODED[name])
    assert proof._reads(data)
    assert not proof._reads(data[: len(data) * 2 // 3])
    assert not proof._reads(pyvips.Image.black(16, 16, bands=3).copy(interpretation="srgb").pngsave_buffer())


def test_libvips_may_know_heic_and_lack_its_decoder(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pi_heif", None)
    proof.readable.cache_clear()
    assert "heic" not in proof.readable()
    proof.readable.cache_clear()
