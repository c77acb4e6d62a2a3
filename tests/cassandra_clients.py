"""Clients of several servers under faults: they PUT and GET without a pause, and keep book of what they were told."""

from __future__ import annotations

import hashlib
import http.client
import json
import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.source import http as page

WHOLE = (200, 206)


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
        self._threads = [threading.Thread(target=self._repeat, args=(self._put, n), daemon=True) for n in range(2)]
        self._threads += [threading.Thread(target=self._repeat, args=(self._get, n), daemon=True) for n in range(3)]

    def __enter__(self) -> Clients:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        for thread in self._threads:
            thread.join()

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

    def _put(self, number: int, count: int) -> None:
        target = f"/{number}-{count}"
        body = json.dumps({"url": self.source + target, "context": f"load-{number}"})
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.token}"}
        connection = http.client.HTTPConnection("127.0.0.1", self.ports[count % len(self.ports)], timeout=60)
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

    def _get(self, number: int, count: int) -> None:
        while not (known := list(self.book.known.items())) and not self._done.wait(0.05):
            pass
        if known:
            self.read(self.ports[count % len(self.ports)], *random.choice(known))

    def _repeat(self, act: Any, number: int) -> None:
        count = 0
        while not self._done.is_set():
            begun = time.monotonic()
            try:
                act(number, count)
            except Exception as error:
                self.book.wrong.append(f"{act.__name__}: {error!r}")
            count += 1
            with self._went:
                self.book.answers += 1
                self.book.seconds.append(time.monotonic() - begun)
                self._went.notify_all()


def report(what: str, book: Book) -> str:
    seconds = book.seconds
    p50, p99, worst = (seconds[min(len(seconds) - 1, len(seconds) * per // 100)] * 1e3 for per in (50, 99, 100))
    counts = f"{book.answers} answers, {len(book.refused)} refused"
    return f"{what}: {counts}, p50 {p50:.0f}, p99 {p99:.0f}, worst {worst:.0f} ms"
