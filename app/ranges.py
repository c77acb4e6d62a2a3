"""Byte ranges (RFC 9110, 14): one range of an original, from a start, to an end, or of its last bytes.

Several ranges in one request are answered by the whole, which 14.2 allows: multipart bodies cost more than they save,
and a thousand overlapping ranges are an attack. So are units that aren't bytes. What isn't a range at all is 400.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Final

from app.problems import Problem, bad_field

ONE: Final = re.compile(r"\s*([0-9]{0,4000})-([0-9]{0,4000})\s*")
LARGEST: Final = 2**63 - 1


def wanted(header: str, size: int) -> tuple[int, int] | None:
    """The bytes [start, stop) that a Range header asks of ``size`` bytes; None for all of them.

    Raises a Problem: 400 for what isn't a range, 416 with ``Content-Range: bytes */size`` for one beyond the end.
    """
    unit, equals, ranges = header.partition("=")
    if not equals:
        raise bad_field("Range", "expected bytes=first-last")
    if unit.strip().lower() != "bytes" or "," in ranges:
        return None
    match = ONE.fullmatch(ranges)
    first, last = match.groups() if match else ("", "")
    if not first and not last:
        raise bad_field("Range", "expected bytes=first-last, bytes=first- or bytes=-count")
    if max(int(first or 0), int(last or 0)) > LARGEST:
        raise bad_field("Range", "a position beyond 2^63 - 1")
    if not first:
        start, stop = max(0, size - int(last)), size
    else:
        start, stop = int(first), min(int(last) + 1, size) if last else size
        if last and int(last) < start:
            raise bad_field("Range", "the last position lies before the first")
    if start >= size:
        headers = {"Content-Range": f"bytes */{size}"}
        detail = f"Range: begins beyond the {size} bytes there are"
        raise Problem(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, detail, headers=headers, field="Range", size=size)
    return start, stop
