"""References over HTTP: attach one to a URL, list those of a context, take them down."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

from falcon import Request, Response

from app import submission
from app.access import Access
from app.lookup import check_id, known_context
from app.paging import Page
from app.problems import bad_field
from app.waiting import Waiting, preferred_wait
from ingest.fetch.url import BlockedUrl, InvalidUrl
from ingest.records import BadContext, Original, Reference, Status
from ingest.references import References


class Binaries:
    """``/binaries``: PUT attaches. It answers at once; with ``Prefer: wait=N`` when the first try is over."""

    def __init__(self, references: References, access: Access, waiting: Waiting) -> None:
        self._references, self._access, self._waiting = references, access, waiting

    def on_put(self, req: Request, resp: Response) -> None:
        self._access.check_write(req)
        sent = submission.read(req)
        try:
            reference, original = self._references.attach(sent.context, sent.url, sent.mime)
        except BadContext as error:
            raise bad_field("context", str(error)) from None
        except (InvalidUrl, BlockedUrl) as error:
            raise bad_field("url", str(error), HTTPStatus.UNPROCESSABLE_ENTITY) from None
        wait = preferred_wait(req.env.get("HTTP_PREFER"))
        if wait is not None and original.status == Status.PROCESSING:
            seen = self._waiting.until(lambda: self._references.find(reference.reference_id), _is_decided, wait)
            if seen is not None:
                resp.set_header("Preference-Applied", f"wait={wait}")
                reference, original = seen
        resp.status = HTTPStatus.OK if original.status == Status.OK else HTTPStatus.ACCEPTED
        resp.set_header("Location", f"/binary/{reference.reference_id}")
        _answer(resp, entry(reference, original) | {"context": reference.context})


class Context:
    """``/binaries/{context}``: GET lists the references of a context, in the order of their ids."""

    def __init__(self, references: References, access: Access) -> None:
        self._references, self._access = references, access

    def on_get(self, req: Request, resp: Response, context: str) -> None:
        self._access.check_list(req)
        known_context(context)
        page = Page.of(req)
        found = self._references.page(context, after=page.after, limit=page.limit + 1)
        if len(found) > page.limit:
            found = found[: page.limit]
            page.link_next(req, resp, found[-1][0].reference_id)
        _answer(resp, [entry(reference, original) for reference, original in found])

    on_head = on_get


class ContextRemoval:
    """``/binaries/context/{context}``: DELETE takes all references of a context down."""

    def __init__(self, references: References, access: Access) -> None:
        self._references, self._access = references, access

    def on_delete(self, req: Request, resp: Response, context: str) -> None:
        self._access.check_write(req)
        self._references.detach_context(known_context(context))
        resp.status = HTTPStatus.NO_CONTENT


class ReferenceRemoval:
    """``/binaries/reference/{reference_id}``: DELETE takes one reference down."""

    def __init__(self, references: References, access: Access) -> None:
        self._references, self._access = references, access

    def on_delete(self, req: Request, resp: Response, reference_id: str) -> None:
        self._access.check_write(req)
        self._references.detach(check_id(reference_id))
        resp.status = HTTPStatus.NO_CONTENT


def entry(reference: Reference, original: Original) -> dict[str, Any]:
    """``error`` and ``outcome`` only when the last try failed."""
    shown: dict[str, Any] = {
        "reference_id": reference.reference_id,
        "original_id": original.original_id,
        "url": reference.url,
        "status": str(original.status),
    }
    if original.status in (Status.ERROR, Status.RETRY):
        shown |= {"outcome": original.outcome, "error": original.reason}
    return {name: value for name, value in shown.items() if value is not None}


def _is_decided(seen: tuple[Reference, Original] | None) -> bool:
    return seen is None or seen[1].status != Status.PROCESSING


def _answer(resp: Response, shown: Any) -> None:
    resp.content_type = "application/json"
    resp.set_header("Cache-Control", "no-store")
    resp.data = json.dumps(shown, ensure_ascii=False).encode()
