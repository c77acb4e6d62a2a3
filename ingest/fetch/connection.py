"""Connections that requests opens through here: to checked addresses only, by the name's own certificate.

The check and the connection share one look-up, so a name can't resolve to a public address first and to loopback next
(DNS rebinding). Host, SNI and certificate stay those of the name, because only the last step of urllib3's connecting
is replaced.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Callable
from http.client import HTTPException, HTTPResponse
from typing import Any, Final, TypeAlias

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from ingest.fetch.failure import in_connecting
from ingest.fetch.guard import Guard
from ingest.fetch.url import split
from ingest.fetch.watchdog import Watchdog

Connect: TypeAlias = Callable[[socket.socket, Any], None]
"""Called as ``socket.socket.connect(sock, sockaddr)``."""

_DIGITS: Final = re.compile(r"[0-9]{1,18}")


class Line:
    """Opens the connections of one fetch."""

    def __init__(self, guard: Guard, watchdog: Watchdog, connect: Connect, timeout: float) -> None:
        self._guard, self._watchdog, self._connect, self._timeout = guard, watchdog, connect, timeout

    def open(self, host: str, port: int) -> socket.socket:
        """A connection to the first of the host's addresses that takes one. Raises BlockedUrl or Failure."""
        try:
            endpoints = self._watchdog.call(lambda: self._guard.addresses(host, port))
        except OSError as error:
            raise in_connecting(error) from error
        failed: OSError = OSError("no address")
        for endpoint in endpoints:
            try:
                return self._dial(endpoint.family, endpoint.sockaddr)
            except OSError as error:
                self._watchdog.check()
                failed = error
        raise in_connecting(failed) from failed

    def _dial(self, family: socket.AddressFamily, sockaddr: Any) -> socket.socket:
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            self._watchdog.watch(sock)
            sock.settimeout(self._timeout)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._connect(sock, sockaddr)
        except BaseException:
            sock.close()
            raise
        return sock


class StrictResponse(HTTPResponse):
    """Where a message ends, by RFC 9112 6. http.client takes headers here that would store half a body as a whole, or
    the chunks' own sizes as data."""

    def begin(self) -> None:
        if self.headers is not None:
            return
        super().begin()
        if self.headers.get_payload():
            raise HTTPException("a header line without a colon")
        codings = [value.strip().lower() for value in self.headers.get_all("Transfer-Encoding", [])]
        if codings not in ([], ["identity"], ["chunked"]):
            raise HTTPException("a transfer coding that wasn't asked for")
        if codings == ["chunked"] and not self.chunked:  # white space after the word
            self.chunked, self.chunk_left, self.length = True, None, None
        lengths = {part.strip() for value in self.headers.get_all("Content-Length", []) for part in value.split(",")}
        if self.chunked or not all(_DIGITS.fullmatch(length) for length in lengths):
            del self.headers["Content-Length"]
            if self.length != 0:  # which http.client sets where there can be no body
                self.length, self.will_close = None, True
        elif len({int(length) for length in lengths}) > 1:
            raise HTTPException("contradictory lengths")

    def _read_next_chunk_size(self) -> int:
        size: int = super()._read_next_chunk_size()  # type: ignore[misc]
        if size < 0:  # -1 would mean: all that comes, into memory
            raise ValueError("negative chunk size")
        return size


class GuardedAdapter(HTTPAdapter):
    """``context`` gives the one TLS context: loading the certificates anew for each connection takes 30 ms."""

    def __init__(self, line: Line, context: Callable[[], ssl.SSLContext]) -> None:
        self._line, self._context = line, context
        self._target = "/"
        super().__init__()

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        adapter = self

        class Plain(HTTPConnection):
            response_class = StrictResponse

            def _new_conn(self) -> socket.socket:
                return adapter._line.open(self._dns_host, self.port)

            def putrequest(self, method: str, url: str, *args: Any, **kwargs: Any) -> None:
                # urllib3 rewrites percent-escapes, and escapes valid ones again beside a stray percent sign
                super().putrequest(method, adapter._target, *args, **kwargs)

        class Secure(Plain, HTTPSConnection):
            pass

        class PlainPool(HTTPConnectionPool):
            ConnectionCls = Plain

        class SecurePool(HTTPSConnectionPool):
            ConnectionCls = Secure

        self.poolmanager.pool_classes_by_scheme = {"http": PlainPool, "https": SecurePool}

    def build_connection_pool_key_attributes(
        self, request: requests.PreparedRequest, verify: Any, cert: Any = None
    ) -> Any:
        host, pool = super().build_connection_pool_key_attributes(request, verify, cert)
        return host, pool | ({"ssl_context": self._context()} if host["scheme"] == "https" else {})

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:
        """The context has the certificates already."""

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> requests.Response:
        self._target = split(request.url or "").target
        return super().send(request, *args, **kwargs)


class Session(requests.Session):
    """One fetch's cookies and connections. Nothing of the environment counts: no proxies, no .netrc."""

    def __init__(self, adapter: HTTPAdapter) -> None:
        super().__init__()
        self.trust_env = False
        self.headers.clear()
        self.mount("http://", adapter)
        self.mount("https://", adapter)

    def get_redirect_target(self, resp: requests.Response) -> None:
        """None: the caller follows redirects. requests would read all of a redirect's body, and choke on Latin-1."""
