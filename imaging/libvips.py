"""The library's process-wide settings."""

from __future__ import annotations

import logging

import pyvips


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
