"""YCbCr as TIFF keeps it, to RGB (TIFF 6.0, section 21), where libvips takes the numbers for RGB: in a TIFF with
neither JPEG in it nor its chroma halved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyvips

from imaging.colour import Image

BT601: Final = (0.299, 0.587, 0.114)
FULL_RANGE: Final = (0.0, 255.0, 128.0, 255.0, 128.0, 255.0)


@dataclass(frozen=True)
class YCbCr:
    coefficients: tuple[float, ...] = BT601
    """Of red, green and blue in Y: tag 529."""
    reference: tuple[float, ...] = FULL_RANGE
    """Black and white of Y, Cb and Cr: tag 532."""

    def rgb(self, image: Image) -> Image:
        """The first three bands, 8 bits each."""
        red, green, blue = self.coefficients
        black, white, *chroma = self.reference
        wide = 255 / (white - black)
        spread = [127 / (chroma[1] - chroma[0]), 127 / (chroma[3] - chroma[2])]
        centred = image[:3].linear([wide, *spread], [-black * wide, -chroma[0] * spread[0], -chroma[2] * spread[1]])
        to_blue, to_red = 2 - 2 * blue, 2 - 2 * red
        matrix = [
            [1, 0, to_red],
            [1, -blue * to_blue / green, -red * to_red / green],
            [1, to_blue, 0],
        ]
        # cast clips; adding a half makes it round
        rgb = centred.recomb(pyvips.Image.new_from_array(matrix)) + 0.5
        return rgb.cast("uchar").copy(interpretation="srgb")
