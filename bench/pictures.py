"""Pictures that weigh what photos weigh: noise of all wavelengths, so that thumbnails of them keep detail too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyvips

OCTAVES = 9
SLOPE = 1.3  # how much stronger each octave is than the next finer one

LARGE = (4000, 3000)
"""12 megapixels, 4.4 MB."""
SMALL = (1632, 1224)
"""2 megapixels, 0.7 MB."""


def photo(folder: Path, size: tuple[int, int], seed: int = 1) -> Path:
    """A JPEG of this many pixels. Kept from one run to the next."""
    path = folder / f"photo-{size[0]}x{size[1]}-{seed}.jpg"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        partial.write_bytes(_drawn(*size, seed).jpegsave_buffer(Q=92))
        partial.rename(path)
    return path


def _drawn(width: int, height: int, seed: int) -> Any:
    gray = _noise(width, height, seed, OCTAVES) * 4 + 128
    across, down = width >> 4, height >> 4
    red, blue = (
        _noise(across, down, seed + hue, 5).resize(width / across, vscale=height / down, kernel="linear") * 5
        for hue in (90, 190)
    )
    return (gray + red).bandjoin([gray, gray + blue]).cast("uchar").copy(interpretation="srgb")


def _noise(width: int, height: int, seed: int, octaves: int) -> Any:
    image: Any = None
    for octave in reversed(range(octaves)):
        across, down = -(-width // 2**octave), -(-height // 2**octave)
        noise = pyvips.Image.gaussnoise(across, down, sigma=SLOPE**octave, mean=0, seed=seed + octave)
        image = noise if image is None else image.resize(2, kernel="cubic").crop(0, 0, across, down) + noise
        image = image.copy_memory()
    return image
