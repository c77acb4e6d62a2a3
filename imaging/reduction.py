"""Which reduced version of an image serves a request: a decoder's shrinking, or a level of a pyramid.

A reduced version is finer than what is wanted, never coarser. A region whose edges fall between its pixels is read from
one that is twice as fine, if there is one: the edges are then off by a quarter of a pixel of the result at most.
"""

from __future__ import annotations

from collections.abc import Iterable

from imaging.region import Rect


def choose(rect: Rect, size: tuple[int, int], picture: tuple[int, int], factors: Iterable[int]) -> int:
    """The largest of ``factors`` that suffices for this region of a picture in this size, 1 if none does."""
    for by in sorted(factors, reverse=True):
        finer = by if _fits(rect, by, picture) else 2 * by
        if rect.width >= finer * size[0] and rect.height >= finer * size[1]:
            return by
    return 1


def reduced(rect: Rect, by: int, width: int, height: int, picture: tuple[int, int]) -> Rect:
    """The region in the pixels of a version of ``width`` and ``height``, reduced by this factor."""
    left, right = _edges(rect.x, rect.right, by, width, picture[0])
    top, bottom = _edges(rect.y, rect.bottom, by, height, picture[1])
    return Rect(left, top, right - left, bottom - top)


def _fits(rect: Rect, by: int, picture: tuple[int, int]) -> bool:
    return not (
        rect.x % by
        or rect.y % by
        or (rect.right % by and rect.right < picture[0])
        or (rect.bottom % by and rect.bottom < picture[1])
    )


def _edges(start: int, stop: int, by: int, length: int, full: int) -> tuple[int, int]:
    first = min((2 * start + by) // (2 * by), length - 1)
    last = length if stop == full else min((2 * stop + by) // (2 * by), length)
    return first, max(last, first + 1)
