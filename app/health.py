"""``/health/live``: this process answers. ``/health/ready``: the store does."""

from __future__ import annotations

import json
from http import HTTPStatus

from falcon import Request, Response

from app.problems import LATER, Problem
from storage.errors import StoreError
from storage.interface import Store
from storage.schema import LEASES


class Live:
    def on_get(self, req: Request, resp: Response) -> None:
        _answer(resp, "live")

    on_head = on_get


class Ready:
    def __init__(self, store: Store) -> None:
        self._store = store

    def on_get(self, req: Request, resp: Response) -> None:
        try:
            self._store.get(LEASES, ("sweep",))
        except StoreError:
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, "The store doesn't answer.", headers=LATER) from None
        _answer(resp, "ready")

    on_head = on_get


def _answer(resp: Response, status: str) -> None:
    resp.content_type = "application/json"
    resp.set_header("Cache-Control", "no-store")
    resp.data = json.dumps({"status": status}).encode()
