"""A proxy between the driver and a node that loses a request or its answer, or keeps a request for later."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

SMALL = 100  # bytes; heartbeats are smaller, requests larger


class Proxy:
    """Listens on a port of 127.0.0.1. What shall happen is said before the request, and happens once."""

    def __init__(self, node: str, port: int = 0) -> None:
        self._node = node
        self._next: Callable[[_Pair, bytes], None] | None = None
        self._pairs: list[_Pair] = []
        self._kept: list[tuple[_Pair, bytes]] = []
        self.happened = threading.Event()
        self.connections = 0  # that there ever were
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def lose_request(self) -> None:
        """The next request never reaches the node: the connection breaks."""
        self._arm(lambda pair, data: pair.close())

    def lose_answer(self, then: Callable[[], object] = lambda: None) -> None:
        """The node does what it is asked; then the connection breaks. ``then`` runs in between."""

        def rule(pair: _Pair, data: bytes) -> None:
            pair.swallow = then
            pair.server.sendall(data)

        self._arm(rule)

    def keep_request(self) -> None:
        """The next request stays here, and later ones overtake it, as with a node that hangs."""
        self._arm(lambda pair, data: self._kept.append((pair, data)))

    def release(self) -> None:
        """Pass on what was kept, and wait for its answer."""
        for pair, data in self._kept:
            pair.answered.clear()
            pair.server.sendall(data)
            assert pair.answered.wait(30)
        self._kept.clear()

    def refuse(self) -> None:
        """No more connections."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def cut(self) -> None:
        """The connections that there are break."""
        for pair in self._pairs:
            pair.close()

    def shut(self) -> None:
        """No more connections, and those that there are break."""
        self.refuse()
        self.cut()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self.shut()

    def _arm(self, rule: Callable[[_Pair, bytes], None]) -> None:
        self.happened.clear()
        self._next = rule

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                pair = _Pair(client, socket.create_connection((self._node, 9042)))
                self._pairs.append(pair)
                self.connections += 1
                threading.Thread(target=self._forward, args=(pair,), daemon=True).start()
                threading.Thread(target=pair.back, daemon=True).start()

    def _forward(self, pair: _Pair) -> None:
        with suppress(OSError):
            while data := pair.client.recv(1 << 20):
                rule, self._next = (self._next, None) if len(data) > SMALL else (None, self._next)
                if rule is None:
                    pair.server.sendall(data)
                else:
                    rule(pair, data)
                    self.happened.set()
        if not any(pair is kept for kept, _ in self._kept):
            pair.close()


class _Pair:
    """A connection of a client, and the one to the node that belongs to it."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client, self.server = client, server
        self.swallow: Callable[[], object] | None = None
        self.answered = threading.Event()

    def back(self) -> None:
        with suppress(OSError):
            while data := self.server.recv(1 << 20):
                self.answered.set()
                if self.swallow is not None:
                    self.swallow()
                    break
                with suppress(OSError):
                    self.client.sendall(data)
        self.close()

    def close(self) -> None:
        for one in (self.client, self.server):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
