"""The first frame of an animation, cut out."""

import pytest
from PIL import Image

from imaging.errors import BrokenImage
from imaging.feed import Feed
from imaging.frames import check_gif, first_of_gif, first_of_webp, gif_frames
from tests.imaging_files import Counting, gif_frame, gif_of, opened, quarters, saved


def frames(*colours, size=(300, 200)):
    return [Image.new("RGB", size, colour) for colour in colours]


def feed(data):
    return Feed(Counting(data))


def test_the_first_of_a_gif_by_pillow():
    first, *others = frames("red", "lime", "blue")
    data = saved(first, "GIF", save_all=True, append_images=others)
    cut = opened(first_of_gif(feed(data)))
    assert cut.n_frames == 1
    assert cut.convert("RGB").getpixel((5, 5)) == (255, 0, 0)
    assert len(list(gif_frames(feed(data)))) == 3


def test_frames_of_many_blocks_and_colour_tables_of_their_own():
    data = saved(Image.effect_noise((400, 300), 90), "GIF", save_all=True, append_images=[quarters(400, 300)])
    ends = list(gif_frames(feed(data)))
    assert len(ends) == 2
    assert ends[-1] == len(data) - 1
    assert len(data) > 100_000


def test_ten_thousand_frames_are_not_looked_at():
    reader = Counting(gif_of(10_000))
    cut = first_of_gif(Feed(reader))
    assert cut == gif_of(1)
    assert reader.bytes_read < len(gif_of(10_000))


@pytest.mark.parametrize("tail", [b"", b"\x3b", b"\x00\x00", b"\x3bsomething else"])
def test_what_may_follow_the_last_frame(tail):
    assert len(list(gif_frames(feed(gif_of(2)[:-1] + tail)))) == 2


@pytest.mark.parametrize("cut", [1, 3, 9, 13, 20, len(gif_frame()) - 1])
def test_a_gif_cut_off_within_a_frame(cut):
    data = gif_of(3)[: -1 - cut]
    with pytest.raises(BrokenImage):
        check_gif(feed(data))
    assert first_of_gif(feed(data)) == gif_of(1)


@pytest.mark.parametrize("data", [b"GIF89a", gif_of(0), gif_of(1)[:25]])
def test_a_gif_without_a_frame(data):
    with pytest.raises(BrokenImage):
        first_of_gif(feed(data))


def test_other_formats_have_no_frames_to_check():
    check_gif(feed(saved(quarters(), "PNG")[:100]))


def test_the_first_of_a_webp():
    first, *others = frames("red", "lime", "blue")
    data = saved(first, "WEBP", save_all=True, append_images=others, lossless=True)
    cut = first_of_webp(feed(data))
    assert len(cut) < len(data)
    assert opened(cut).convert("RGB").getpixel((5, 5)) == (255, 0, 0)
    assert opened(cut).n_frames == 1


def test_chunks_of_odd_length_are_padded():
    first, *others = frames("red", "lime")
    data = saved(first, "WEBP", save_all=True, append_images=others, lossless=True)
    at = data.index(b"ANIM")
    odd = data[:at] + b"odd!\x03\0\0\0abc\0" + data[at:]
    odd = b"RIFF" + (len(odd) - 8).to_bytes(4, "little") + odd[8:]
    assert opened(first_of_webp(feed(odd))).convert("RGB").getpixel((5, 5)) == (255, 0, 0)


@pytest.mark.parametrize("options", [{}, {"exif": b"Exif\0\0MM\0*\0\0\0\x08\0\0\0\0\0\0"}])
def test_a_still_webp_is_left_alone(options):
    assert first_of_webp(feed(saved(quarters(), "WEBP", **options))) is None


@pytest.mark.parametrize("animated", [False, True])
def test_a_webp_cut_off(animated):
    first, *others = frames("red", "lime")
    data = saved(first, "WEBP", **({"save_all": True, "append_images": others} if animated else {}))
    for stop in (15, 20, 30, len(data) - 1):
        with pytest.raises(BrokenImage):
            first_of_webp(feed(data[:stop]))


def test_an_animation_without_a_frame():
    body = b"WEBPVP8X\x0a\0\0\0\x02" + bytes(9)
    with pytest.raises(BrokenImage, match="without a frame"):
        first_of_webp(feed(b"RIFF" + len(body).to_bytes(4, "little") + body))
