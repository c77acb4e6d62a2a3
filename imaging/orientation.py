"""Where a region of a picture as displayed lies in the pixels as they are stored (EXIF 2.32, 4.6.5)."""

from __future__ import annotations

from imaging.region import Rect


def stored(rect: Rect, orientation: int, width: int, height: int) -> Rect:
    """The same region before the orientation is applied; ``width`` and ``height`` are those as displayed."""
    right, below = width - rect.right, height - rect.bottom
    x, y, turned = {
        1: (rect.x, rect.y, False),
        2: (right, rect.y, False),
        3: (right, below, False),
        4: (rect.x, below, False),
        5: (rect.y, rect.x, True),
        6: (rect.y, right, True),
        7: (below, right, True),
        8: (below, rect.x, True),
    }[orientation]
    return Rect(x, y, rect.height, rect.width) if turned else Rect(x, y, rect.width, rect.height)
