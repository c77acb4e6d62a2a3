"""Files in buckets, beside plain files: in this process, and over HTTP beside nginx. ``huge``: 5 GiB up and down."""

from __future__ import annotations

import hashlib
import http.client
import os
import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from bench import load, memory, servers
from bench.lab import Lab, Missing, parts
from bench.measure import Case, Sample, Workload, cpu_of, here
from bench.servers import Server
from bench.table import compared, number
from storage.bucket import Bucket
from storage.bucket_record import CHUNK_SIZE, FileRecord

MEGABYTES = 64
"""Of the file that is measured with. What is counted are its megabytes (2**20 bytes)."""
HUGE = 5 * 1024
"""Megabytes of the file that shows how much memory it takes."""
TIMES = 10
"""A file is received in one round: sendfile takes less CPU than /proc counts in."""
READS = 300
"""Of 64 KiB, in one round."""
BLOCK = random.Random(1).randbytes(1 << 20)


def blocks(count: int) -> Iterator[bytes]:
    """So many megabytes, no two alike."""
    for place in range(count):
        yield place.to_bytes(8, "big") + BLOCK[8:]


def sections(lab: Lab) -> Iterator[str]:
    plain = lab.folder / "plain.bin"
    with parts(lab.data) as magazin:
        yield from in_process(lab, magazin.buckets.open("fs"), plain)
    if not lab.has("nginx"):
        raise Missing("nginx, which is the limit over HTTP, isn't installed")
    yield from over_http(lab, plain)


def in_process(lab: Lab, bucket: Bucket, plain: Path) -> Iterator[str]:
    def upload() -> int:
        with bucket.open_upload_stream("bench") as stream:
            for block in blocks(MEGABYTES):
                stream.write(block)
        return MEGABYTES

    about = f"A file of {MEGABYTES} MiB, by the MiB. The plain file is written and synced once."
    cases = {
        "plain file": lambda: _write(plain, False),
        "plain file and sha256": lambda: _write(plain, True),
        "bucket": upload,
    }
    yield _compared("Files: upload in this process", about, cases, lab)

    record = bucket.get_by_name("bench")
    about = f"A file of {MEGABYTES} MiB, in cache, by the MiB."
    cases = {
        "plain file": lambda: _read(plain, False),
        "plain file and sha256": lambda: _read(plain, True),
        "bucket, chunk by chunk": lambda: sum(map(len, bucket.pieces(record))) >> 20,
        "bucket, a file object": lambda: _read_stream(bucket, record),
    }
    yield _compared("Files: download in this process", about, cases, lab)

    places = random.Random(2)
    about = f"64 KiB at random places of {MEGABYTES} MiB, in cache, by the read; a chunk has 255 KiB."
    cases = {
        "plain file": lambda: _random_plain(plain, places),
        "bucket, a file object": lambda: _random_stream(bucket, record, places),
    }
    yield _compared("Files: random reads in this process", about, cases, lab)


def over_http(lab: Lab, plain: Path) -> Iterator[str]:
    ours = lab.start(servers.magazin(lab.data, "--no-worker"))
    folder = lab.folder / "served"
    folder.mkdir()
    (folder / plain.name).write_bytes(plain.read_bytes())
    theirs = lab.start(servers.nginx(folder, writable=True))

    def timed(server: Server, move: Callable[[], object], times: int = 1) -> Sample:
        cpu, wall = cpu_of(server.pids), time.perf_counter()
        for _ in range(times):
            move()
        return Sample(times * MEGABYTES, time.perf_counter() - wall, cpu_of(server.pids) - cpu)

    cases = [
        Case("nginx, to a plain file", lambda: timed(theirs, lambda: put(theirs.address, "/up.bin", MEGABYTES))),
        Case("magazin", lambda: timed(ours, lambda: put(ours.address, "/files/fs/up", MEGABYTES))),
    ]
    about = f"PUT of {MEGABYTES} MiB, one after the other, by the MiB. nginx syncs nothing, Magazin every chunk."
    yield compared(Workload("Files: upload over HTTP", about, cases, lab.rounds))

    cases = [
        Case("nginx, plain file", lambda: timed(theirs, lambda: receive(theirs.address, f"/{plain.name}"), TIMES)),
        Case("magazin", lambda: timed(ours, lambda: receive(ours.address, "/files/fs/bench"), TIMES)),
    ]
    about = f"GET of {MEGABYTES} MiB, one after the other, by the MiB. The client hashes what it gets."
    yield compared(Workload("Files: download over HTTP", about, cases, lab.rounds))

    about = f"{load.CONNECTIONS} kept-alive connections, random places of {MEGABYTES} MiB."
    cases = [
        _ranges(lab, "nginx, plain file", theirs, f"/{plain.name}"),
        _ranges(lab, "magazin", ours, "/files/fs/bench"),
    ]
    yield compared(Workload(f"Files: ranges of {load.RANGE:,} bytes over HTTP", about, cases, lab.rounds))


