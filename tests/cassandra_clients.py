"""Clients of several servers under faults: they PUT and GET at a steady rate, and keep book of what they were told.

Each request begins when it is due, however long others take, as those of independent people do. Clients that wait for
their last answer would ask a server that hangs only once, and call it quick.
"""

from __future__ import annotations

import hashlib
import http.client
import itertools
import json
import random
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from tests.source import http as page

RATE = 5  # requests a second, all together: about a fifth of what three nodes on two cores can take
MANY = 100  # requests under way, at most


def content(target: str) -> bytes:
    """What the source has there, always the same: one, some or many parts long."""
    size = (3_000, 700_000, 1_300_000)[int(hashlib.md5(target.encode()).hexdigest(), 16) % 3]
    return random.Random(target).randbytes(size)


def serve(connection: Any, request: bytes) -> bytes:
    """For :class:`tests.source.Source`."""
    target = request.split(b" ")[1].decode()
    return page(content(target), Content_Type="application/x-noise")


@dataclass
class Book:
    """``known``: reference → target of all that were acknowledged; ``ready``: those that were seen whole."""

    known: dict[str, str] = field(default_factory=dict)
    ready: dict[str, str] = field(default_factory=dict)
    answers: int = 0
    seconds: list[float] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


class Clients:
    def __init__(self, ports: Sequence[int], source: str, token: str) -> None:
        self.ports, self.source, self.token = ports, source, token
        self.book = Book()
        self._done, self._went = threading.Event(), threading.Condition()
        self._pool = ThreadPoolExecutor(MANY)
        self._beat = threading.Thread(target=self._begin_all, daemon=True)

    def __enter__(self) -> Clients:
        self._beat.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._beat.join()
        self._pool.shutdown()

    def go(self, answers: int) -> Book:
        """So many more answers, good or bad; the book of these alone."""
        with self._went:
            before = self.book.answers, len(self.book.refused), len(self.book.seconds)
            assert self._went.wait_for(lambda: self.book.answers >= before[0] + answers, 600)
            book = self.book
            assert not book.wrong, book.wrong[:5]
            return Book(answers=answers, refused=book.refused[before[1] :], seconds=sorted(book.seconds[before[2] :]))

    def read(self, port: int, reference: str, target: str) -> None:
        """GET the whole original; notes whatever isn't right."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.request("GET", f"/binary/{reference}")
            answer = connection.getresponse()
            body = answer.read()
        except http.client.IncompleteRead:
            self.book.refused.append(f"GET {target}: cut")
            return
        finally:
            connection.close()
        if answer.status == 200 and body == content(target):
            self.book.ready[reference] = target
        elif answer.status == 503 and b'"original_status"' in body and reference not in self.book.ready:
            pass  # no worker has been there yet
        elif answer.status == 503 and answer.headers["Retry-After"]:
            self.book.refused.append(f"GET {target}: 503 {body!r}")
        elif answer.status == 200 or reference in self.book.ready:
            self.book.wrong.append(f"GET {target}: {answer.status} with {len(body)} bytes {body[:200]!r}")

    def _put(self, count: int) -> None:
        target = f"/{count}"
        body = json.dumps({"url": self.source + target, "context": f"load-{count % 4}"})
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.token}"}
        connection = http.client.HTTPConnection("127.0.0.1", self._port(count), timeout=60)
        connection.request("PUT", "/binaries", body, headers)
        answer = connection.getresponse()
        said = answer.read()
        connection.close()
        if answer.status in (200, 202):
            self.book.known[json.loads(said)["reference_id"]] = target
        elif answer.status == 503 and answer.headers["Retry-After"]:
            self.book.refused.append(f"PUT {target}: 503 {said!r}")
        else:
            self.book.wrong.append(f"PUT {target}: {answer.status} {said[:200]!r}")

    def _get(self, count: int) -> None:
        if known := list(self.book.known.items()):
            self.read(self._port(count), *random.choice(known))

    def _port(self, count: int) -> int:
        return self.ports[count // len(self._KINDS) % len(self.ports)]

    _KINDS = (_put, _get, _get, _put, _get)

    def _begin_all(self) -> None:
        begun = time.monotonic()
        for count in itertools.count():
            due = begun + count / RATE
            if self._done.wait(max(0.0, due - time.monotonic())):
                return
            self._pool.submit(self._do, count, due)

    def _do(self, count: int, due: float) -> None:
        act = self._KINDS[count % len(self._KINDS)]
        try:
            act(self, count)
        except Exception as error:
            self.book.wrong.append(f"{act.__name__}: {error!r}")
        with self._went:
            self.book.answers += 1
            self.book.seconds.append(time.monotonic() - due)
            self._went.notify_all()


def report(what: str, book: Book) -> str:
    seconds = book.seconds
    p50, p99, worst = (seconds[min(len(seconds) - 1, len(seconds) * per // 100)] * 1e3 for per in (50, 99, 100))
    counts = f"{book.answers} answers, {len(book.refused)} refused"
    return f"{what}: {counts}, p50 {p50:.0f}, p99 {p99:.0f}, worst {worst:.0f} ms"
