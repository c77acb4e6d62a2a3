"""P7: what each request costs with few references in store, and with many.

In this process, on the WSGI application itself: a server around it would only add what doesn't grow. Each round asks
for other references, chosen at random, so that many of them aren't in SQLite's page cache.
"""

from __future__ import annotations

import io
import itertools
import random
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote
from wsgiref.types import WSGIApplication

from bench.lab import Lab, parts
from bench.measure import Case, Workload, here, measure
from bench.pictures import photo
from bench.table import number
from cli.settings import Access
from cli.wiring import Magazin
from ingest.recent import Recent
from ingest.records import Original, Reference, Status, reference_id_of
from ingest.references import index_rows
from storage.schema import BINARY_REFS, CONTEXTS, ORIGINALS, URLS, URLS_ORIGINAL
from storage.table import ABSENT, Put

FEW = 1000
CONTEXT = "grown"
LIVE = 40
"""References whose originals have bytes and boxes; the others are rows only."""
SIZE = (800, 600)
BATCH = 1000  # references in one transaction
THREADS = 16  # that write references where there are no transactions
CALLS = 60  # requests in one round of one kind
SECOND = 1_000_000
OPEN = Access(open_writes="loopback", open_lists=True)

Call = Callable[["Grown"], tuple[str, str, int]]
"""Method, path with its query, and the status to expect."""


class Grown:
    """A store with ``count`` references in one context, and the application over it."""

    def __init__(self, magazin: Magazin, count: int, picture: Path) -> None:
        self._fresh = itertools.count(count)
        self._random = random.Random(1)
        self._count = count
        _fill(magazin, count)
        self._live = [_live(magazin, picture, number) for number in range(LIVE)]
        self._app: WSGIApplication = magazin.application()

    def ask(self, call: Call) -> int:
        for _ in range(CALLS):
            self._expect(*call(self))
        return CALLS

    def ask_all(self) -> None:
        for each in range(self._count):
            self._expect("HEAD", f"/binary/{reference_id_of(CONTEXT, _url(each))}", 200)

    @property
    def any(self) -> str:
        """A reference."""
        return reference_id_of(CONTEXT, _url(self._random.randrange(self._count)))

    @property
    def live(self) -> str:
        """A reference whose bytes are there."""
        return self._random.choice(self._live)

    @property
    def known(self) -> str:
        return _url(self._random.randrange(self._count))

    @property
    def new(self) -> str:
        return _url(next(self._fresh))

    @property
    def cursor(self) -> str:
        return f"{self._random.getrandbits(32):08x}"

    def _expect(self, method: str, target: str, expected: int) -> None:
        status = self._answer(method, target)
        if status != expected:
            raise RuntimeError(f"{method} {target}: {status}")

    def _answer(self, method: str, target: str) -> int:
        path, _, query = target.partition("?")
        environ: dict[str, Any] = {
            "REQUEST_METHOD": method,
            "PATH_INFO": path,
            "RAW_URI": target,
            "QUERY_STRING": query,
            "SERVER_NAME": "127.0.0.1",
            "SERVER_PORT": "8000",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "REMOTE_ADDR": "127.0.0.1",
            "HTTP_HOST": "127.0.0.1:8000",
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(),
            "wsgi.errors": sys.stderr,
        }
        said: list[str] = []

        def start_response(status: str, headers: Any, exc_info: Any = None) -> Callable[[bytes], object]:
            said.append(status)
            return lambda data: None

        body = self._app(environ, start_response)
        for _ in body:
            pass
        close = getattr(body, "close", None)
        if close is not None:
            close()
        return int(said[0][:3])


