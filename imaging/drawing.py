"""SVG drawn in a process of its own, with a bound on its time and memory: nothing else stops a renderer in the middle
of a drawing.

``python -m imaging.drawing WIDTH HEIGHT`` takes a drawing that ``imaging.svg`` has cleaned, and gives its pixels: four
bytes each, red, green, blue and opacity, row by row.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
from typing import Final

import pyvips

from imaging.colour import Image
from imaging.errors import BrokenImage, TookTooLong
from imaging.svg import Drawing

MEMORY: Final = 2 << 30
"""Bytes of address space: the libraries themselves take a third of it."""
SECONDS: Final = 20.0
"""For one drawing."""
_AT_ONCE: Final = threading.BoundedSemaphore(2)
_PASSED_ON: Final = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "FONTCONFIG_FILE", "FONTCONFIG_PATH")
"""Of the environment. The settings' secrets aren't."""


def drawn(drawing: Drawing, seconds: float = SECONDS) -> Image:
    """The pixels, in sRGB with transparency. BrokenImage, TookTooLong."""
    command = [sys.executable, "-P", "-m", "imaging.drawing", str(drawing.width), str(drawing.height), str(seconds)]
    environ = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    with _AT_ONCE:
        try:
            done = subprocess.run(
                command, input=drawing.data, capture_output=True, timeout=seconds, env=environ, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise TookTooLong(f"takes longer than {seconds:g} s") from error
    if done.returncode or len(done.stdout) != 4 * drawing.width * drawing.height:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise BrokenImage(f"an SVG that can't be drawn: {said[-1][:200] if said else done.returncode}")
    return pyvips.Image.new_from_memory(done.stdout, drawing.width, drawing.height, 4, "uchar").copy(
        interpretation="srgb"
    )


def main(width: int, height: int, seconds: float) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    pyvips.concurrency_set(1)
    image = pyvips.Image.svgload_buffer(sys.stdin.buffer.read())
    if (image.width, image.height) != (width, height):
        raise SystemExit("of another size than it says")
    sys.stdout.buffer.write(image.write_to_memory())


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
    except pyvips.Error as failure:
        raise SystemExit(f"{failure}") from None
