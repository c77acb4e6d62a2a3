"""``/binary/logs/{context}``: what happened to the references of a context."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final

from falcon import Request, Response

from app.access import Access
from app.lookup import known_context
from app.paging import Page
from app.problems import bad_field
from ingest.logs import Line, Logs
from ingest.records import Reference
from ingest.references import References

CURSOR: Final = re.compile(r"([A-Za-z0-9-]{1,64})\.([0-9]{1,18})\.([0-9a-f]{32})")
BATCH: Final = 50  # references whose lines are read together


class LogOfContext:
    """Lines oldest first for each reference, the references in the order of their ids."""

    def __init__(self, references: References, logs: Logs, access: Access) -> None:
        self._references, self._logs, self._access = references, logs, access

    def on_get(self, req: Request, resp: Response, context: str) -> None:
        self._access.check_list(req)
        known_context(context)
        page = Page.of(req)
        lines = list(islice(self._after(context, page.after), page.limit + 1))
        if len(lines) > page.limit:
            lines = lines[: page.limit]
            last = lines[-1]
            page.link_next(req, resp, f"{last.reference_id}.{last.time}.{last.seq}")
        resp.content_type = "application/json"
        resp.set_header("Cache-Control", "no-store")
        resp.data = json.dumps([shown(line) for line in lines], ensure_ascii=False).encode()

    on_head = on_get

    def _after(self, context: str, cursor: str | None) -> Iterator[Line]:
        """The lines behind a cursor, which names the last line of the page before."""
        last = None
        if cursor is not None:
            match = CURSOR.fullmatch(cursor)
            if match is None:
                raise bad_field("after", "expected what a link of rel=next had")
            last, bound = match[1], (int(match[2]), match[3])
            found = self._references.find(last)
            if found is not None and found[0].context == context:
                rest = self._logs.lines([found[0]])
                yield from (line for line in rest if (line.time, line.seq) > bound)
        while references := self._page(context, last):
            yield from self._logs.lines(references)
            last = references[-1].reference_id

    def _page(self, context: str, after: str | None) -> list[Reference]:
        return [reference for reference, _ in self._references.page(context, after=after, limit=BATCH)]


def shown(line: Line) -> dict[str, Any]:
    time = datetime.fromtimestamp(line.time / 1_000_000, UTC).isoformat(timespec="milliseconds")
    return {"reference_id": line.reference_id, "time": time.replace("+00:00", "Z"), "message": line.message}
