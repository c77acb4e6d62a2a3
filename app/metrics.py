"""What is counted, and ``/metrics`` for Prometheus.

With several workers each process writes its counts to files in one folder, and whichever is asked adds them up. The
folder must be in PROMETHEUS_MULTIPROC_DIR before this module is imported: prometheus_client looks there only once.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Final

from falcon import Request, Response
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.multiprocess import MultiProcessCollector

from app.access import Access

METHODS: Final = frozenset(("GET", "HEAD", "PUT", "DELETE", "OPTIONS", "POST", "PATCH"))
SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60)


class Metrics:
    """``folder``: where all processes of this server count together; None: this process counts for itself."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder, self._registry = folder, CollectorRegistry()
        self._series: dict[tuple[str, str, int], tuple[Callable[[], None], Callable[[float], None]]] = {}
        self._requests = Counter(
            "magazin_http_requests",
            "Requests, by route; answers that are streams count when they begin.",
            ("method", "route", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "magazin_http_request_seconds",
            "Time until the answer's headers and first bytes are ready.",
            ("route",),
            buckets=SECONDS,
            registry=self._registry,
        )
        self._streams = Counter(
            "magazin_http_streams",
            "Originals and files, by how sending ended: whole, gone (the client left); for damage or a failing store: "
            "failed (before the first byte) or cut.",
            ("end",),
            registry=self._registry,
        )
        self._damaged = Counter(
            "magazin_scaled_damaged", "Prepared images found damaged and rendered anew.", registry=self._registry
        )
        self._rendered = Counter(
            "magazin_renditions_made", "Images decoded for a request: misses of the cache.", registry=self._registry
        )

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """``route`` is a template, never a path: what clients make up must not become series."""
        key = (method if method in METHODS else "other", route, status)
        series = self._series.get(key)
        if series is None:
            counter = self._requests.labels(key[0], route, str(status))
            series = self._series[key] = counter.inc, self._seconds.labels(route).observe
        count, observe = series
        count()
        observe(seconds)

    def stream_ended(self, how: str) -> None:
        self._streams.labels(how).inc()

    def box_damaged(self) -> None:
        self._damaged.inc()

    def rendered(self) -> None:
        self._rendered.inc()

    def text(self) -> bytes:
        if self._folder is None:
            return generate_latest(self._registry)
        together = CollectorRegistry()
        MultiProcessCollector(together, str(self._folder))
        return generate_latest(together)


class MetricsPage:
    """``/metrics``."""

    def __init__(self, metrics: Metrics, access: Access) -> None:
        self._metrics, self._access = metrics, access

    def on_get(self, req: Request, resp: Response) -> None:
        self._access.check_list(req)
        resp.status = HTTPStatus.OK
        resp.content_type = CONTENT_TYPE_LATEST
        resp.set_header("Cache-Control", "no-store")
        resp.data = self._metrics.text()

    on_head = on_get
