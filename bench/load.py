"""Clients, bounded in count and time: wrk where it is installed, else threads with kept-alive connections."""

from __future__ import annotations

import http.client
import os
import random
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from bench.measure import Sample, cpu_of

CONNECTIONS = 4
"""As many as keep two processes busy."""
RANGE = 65_536  # bytes


def get(url: str, headers: Mapping[str, str] | None = None) -> bytes:
    """The body of one answer, which must be a 200 or a 206."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=60)
    try:
        return _ask(connection, parts.path + (f"?{parts.query}" if parts.query else ""), headers or {})
    finally:
        connection.close()


def repeat(url: str, pids: Sequence[int], seconds: float, *, largest: int = 0) -> Sample:
    """Ask for one URL again and again; where ``largest`` is given, for 64 KiB of those bytes at a random place."""
    cpu, wall = cpu_of(pids), time.perf_counter()
    requests = (_wrk if shutil.which("wrk") else _threads)(url, seconds, largest)
    return Sample(requests, time.perf_counter() - wall, cpu_of(pids) - cpu)


def once_each(urls: Iterable[str], pids: Sequence[int], connections: int = 2) -> Sample:
    """Ask for each URL once: what no cache can know."""
    left = iter(urls)
    lock = threading.Lock()

    def work() -> int:
        done = 0
        held: dict[str, http.client.HTTPConnection] = {}
        while True:
            with lock:
                url = next(left, None)
            if url is None:
                for connection in held.values():
                    connection.close()
                return done
            parts = urlsplit(url)
            connection = held.setdefault(parts.netloc, http.client.HTTPConnection(parts.netloc, timeout=120))
            _ask(connection, parts.path, {})
            done += 1

    cpu, wall = cpu_of(pids), time.perf_counter()
    requests = _in_threads(work, connections)
    return Sample(requests, time.perf_counter() - wall, cpu_of(pids) - cpu)


def _ask(connection: http.client.HTTPConnection, target: str, headers: Mapping[str, str]) -> bytes:
    connection.request("GET", target, headers=dict(headers))
    answer = connection.getresponse()
    body = answer.read()
    if answer.status not in (200, 206):
        raise RuntimeError(f"{target}: {answer.status} {body[:300]!r}")
    return body


def _threads(url: str, seconds: float, largest: int) -> int:
    parts, end = urlsplit(url), time.perf_counter() + seconds

    def work() -> int:
        connection, done = http.client.HTTPConnection(parts.netloc, timeout=60), 0
        while time.perf_counter() < end:
            start = random.randrange(largest - RANGE) if largest else 0
            _ask(connection, parts.path, {"Range": f"bytes={start}-{start + RANGE - 1}"} if largest else {})
            done += 1
        connection.close()
        return done

    return _in_threads(work, CONNECTIONS)


def _wrk(url: str, seconds: float, largest: int) -> int:
    script = f"""
        function request()
            local start = math.random(0, {largest} - {RANGE} - 1)
            return wrk.format("GET", nil, {{Range = "bytes=" .. start .. "-" .. (start + {RANGE - 1})}})
        end
    """
    with tempfile.TemporaryDirectory() as folder:
        command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{max(1, round(seconds))}s", "--timeout", "30s"]
        if largest:
            file = Path(folder) / "range.lua"
            file.write_text(script, encoding="utf-8")
            command += ["-s", os.fspath(file)]
        said = subprocess.run([*command, url], capture_output=True, text=True, check=True).stdout
    wrong = re.search(r"Non-2xx or 3xx responses: \d+|Socket errors: .*", said)
    found = re.search(r"(\d+) requests in", said)
    if wrong or found is None or not int(found[1]):
        raise RuntimeError(f"{url}: {wrong[0] if wrong else said}")
    return int(found[1])


def _in_threads(work: Callable[[], int], count: int) -> int:
    """What all of them did. The first error is raised."""
    done: list[int] = []
    errors: list[Exception] = []

    def run() -> None:
        try:
            done.append(work())
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return sum(done)
