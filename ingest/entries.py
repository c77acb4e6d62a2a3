"""The lists that ``magazin ingest`` reads: one URL a line, CSV, or JSON lines, with the fields url, context, mime.

CSV has a header that names ``url`` (other columns than the three are passed over), or three columns of which the last
looks like a media type. In a list of plain URLs empty lines and those that begin with ``#`` are passed over. A line
that can't be read is an entry too, with what is wrong with it.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, TextIO

FIELDS: Final = ("url", "context", "mime")
MIME: Final = re.compile(
    r"(application|audio|font|image|message|model|multipart|text|video)/[A-Za-z0-9!#$&^_.+-]{1,80}"
)
LONGEST: Final = 64 * 1024  # characters of one line
CUT: Final = LONGEST + 1000


@dataclass(frozen=True)
class Entry:
    """One line of a list; ``line`` counts from 1. ``wrong`` says why it can't be taken in."""

    line: int
    url: str
    context: str
    mime: str | None = None
    wrong: str | None = None


def lines(stream: TextIO) -> Iterator[str]:
    """The stream's lines, each cut where it is too long for any entry: what is no list may be one endless line."""
    while line := stream.readline(CUT):
        yield line
        while line and not line.endswith("\n"):
            line = stream.readline(CUT)


def entries(lines: Iterable[str], context: str) -> Iterator[Entry]:
    """Read a list of any of the three kinds; ``context`` is for lines that name none."""
    numbered = ((number, line.rstrip("\r\n")) for number, line in enumerate(lines, 1))
    for number, line in numbered:
        if line.strip() and not line.startswith("#"):
            rest = chain([(number, line.removeprefix("\ufeff"))], numbered)
            yield from _reader(line.removeprefix("\ufeff"))(rest, context)
            return


def _reader(first: str) -> Any:
    if first.lstrip().startswith("{"):
        return _objects
    cells = [cell.strip() for cell in next(csv.reader([first]))]
    if "url" in [cell.lower() for cell in cells]:
        return _table
    if len(cells) == 3 and MIME.fullmatch(cells[2]):
        return _columns
    return _urls


def _urls(lines: Iterable[tuple[int, str]], context: str) -> Iterator[Entry]:
    for number, line in lines:
        text = line.strip()
        if text and not text.startswith("#"):
            yield _entry(number, {"url": text}, context)


def _columns(lines: Iterable[tuple[int, str]], context: str) -> Iterator[Entry]:
    return _table(chain([(0, ",".join(FIELDS))], lines), context)


def _table(lines: Iterable[tuple[int, str]], context: str) -> Iterator[Entry]:
    last = 0

    def counted() -> Iterator[str]:
        nonlocal last
        for number, line in lines:
            last = number
            yield line + "\n"

    rows = csv.reader(counted())
    try:
        names = [name.strip().lower() for name in next(rows)]
        for row in rows:
            if any(cell.strip() for cell in row):
                found = {name: cell.strip() for name, cell in zip(names, row, strict=False) if name in FIELDS}
                yield _entry(last, found, context)
    except csv.Error as error:
        yield Entry(last, "", context, wrong=f"no CSV: {error}")


def _objects(lines: Iterable[tuple[int, str]], context: str) -> Iterator[Entry]:
    for number, line in lines:
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield Entry(number, line[:200], context, wrong=f"no JSON: {error}")
            continue
        if not isinstance(found, dict):
            yield Entry(number, line[:200], context, wrong="not a JSON object")
            continue
        unknown = sorted(set(found) - set(FIELDS))
        if unknown:
            yield Entry(number, str(found.get("url", ""))[:200], context, wrong=f"unknown field {unknown[0]!r}")
        else:
            yield _entry(number, found, context)


def _entry(number: int, found: dict[str, Any], context: str) -> Entry:
    for name, value in found.items():
        if value is not None and (not isinstance(value, str) or len(value) > LONGEST):
            return Entry(number, str(found.get("url"))[:200], context, wrong=f"{name} must be a text")
    url, mime = found.get("url") or "", found.get("mime") or None
    context = found.get("context") or context
    if not url:
        return Entry(number, "", context, wrong="there is no url")
    if mime is not None and not MIME.fullmatch(mime.lower()):
        return Entry(number, url, context, wrong=f"mime {mime[:80]!r} is no media type")
    return Entry(number, url, context, mime)
