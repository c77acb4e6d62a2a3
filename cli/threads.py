"""gunicorn's worker with threads, made to stand clients who are slow, or mean to be.

gthread reads a request's head in one of its threads, however slowly it comes; it reads up to 5 s of a body that nobody
wants; and before it closes a connection, its main loop waits up to 2 s for the client to close it first. A few clients
who never end their head, their body or their connection would stop all others. Here a thread takes a connection when a
whole head has arrived, unwanted bodies are cut, and closing is left to the poller. What isn't HTTP gets a problem
document, as whatever else is wrong does.
"""

from __future__ import annotations

import selectors
import socket
import time
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from gunicorn.workers.gthread import _DEFER, ThreadWorker

from app import cors, problems

HEAD_SECONDS: Final = 10.0  # until a request's head must have arrived
HEAD_BYTES: Final = 128 * 1024  # of a head, looked for before it is read
BODY_SECONDS: Final = 0.2  # for the rest of a body that nobody read
CLOSE_SECONDS: Final = 2.0  # for the client to close (RFC 9112, 9.6)
DETAIL: Final = 200  # characters of what is told of a request that isn't one; it may quote the request
CLOSE_BYTES: Final = 64 * 1024  # of what it still sends meanwhile


class Threads(ThreadWorker):  # type: ignore[misc]
    """Also, at its end new connections are refused at once, and not only when the last answer is sent."""

    def handle(self, conn: Any) -> Any:
        # behind TLS heads can't be seen; at a Unix socket there is a proxy, and nothing tells of the next byte alone
        if not self.cfg.is_ssl and conn.sock.family != socket.AF_UNIX and not _has_head(conn):
            return _DEFER
        conn.head_due = None
        return super().handle(conn)

    def finish_request(self, conn: Any, future: Future[Any]) -> None:
        failed = future.cancelled() or future.exception() is not None
        if not failed and not future.result():
            self._close(conn)
            return
        super().finish_request(conn, future)
        if self.pending_conns and self.pending_conns[-1] is conn:
            conn.head_due = getattr(conn, "head_due", None) or time.monotonic() + HEAD_SECONDS
            conn.timeout = conn.head_due

    def handle_error(self, req: Any, client: Any, addr: Any, exc: Exception) -> None:
        super().handle_error(req, _Refusal(client, exc), addr, exc)

    def set_accept_enabled(self, enabled: bool) -> None:
        super().set_accept_enabled(enabled)
        if not enabled and not self.alive:
            for listener in self.sockets:
                listener.close()

    def _keepalive_after(self, conn: Any, keepalive: bool) -> bool:
        return keepalive and bool(conn.parser.finish_body(deadline=time.monotonic() + BODY_SECONDS))

    def _close(self, conn: Any) -> None:
        """Say that this was all, and close when the client does: closing at once could cut the end of the answer."""
        try:
            conn.sock.shutdown(socket.SHUT_WR)
            conn.sock.setblocking(False)
            self.poller.register(conn.sock, selectors.EVENT_READ, partial(self._drain, conn))
        except (OSError, ValueError):  # closed already
            self.nr_conns -= 1
            conn.close()
            return
        conn.timeout, conn.unread = time.monotonic() + CLOSE_SECONDS, CLOSE_BYTES
        self.pending_conns.append(conn)

    def _drain(self, conn: Any, _client: Any) -> None:
        with suppress(BlockingIOError):
            try:
                data = conn.sock.recv(conn.unread)
            except ConnectionError:
                data = b""
            conn.unread -= len(data)
            if not data or conn.unread == 0:
                self.poller.unregister(conn.sock)
                self.pending_conns.remove(conn)
                self.nr_conns -= 1
                conn.close()


class _Refusal:
    """In a socket's stead: takes gunicorn's page of HTML, and sends a problem document of the same status."""

    def __init__(self, sock: Any, error: Exception) -> None:
        self._sock, self._error = sock, error

    def gettimeout(self) -> float:
        return 0.0  # of a socket that nobody need wait for

    def sendall(self, page: bytes) -> None:
        status = HTTPStatus(int(page.split(b" ", 2)[1]))
        told = status is not HTTPStatus.INTERNAL_SERVER_ERROR
        problem = problems.Problem(status, str(self._error)[:DETAIL] if told else "An unexpected failure.")
        body = problems.document(problem)
        headers = {
            "Connection": "close",
            "Content-Type": problems.MEDIA_TYPE,
            "Content-Length": str(len(body)),
            **dict(cors.OPEN),
            **problems.NO_STORE,
        }
        lines = [f"HTTP/1.1 {status.value} {status.phrase}", *(f"{name}: {text}" for name, text in headers.items())]
        self._sock.setblocking(False)  # whoever doesn't take it isn't waited for
        try:
            self._sock.sendall("\r\n".join([*lines, "", ""]).encode("ascii") + body)
        finally:
            self._sock.setblocking(True)


def _has_head(conn: Any) -> bool:
    """Whether a request's head has arrived whole (RFC 9112, 2.1), or what needs no waiting: too much, or an end. If
    not, the connection counts as readable when there is more of it than now."""
    read = conn.parser.unreader.buf.getvalue() if conn.initialized else b""
    try:
        there = conn.sock.recv(HEAD_BYTES, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        there = None
    except OSError:
        return True  # whoever reads it is told
    head = (read + (there or b"")).lstrip(b"\r\n")
    whole = there == b"" or b"\r\n\r\n" in head or b"\n\n" in head or len(head) >= HEAD_BYTES
    wanted = 1 if whole else len(there or b"") + 1
    if wanted != getattr(conn, "wanted", 1):
        conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, wanted)
        conn.wanted = wanted
    return whole