def huge(lab: Lab) -> Iterator[str]:
    """Once: how fast, and how much memory beyond that of idle processes."""
    server = lab.start(servers.magazin(lab.data, "--no-worker"))
    put(server.address, "/files/fs/warm", 32)
    receive(server.address, "/files/fs/warm")
    lines = [
        f"## Files: {HUGE:,} MiB through HTTP",
        "",
        "Memory is the high-water mark beyond what was in use before, of the process that grew most.",
        "",
        "| | MiB per second | server CPU ms per MiB | server, MiB more | client, MiB more |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    sent = ""

    def up() -> None:
        nonlocal sent
        sent = put(server.address, "/files/fs/huge", HUGE)

    def down() -> None:
        if receive(server.address, "/files/fs/huge") != sent:
            raise RuntimeError("other bytes came down than went up")

    for name, work in (("up", up), ("down", down)):
        processes, client = memory.set_back(memory.tree(server.pids)), memory.set_back([os.getpid()])
        cpu, wall = cpu_of(server.pids), time.perf_counter()
        work()
        wall, cpu = time.perf_counter() - wall, cpu_of(server.pids) - cpu
        grown = [memory.grown(used) / 2**20 for used in (processes, client)]
        lines.append(f"| {name} | {' | '.join(map(number, (HUGE / wall, cpu * 1000 / HUGE, *grown)))} |")
    yield "\n".join(lines) + "\n"


def put(address: str, path: str, megabytes: int) -> str:
    """Send so many megabytes; their sha256."""
    sha256 = hashlib.sha256()

    def body() -> Iterator[bytes]:
        for block in blocks(megabytes):
            sha256.update(block)
            yield block

    connection = http.client.HTTPConnection(address, timeout=600)
    connection.request("PUT", path, body(), {"Content-Length": str(megabytes << 20)})
    answer = connection.getresponse()
    said = answer.read()
    connection.close()
    if answer.status not in (201, 204):
        raise RuntimeError(f"{path}: {answer.status} {said[:300]!r}")
    return sha256.hexdigest()


def receive(address: str, path: str) -> str:
    """The sha256 of what comes down."""
    connection = http.client.HTTPConnection(address, timeout=600)
    connection.request("GET", path)
    answer = connection.getresponse()
    sha256 = hashlib.sha256()
    while piece := answer.read(1 << 20):
        sha256.update(piece)
    connection.close()
    if answer.status != 200:
        raise RuntimeError(f"{path}: {answer.status}")
    return sha256.hexdigest()


def _compared(title: str, about: str, cases: dict[str, Callable[[], int]], lab: Lab) -> str:
    measured = [Case(name, partial(here, work)) for name, work in cases.items()]
    return compared(Workload(title, about, measured, lab.rounds))


def _ranges(lab: Lab, name: str, server: Server, path: str) -> Case:
    url = f"http://{server.address}{path}"
    return Case(name, lambda: load.repeat(url, server.pids, lab.seconds, largest=MEGABYTES << 20))


def _write(path: Path, hashed: bool) -> int:
    sha256 = hashlib.sha256()
    with path.open("wb") as file:
        for block in blocks(MEGABYTES):
            file.write(block)
            if hashed:
                sha256.update(block)
        file.flush()
        os.fsync(file.fileno())
    return MEGABYTES


def _read(path: Path, hashed: bool) -> int:
    sha256, done = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(CHUNK_SIZE):
            done += len(block)
            if hashed:
                sha256.update(block)
    return done >> 20


def _read_stream(bucket: Bucket, record: FileRecord) -> int:
    with bucket.open_download_stream(record.id) as file:
        return sum(map(len, iter(lambda: file.read(CHUNK_SIZE), b""))) >> 20


def _places(places: random.Random) -> Iterator[int]:
    return islice(iter(lambda: places.randrange((MEGABYTES << 20) - load.RANGE), None), READS)


def _random_plain(path: Path, places: random.Random) -> int:
    with path.open("rb", buffering=0) as file:
        for place in _places(places):
            file.seek(place)
            file.read(load.RANGE)
    return READS


def _random_stream(bucket: Bucket, record: FileRecord, places: random.Random) -> int:
    with bucket.open_download_stream(record.id) as file:
        for place in _places(places):
            file.seek(place)
            file.read(load.RANGE)
    return READS