KINDS: dict[str, Call] = {
    "GET original, 180 KB": lambda store: ("GET", f"/binary/{store.live}", 200),
    "HEAD original": lambda store: ("HEAD", f"/binary/{store.any}", 200),
    "GET prepared box": lambda store: ("GET", f"/binary/{store.live}/full/!440,330/0/default.jpg", 200),
    "GET cached rendition": lambda store: ("GET", f"/binary/{store.live}/full/300,/0/default.jpg", 200),
    "GET info.json": lambda store: ("GET", f"/binary/{store.any}/info.json", 200),
    "GET unknown reference": lambda store: ("GET", f"/binary/{store.cursor}", 404),
    "first page of the context": lambda store: ("GET", f"/binaries/{CONTEXT}?limit=20", 200),
    "a page within": lambda store: ("GET", f"/binaries/{CONTEXT}?limit=20&after={store.cursor}", 200),
    "a page of its log": lambda store: ("GET", f"/binary/logs/{CONTEXT}?limit=20&after={store.any}.0.{0:032x}", 200),
    "gallery": lambda store: ("GET", "/", 200),
    "PUT, known": lambda store: ("PUT", f"/binaries?context={CONTEXT}&url={quote(store.known, safe='')}", 200),
    "PUT, new": lambda store: ("PUT", f"/binaries?context=new&url={quote(store.new, safe='')}", 202),
}


def sections(lab: Lab) -> Iterator[str]:
    picture = photo(lab.folder, SIZE)
    with parts(lab.folder / "few", access=OPEN) as few_parts, parts(lab.folder / "many", access=OPEN) as many_parts:
        few, many = Grown(few_parts, FEW, picture), Grown(many_parts, lab.references, picture)
        lines = [
            f"## P7: CPU of each request with {FEW:,} and with {lab.references:,} references",
            "",
            f"On the application, without a server; {CALLS} requests a round; the references lie in one context.",
            "",
            f"| request | CPU ms with {FEW:,} | with {lab.references:,} | ratio |",
            "| --- | ---: | ---: | ---: |",
        ]
        for kind, call in KINDS.items():
            cases = [_case("few", few, call), _case("many", many, call)]
            before, after = measure(Workload(kind, "", cases, lab.rounds))
            cells = (number(before.cost * 1000), number(after.cost * 1000), number(after.cost_ratio))
            lines.append(f"| {kind} | {' | '.join(cells)} |")
        yield "\n".join(lines) + "\n"


def _case(name: str, store: Grown, call: Call) -> Case:
    return Case(name, lambda: here(lambda: store.ask(call)))


def _url(number: int) -> str:
    return f"http://source.example/{number}.jpg"


def _fill(magazin: Magazin, count: int) -> None:
    """Write the rows that PUT and the worker leave behind them: many in one transaction, or by many threads."""
    store = magazin.store
    generation = magazin.ids.ordered()
    store.commit(CONTEXTS, (CONTEXT,), [Put({"context": CONTEXT, "generation": generation}, ABSENT)])
    if not store.transactional:
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(lambda number: _write(magazin, generation, number), range(count)))
        return
    for first in range(0, count, BATCH):
        with store.unit():
            for number in range(first, min(first + BATCH, count)):
                _write(magazin, generation, number)


def _write(magazin: Magazin, generation: str, number: int) -> None:
    store, ids, now, url = magazin.store, magazin.ids, magazin.clock(), _url(number)
    original = Original(
        ids.random(),
        Status.OK,
        url,
        "source.example",
        registered=now,
        due=now,
        mime="image/jpeg",
        created=(now - number * SECOND) // 1000 * 1000,  # a timestamp of Cassandra has milliseconds
        checksum=f"{number:064x}",
        size=180_000,
        part_size=524_288,
        attempt=ids.ordered(),
        filename=f"{number}.jpg",
        width=SIZE[0],
        height=SIZE[1],
        pages=1,
        outcome="ARCHIVED",
    )
    reference = Reference(reference_id_of(CONTEXT, url), original.original_id, CONTEXT, generation, url, ids.ordered())
    store.commit(ORIGINALS, (original.original_id,), [Put(original.row(), ABSENT)])
    store.commit(URLS, (url,), [Put({"url": url, "original_id": original.original_id}, ABSENT)])
    store.commit(BINARY_REFS, (reference.reference_id,), [Put(reference.row(), ABSENT)])
    named = (URLS_ORIGINAL, {"original_id": original.original_id, "url": url})
    line = magazin.logs.original_line(original.original_id, "stored: 180000 bytes, image/jpeg")
    store.put_many([named, line, *index_rows(reference), *Recent.rows(original)], window=20)


def _live(magazin: Magazin, picture: Path, number: int) -> str:
    path = picture.with_name(f"live-{number}.jpg")
    shutil.copy(picture, path)
    return magazin.local_files.put("live", path, None, threading.Event()).reference.reference_id
