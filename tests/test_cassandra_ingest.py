"""Three workers, as separate processes, work off 2,000 URLs of 20 hosts; two hosts are slow, two workers are killed."""

from __future__ import annotations

import json
import re
import subprocess
import threading
import uuid
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from cli.supervisor import python
from tests.source import Source
from tests.source import http as page
from tests.tree import ENVIRON, magazin

pytestmark = pytest.mark.stress

HOSTS, EACH, SLOW, THREADS = 20, 100, 2, 4
MACHINES = ("machine0", "machine1", "machine2")
KILLED = MACHINES[:2]


class Asked:
    """Who asked the sources for each target, in turn, and a bell for so many."""

    def __init__(self) -> None:
        self.by: defaultdict[str, list[str]] = defaultdict(list)
        self._total, self._changed = 0, threading.Condition()

    def source(self, number: int) -> Callable[[Any, bytes], bytes]:
        wait = threading.Event()

        def answer(connection: Any, request: bytes) -> bytes:
            target = request.split(b" ")[1].decode()
            [agent] = re.findall(r"\r\nuser-agent: *([^\r]*)", request.decode(), re.IGNORECASE)
            with self._changed:
                self.by[target].append(agent)
                self._total += 1
                self._changed.notify_all()
            if number < SLOW:
                wait.wait(0.2)
            return page(target.encode() * 300, Content_Type="application/x-noise")

        return answer

    def wait(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self._total >= count, 600)


def test_every_url_is_fetched_once(tmp_path: Path, cassandra: str) -> None:
    keyspace = f"ingest_{uuid.uuid4().hex[:12]}"
    machines = [tmp_path / name for name in MACHINES]
    for folder in machines:
        folder.mkdir()
        (folder / "magazin.toml").write_text(
            'storage.plugin = "cassandra"\n'
            f'cassandra = {{ contact_points = ["{cassandra}"], keyspace = "{keyspace}" }}\n'
            f"worker = {{ threads = {THREADS} }}\n"
            f'fetch.user_agent = "{folder.name}"\n'
        )
    assert magazin(machines[0], "init")[0] == 0
    asked = Asked()
    with ExitStack() as stack:
        sources = [
            stack.enter_context(Source(asked.source(number), host=f"127.0.9.{number + 1}")) for number in range(HOSTS)
        ]
        urls = [source.url(f"/{number}/{n}") for n in range(EACH) for number, source in enumerate(sources)]
        feeder = subprocess.Popen(
            [*python("cli.main"), "ingest", "-", "--no-work", "--context", "c", "--data", str(machines[0])],
            env=ENVIRON,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        workers = []
        for folder in machines:
            command = [*python("cli.main"), "worker", "--data", str(folder)]
            workers.append(subprocess.Popen(command, env=ENVIRON, stderr=subprocess.DEVNULL))
            stack.callback(workers[-1].wait)
            stack.callback(workers[-1].kill)
        assert feeder.stdin is not None
        feeder.stdin.write("".join(f"{url}\n" for url in urls))
        feeder.stdin.close()
        for worker, moment in zip(workers[: len(KILLED)], (600, 1200), strict=True):
            asked.wait(moment)
            worker.kill()
        assert feeder.wait(600) == 0  # it waits for the outcomes
        status, out, err = magazin(machines[2], "status", "--json", timeout=600)
        assert status == 0, err
    assert len(asked.by) == HOSTS * EACH
    again = {target: agents for target, agents in asked.by.items() if len(agents) > 1}
    print(f"\nfetched again: {again}")
    for target, agents in again.items():  # a killed worker had begun with each, and with no more than its threads can
        assert all(agent in KILLED for agent in agents[:-1]), (target, agents)
    for killed in KILLED:
        assert sum(agents[:-1].count(killed) for agents in again.values()) <= THREADS
    found = json.loads(out)
    assert found["queue"]["total"] == 0
    assert found["originals"] == {"OK": HOSTS * EACH}
    status, out, err = magazin(machines[2], "check", "--json", timeout=600)
    assert (status, json.loads(out)["wrong"]) == (0, {}), err
