"""Pictures computed on the spot, for a first look at a new server: no photo has to be shipped or downloaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyvips

Picture = Any  # pyvips.Image, which has no types
Palette = list[tuple[int, int, int]]

DUSK: Palette = [(18, 20, 58), (84, 49, 112), (196, 80, 104), (246, 150, 92), (255, 217, 150), (255, 244, 214)]
DEEP: Palette = [
    (4, 8, 28),
    (10, 42, 96),
    (18, 112, 158),
    (92, 196, 190),
    (238, 244, 208),
    (250, 176, 66),
    (140, 34, 40),
]
STONE: Palette = [(38, 40, 48), (96, 92, 94), (206, 198, 186), (244, 241, 234), (170, 152, 140), (70, 66, 72)]
GLASS: Palette = [(12, 24, 60), (22, 88, 140), (40, 160, 150), (236, 190, 70), (206, 84, 60), (96, 24, 72)]
SKY: Palette = [(28, 74, 140), (82, 140, 204), (170, 206, 236), (246, 248, 250), (255, 255, 255)]


@dataclass(frozen=True)
class Sample:
    """``name`` with the file's extension, the media type, and what makes the picture."""

    name: str
    mime: str
    width: int
    height: int
    make: Callable[[int, int], Picture]

    def data(self) -> bytes:
        """The encoded file."""
        picture = self.make(self.width, self.height).cast("uchar").copy(interpretation="srgb")
        options = {"compression": 6} if self.mime == "image/png" else {"Q": 88}
        data = picture.write_to_buffer(f".{self.name.rpartition('.')[2]}", **options)
        assert isinstance(data, bytes)
        return data


def _coloured(grey: Picture, palette: Palette) -> Picture:
    """A picture of values 0…1 through a palette whose colours are blended evenly."""
    bands = [pyvips.Image.new_from_array([[colour[band] for colour in palette]]) for band in range(3)]
    strip = bands[0].bandjoin(bands[1:]).resize(256 / len(palette), vscale=1, kernel="linear")
    # resize rounds the width, so that the table's real length counts
    return (grey * (strip.width - 1)).cast("uchar").maplut(strip.cast("uchar"))


def _noise(width: int, height: int, cell: int, octaves: int, seed: int) -> Picture:
    """Perlin noise of several octaves, roughly 0…1."""
    total: Picture = 0
    for octave in range(octaves):
        size = max(2, cell >> octave)
        total = total + pyvips.Image.perlin(width, height, cell_size=size, seed=seed + octave) / 2**octave
    return total * 0.42 + 0.5


def _julia(width: int, height: int) -> Picture:
    at = pyvips.Image.xyz(width, height)
    scale = 3.0 / width
    real, imaginary = (at[0] - width / 2) * scale, (at[1] - height / 2) * scale
    steps: Picture = 0
    for _ in range(40):
        real, imaginary = real * real - imaginary * imaginary - 0.79, real * imaginary * 2 + 0.15
        inside = (real * real + imaginary * imaginary) < 16
        real, imaginary = inside.ifthenelse(real, 9), inside.ifthenelse(imaginary, 9)
        steps = steps + inside / 255
    return _coloured((steps / 40) ** 0.6, DEEP)


def _dunes(width: int, height: int) -> Picture:
    at = pyvips.Image.xyz(width, height)
    down = at[1] / height
    sun = ((at[0] / height - 0.95) ** 2 + (down - 0.40) ** 2) ** 0.5
    picture = _coloured((down * 1.25).cast("float") * 0.9, DUSK) + (0.11 - sun > 0).ifthenelse(34, 0)
    for layer in range(6):
        line = _noise(width, 1, width // (3 + layer), 5, seed=40 + layer).resize(1, vscale=height, kernel="nearest")
        top = 0.46 + layer * 0.085 - (line - 0.5) * 0.22
        shade = [96 - layer * 15, 58 - layer * 8, 92 - layer * 12]
        picture = (down > top).ifthenelse(picture * 0.16 + shade, picture)
    return _clamped(picture)


def _marble(width: int, height: int) -> Picture:
    at = pyvips.Image.xyz(width, height)
    folds = _noise(width, height, 640, 6, seed=7)
    veins = ((at[0] + at[1] * 0.6) * (360 / 900) + folds * 900).sin() * 0.5 + 0.5
    return _coloured(veins, STONE)


def _glass(width: int, height: int) -> Picture:
    cells = pyvips.Image.worley(width, height, cell_size=300, seed=11) / 300
    wide = _noise(width, height, 900, 3, seed=3)
    return _clamped(_coloured(_clamped(wide * 255) / 255, GLASS) * (1.08 - cells * 0.75))


def _clouds(width: int, height: int) -> Picture:
    down = pyvips.Image.xyz(width, height)[1] / height
    clouds = _clamped((_noise(width, height, 700, 7, seed=21) - 0.40) * 520) / 255
    return _coloured(_clamped((clouds * (0.95 - down * 0.25) + down * 0.28) * 255) / 255, SKY)


def _plasma(width: int, height: int) -> Picture:
    at = pyvips.Image.xyz(width, height)
    waves = (at[0] * 0.9).sin() + (at[1] * 1.3).sin() + ((at[0] + at[1]) * 0.7).sin() + ((at[0] - at[1]) * 0.4).cos()
    return _coloured((waves + 4) / 8, DUSK)


def _clamped(picture: Picture) -> Picture:
    return (picture > 255).ifthenelse(255, (picture < 0).ifthenelse(0, picture))


SAMPLES = (
    Sample("dunes.jpg", "image/jpeg", 3600, 2400, _dunes),
    Sample("julia.jpg", "image/jpeg", 1800, 1200, _julia),
    Sample("marble.jpg", "image/jpeg", 2000, 2600, _marble),
    Sample("glass.png", "image/png", 1600, 1600, _glass),
    Sample("clouds.webp", "image/webp", 2800, 1800, _clouds),
    Sample("plasma.jpg", "image/jpeg", 640, 480, _plasma),
)
"""From 0.3 to 8.6 megapixels, upright, square and wide; the last is smaller than the largest box."""
