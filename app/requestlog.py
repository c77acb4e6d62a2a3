"""Every request gets an id and leaves a line in the log ``magazin.access``: one JSON object each.

Query strings are left out: a PUT's carries URLs, and those carry secrets.
"""

from __future__ import annotations

import json
import logging
import os
import re
import time
from collections.abc import Callable
from typing import Final

from falcon import Request, Response

from app.metrics import Metrics

SANE: Final = re.compile(r"[A-Za-z0-9._:-]{1,64}")

log = logging.getLogger("magazin.access")


def new_id() -> str:
    return os.urandom(8).hex()


class RequestLog:
    """Middleware; the first one, so that the others' refusals are logged and counted too."""

    def __init__(
        self,
        metrics: Metrics,
        clock: Callable[[], float] = time.perf_counter,
        make_id: Callable[[], str] = new_id,
    ) -> None:
        self._metrics, self._clock, self._make_id = metrics, clock, make_id

    def process_request(self, req: Request, resp: Response) -> None:
        sent = req.env.get("HTTP_X_REQUEST_ID", "")
        req.context.request_id = sent if SANE.fullmatch(sent) else self._make_id()
        req.context.started = self._clock()

    def process_response(self, req: Request, resp: Response, resource: object, succeeded: bool) -> None:
        resp.set_header("X-Request-Id", req.context.request_id)
        seconds = self._clock() - req.context.started
        status = resp.status_code
        self._metrics.answered(req.method, req.uri_template or "none", status, seconds)
        if log.isEnabledFor(logging.INFO):
            line = {
                "request_id": req.context.request_id,
                "method": req.method[:16],
                "path": req.path[:512],
                "status": status,
                "ms": round(seconds * 1000, 3),
                "length": int(resp.get_header("Content-Length") or len(resp.data or b"")),
                "peer": req.env.get("REMOTE_ADDR"),
            }
            log.info("%s", json.dumps(line))
