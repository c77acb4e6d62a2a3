"""One fetch from a source: into the sink, or a reason why not. Nothing here knows where the bytes end up."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable
from functools import cached_property

from requests.utils import DEFAULT_CA_BUNDLE_PATH
from urllib3.util.ssl_ import create_urllib3_context

from ingest.fetch.connection import Connect, GuardedAdapter, Line, Session
from ingest.fetch.guard import Guard
from ingest.fetch.journey import Journey
from ingest.fetch.media import HTML, named
from ingest.fetch.outcome import Fetched, Known, Outcome
from ingest.fetch.url import InvalidUrl, mask, normalise
from ingest.fetch.visit import Sink as Sink
from ingest.fetch.visit import Terms, Visit, held
from ingest.fetch.watchdog import Watchdog
from storage.ids import Clock, system_clock


class Fetcher:
    """Fetches, in as many threads as call it. Holds no state of any fetch.

    ``connect_timeout`` (for each address), ``read_timeout`` (silence), ``deadline`` (the whole fetch) and
    ``retry_after_cap`` in seconds; ``max_bytes`` is the largest body. ``ca_file`` holds the certificates to trust
    instead of the usual ones. ``clock`` tells the time of day, ``monotonic`` counts seconds for the deadline,
    ``connect`` joins a socket to a checked address.
    """

    def __init__(
        self,
        guard: Guard,
        *,
        user_agent: str = "Magazin",
        connect_timeout: float = 10.0,
        read_timeout: float = 60.0,
        deadline: float = 3600.0,
        max_bytes: int = 10_000_000_000,
        max_redirects: int = 10,
        retry_after_cap: float = 24 * 3600.0,
        ca_file: str | None = None,
        clock: Clock = system_clock,
        monotonic: Callable[[], float] = time.monotonic,
        connect: Connect = socket.socket.connect,
    ) -> None:
        self._guard, self._user_agent, self._ca_file = guard, user_agent, ca_file
        self._connect_timeout, self._read_timeout, self._deadline = connect_timeout, read_timeout, deadline
        self._max_bytes, self._max_redirects, self._retry_after_cap = max_bytes, max_redirects, retry_after_cap
        self._clock, self._monotonic, self._connect = clock, monotonic, connect

    def fetch(
        self,
        url: str,
        sink: Sink,
        *,
        mime: str | None = None,
        known: Known | None = None,
        max_bytes: int | None = None,
        accept_html: bool = False,
        stop: threading.Event | None = None,
    ) -> Fetched:
        """Fetch a URL into a sink. Never raises for what the source does; exceptions of ``sink.write`` pass through.

        With any outcome but ARCHIVED the caller throws away what the sink has. ``mime`` is the caller's hint; when it
        is HTML, or with ``accept_html``, a web page counts as data. ``known`` makes the request conditional, or spares
        it while the held copy is fresh. ``stop``, once set, ends the fetch within a fraction of a second.
        """
        declared = named(mime)
        try:
            url = normalise(url)
        except InvalidUrl as error:
            return Fetched(
                Outcome.URL_INVALID,
                f"{error} ({mask(url)})" if url.strip() else str(error),
                counted=True,
                mime_declared=declared,
            )
        now = self._clock()
        if known is not None and known.sha256 is not None and now < (known.fresh_until or 0):
            return held(known, f"{mask(url)} isn't asked: the held copy is still fresh")
        terms = Terms(
            declared=declared,
            max_bytes=self._max_bytes if max_bytes is None else max_bytes,
            accept_html=accept_html or declared in HTML,
            known=known if known is not None and known.sha256 is not None else None,
            retry_after_cap=self._retry_after_cap,
        )
        timeouts = (self._connect_timeout, self._read_timeout)
        with Watchdog(self._deadline, stop, self._monotonic) as watchdog, self._session(watchdog) as session:
            journey = Journey(session, watchdog, url, timeouts, self._max_redirects)
            return Visit(journey, sink, terms, self._clock).outcome()

    def _session(self, watchdog: Watchdog) -> Session:
        line = Line(self._guard, watchdog, self._connect, self._connect_timeout)
        session = Session(GuardedAdapter(line, lambda: self._tls))
        session.headers.update(
            {
                "User-Agent": self._user_agent,
                "Accept": "*/*",
                "Accept-Encoding": "identity",
                "Connection": "close",
            }
        )
        return session

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        context = create_urllib3_context()
        context.load_verify_locations(self._ca_file or DEFAULT_CA_BUNDLE_PATH)
        return context
