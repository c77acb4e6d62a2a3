"""The sizes of all pages of a document, from one look at it: page by page, every look would begin at the first."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO

from imaging import foreign, formats, tiff
from imaging.errors import ImageError
from imaging.feed import Feed
from imaging.limits import Limits
from imaging.picture import look

Pixels = tuple[int, int]
"""Width and height, as displayed."""


def sizes_of_pages(reader: BinaryIO, limits: Limits, pages: int) -> list[Pixels | None]:
    """Of the first ``pages`` pages; None for one that can't be shown, or isn't there.

    BrokenImage, TooLargeImage for a document that can't be read at all; an error of the reader passes to the caller.
    """
    with Feed(reader) as feed:
        known = formats.recognise(feed.read(0, formats.HEAD))
        if known is formats.TIFF:
            found: Iterator[Pixels | None] = tiff.sizes(feed, limits.pages)
        elif known is formats.PDF:
            found = foreign.page_sizes(feed)
        else:
            found = (_one(feed, limits, page) for page in range(1, pages + 1))
        told = [
            size if size and 0 < size[0] * size[1] <= limits.streamed_pixels else None for size in islice(found, pages)
        ]
    return told + [None] * (pages - len(told))


def _one(feed: Feed, limits: Limits, page: int) -> Pixels | None:
    try:
        picture = look(feed, limits, page)
    except ImageError:
        return None
    return picture.width, picture.height
