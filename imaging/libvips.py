"""The library's process-wide settings, and what the installed build can do."""

from __future__ import annotations

import importlib.util
import logging

import pyvips

from imaging.formats import FORMATS, Format
from imaging.outputs import outputs


def configure(concurrency: int) -> None:
    """Set libvips up for a server; call it once in each process, before the first image.

    ``concurrency``: threads that work on one image. 1 costs the least CPU where requests run side by side.
    """
    pyvips.concurrency_set(concurrency)
    # An operation is asked for once: its result is kept as bytes, elsewhere. The cache would only hold on to sources.
    pyvips.cache_set_max(0)
    # Only the loaders of ``formats`` are ever called, by name; this bars the others also from within those.
    pyvips.block_untrusted_set(True)
    # pyvips logs each step of each operation as information
    logging.getLogger("pyvips").setLevel(logging.WARNING)


def version() -> tuple[int, int, int]:
    """Of the libvips in use."""
    return pyvips.version(0), pyvips.version(1), pyvips.version(2)


def readable() -> list[str]:
    """The names of the formats that this build, and the extras beside it, read."""
    return [known.name for known in FORMATS if _reads(known)]


def _reads(known: Format) -> bool:
    if known.package:
        return importlib.util.find_spec(known.package) is not None
    return bool(pyvips.type_find("VipsOperation", known.loader))


def writable() -> list[str]:
    """The suffixes of the formats in which renditions are written."""
    return list(outputs())
