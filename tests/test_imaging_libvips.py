"""The process-wide settings of libvips, in a process of their own."""

import subprocess
import sys

import pytest

from imaging import libvips
from imaging.formats import AVIF, HEIC, recognise

PROGRAM = """
import pyvips
from imaging import libvips
libvips.configure(3)
print(pyvips.concurrency_get(), pyvips.cache_get_max())
try:
    pyvips.Image.new_from_buffer(b"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>", "")
except pyvips.Error:
    print("barred")
"""


def test_configure():
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["3", "0", "barred"]


def test_the_version_is_free_of_known_faults():
    assert libvips.version() >= (8, 18, 3)


@pytest.mark.parametrize(
    ("brands", "found"),
    [
        (b"avif\0\0\0\0", AVIF),
        (b"avis\0\0\0\0", AVIF),
        (b"mif1\0\0\0\0avifmiaf", AVIF),
        (b"heic\0\0\0\0mif1", HEIC),
        (b"mif1\0\0\0\0heic", HEIC),
        (b"isom\0\0\0\0mp41", None),
        (b"qt  \0\0\0\0", None),
    ],
)
def test_brands(brands, found):
    head = (8 + len(brands)).to_bytes(4, "big") + b"ftyp" + brands
    assert recognise(head + b"avifheic") is found  # what follows the box doesn't count
