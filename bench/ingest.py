"""Ingest per second: PUT of every URL until all are OK, beside doing no more than what must be done with the bytes."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from urllib.request import urlopen

import pyvips

from bench import servers
from bench.lab import Lab
from bench.measure import Case, Sample, Workload, cpu_of, here
from bench.servers import WORKERS, Server, command, free_port
from bench.table import compared
from storage.schema import BOXES

TEXT_BYTES = 2048
LOOK = 0.05  # seconds between two looks whether all is done
PATIENCE = 120.0  # seconds for one round


def sections(lab: Lab) -> Iterator[str]:
    (lab.files / "text.txt").write_bytes(b"a file of a few words\n" * (TEXT_BYTES // 22))
    port = free_port()
    program = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", str(lab.files)]
    source = lab.start(command(program, port))
    served = {
        "magazin": lab.start(servers.magazin(lab.folder / "ingested", WORKER_PER_HOST="4")),
        "magazin, no pyramids": lab.start(
            servers.magazin(lab.folder / "flat", WORKER_PER_HOST="4", IMAGES_PYRAMID_PIXELS="0")
        ),
    }
    for name, title, count in (
        ("small.jpg", "Ingest of 2 MP photos", 16),
        ("large.jpg", "Ingest of 12 MP photos", 8),
        ("text.txt", f"Ingest of files of {TEXT_BYTES:,} bytes", 100),
    ):
        yield compared(_workload(lab, title, f"http://{source.address}/{name}", served, count))


def _workload(lab: Lab, title: str, url: str, served: dict[str, Server], count: int) -> Workload:
    numbers = itertools.count()

    def put(server: Server) -> Sample:
        return ingested([f"{url}?{next(numbers)}" for _ in range(count)], server)

    about = f"{count} new URLs a round. The limit fetches, syncs a file and makes the boxes, in {WORKERS} threads."
    cases = [Case("fetch, file, libvips", lambda: here(lambda: _bare(url, lab.folder, count)))]
    cases += [Case(name, partial(put, server)) for name, server in served.items()]
    return Workload(title, about, cases, lab.rounds)


def ingested(urls: list[str], served: Server) -> Sample:
    """From the first PUT to the last outcome."""
    cpu, wall = cpu_of(served.pids), time.perf_counter()
    connection = http.client.HTTPConnection(served.address, timeout=60)
    waiting = []
    for url in urls:
        entry = _json(connection, "PUT", "/binaries", {"url": url, "context": "bench"})
        waiting.append(entry["reference_id"])
    while waiting and time.perf_counter() - wall < PATIENCE:
        connection.request("HEAD", f"/binary/{waiting[-1]}")
        answer = connection.getresponse()
        answer.read()
        if answer.status == 200:
            waiting.pop()
        elif answer.status == 503:
            time.sleep(LOOK)
        else:
            raise RuntimeError(f"an ingest failed: HEAD gave {answer.status}")
    connection.close()
    if waiting:
        raise RuntimeError(f"{len(waiting)} of {len(urls)} are not ingested after {PATIENCE:.0f} s")
    return Sample(len(urls), time.perf_counter() - wall, cpu_of(served.pids) - cpu)


def _json(connection: http.client.HTTPConnection, method: str, path: str, body: dict[str, str]) -> dict[str, str]:
    connection.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    data = answer.read()
    if answer.status not in (200, 202):
        raise RuntimeError(f"{method} {path}: {answer.status} {data!r}")
    entry: dict[str, str] = json.loads(data)
    return entry


def _bare(url: str, folder: Path, count: int) -> int:
    def take(number: int) -> None:
        with urlopen(url) as answer:
            data = answer.read()
        path = folder / f"bare-{number}"
        with path.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if url.endswith(".jpg"):
            width, height = BOXES[0]
            image = pyvips.Image.thumbnail_buffer(
                data, width, height=height, size="down", fail_on="error"
            ).copy_memory()
            for width, height in BOXES:
                small = image.thumbnail_image(width, height=height, size="down")
                small.jpegsave_buffer(Q=75, optimize_coding=False, keep="none")
        path.unlink()

    with ThreadPoolExecutor(WORKERS) as pool:
        return len(list(pool.map(take, range(count))))
