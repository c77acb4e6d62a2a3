"""A source on 127.0.0.1 that answers every connection byte for byte as a test says, right or wrong."""

import contextlib
import hashlib
import io
import socket
import ssl
import struct
import threading
from ipaddress import ip_network

from ingest.fetch.fetcher import Fetcher
from ingest.fetch.guard import Guard

BODY = b"a,b\n1,2\n" * 1000
MD5, SHA256 = hashlib.md5(BODY).hexdigest(), hashlib.sha256(BODY).hexdigest()
CSV = {"Content_Type": "text/csv; charset=utf-8"}


def http(body=b"", status="200 OK", **headers):
    """A whole answer with a Content-Length, unless ``Content_Length=None``."""
    fields = {"Content_Length": str(len(body)), **headers}
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in fields.items() if value is not None]
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode("latin-1") + body


class Source:
    """``answers`` maps a target (path and query) to bytes, or to a function of (connection, request) that may send
    what it likes; it is one of these when it serves all targets. ``raw`` is called with each new connection, nothing
    read from it. ``requests`` are the heads of what was asked."""

    def __init__(self, answers=b"", tls=None, host="127.0.0.1", raw=None):
        self.answers, self.tls, self.host, self.raw = answers, tls, host, raw
        self.requests, self.connections = [], 0
        self.closing = threading.Event()
        self._open, self._threads = set(), []
        self._listener = socket.create_server((host, 0))
        self.port = self._listener.getsockname()[1]
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    def url(self, target="/", name=None):
        return f"{'https' if self.tls else 'http'}://{name or self.host}:{self.port}{target}"

    @property
    def targets(self):
        return [request.split(b" ")[1].decode("latin-1") for request in self.requests]

    def headers(self, index=-1):
        """The headers of a request, by lower-case name."""
        lines = self.requests[index].decode("latin-1").split("\r\n")[1:]
        return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines) if name}

    def close(self):
        self.closing.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._acceptor.join()
        for thread in self._threads:
            thread.join()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection):
        self._open.add(connection)
        with contextlib.suppress(OSError), connection:
            if self.raw is not None:
                self.raw(connection)
            elif self.tls is None:
                self._answer(connection)
            else:
                with self.tls.wrap_socket(connection, server_side=True) as wrapped:
                    self._open.add(wrapped)
                    self._answer(wrapped)

    def _answer(self, connection):
        request = b""
        while b"\r\n\r\n" not in request:
            data = connection.recv(65536)
            if not data:
                return
            request += data
        self.requests.append(request)
        answer = self.answers
        if isinstance(answer, dict):
            answer = answer.get(self.targets[-1], http(b"nothing here", "404 Not Found"))
        if callable(answer):
            answer = answer(connection, request)
        if answer is not None:
            connection.sendall(answer)
        with contextlib.suppress(ssl.SSLError):
            connection.shutdown(socket.SHUT_WR)


def reset(connection):
    """Cut a connection so that the peer sees a reset, not an end."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def resolver(**addresses):
    """A look-up that knows these names only (``_`` for a dot), and counts what it is asked.

    A name's addresses are a list, or a list of lists: one for each time that it is asked.
    """

    def resolve(host, port, **_):
        resolve.asked.append(host)
        known = addresses.get(host.rstrip(".").replace(".", "_"))
        if known is None:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        if isinstance(known[0], list):
            known = known.pop(0) if len(known) > 1 else known[0]
        return [
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", (address, port, 0, 0))
            if ":" in address
            else (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in known
        ]

    resolve.asked = []
    return resolve


class Dial:
    """Stands for ``socket.connect``: notes where to, and goes to a source on this machine, or fails."""

    def __init__(self, source=None, failing=()):
        self.dialled, self._source, self._failing = [], source, failing

    def __call__(self, sock, sockaddr):
        self.dialled.append(sockaddr[0])
        if self._source is None or sockaddr[0] in self._failing:
            raise ConnectionRefusedError(111, "Connection refused")
        sock.connect((self._source.host, self._source.port))


def fetcher(resolve=None, allow=("127.0.0.0/8",), **settings):
    """One that may go to this machine only, and resolves no name but those of the test."""
    guard = Guard([ip_network(network) for network in allow], resolve or resolver())
    return Fetcher(guard, **{"connect_timeout": 5.0, "read_timeout": 10.0, "deadline": 20.0, **settings})


def fetch(url, *, by=None, **arguments):
    """What a fetch ends with, and the bytes that came."""
    sink = io.BytesIO()
    fetched = (by or fetcher()).fetch(url, sink, **arguments)
    return fetched, sink.getvalue()
