"""What a case costs, and how cases that took turns compare."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

TICK = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Sample:
    """One round of one case. Seconds; ``cpu`` is what the server spent, the client not counted."""

    requests: int
    wall: float
    cpu: float

    @property
    def rate(self) -> float:
        return self.requests / self.wall

    @property
    def cost(self) -> float:
        """CPU seconds of one request."""
        return self.cpu / self.requests


@dataclass(frozen=True)
class Case:
    name: str
    run: Callable[[], Sample]
    """One round. It asserts that the answers are right before it counts them."""


@dataclass(frozen=True)
class Workload:
    """``cases[0]`` is the limit that the others are told in terms of."""

    title: str
    about: str
    cases: Sequence[Case]
    rounds: int


@dataclass(frozen=True)
class Figures:
    """Medians over the rounds of one case."""

    name: str
    rate: float
    rate_ratio: float
    cost: float
    cost_ratio: float


def measure(workload: Workload) -> list[Figures]:
    """Let the cases take turns, once unmeasured, then ``rounds`` times, in an order that moves on by one each time."""
    samples: dict[str, list[Sample]] = {case.name: [] for case in workload.cases}
    for turn in range(workload.rounds + 1):
        first = turn % len(workload.cases)
        for case in (*workload.cases[first:], *workload.cases[:first]):
            sample = case.run()
            if turn:
                samples[case.name].append(sample)
    return figures(samples)


def figures(samples: dict[str, list[Sample]]) -> list[Figures]:
    """Ratios are taken within each round, to the first case in it, and only then their median."""
    limit = next(iter(samples.values()))
    return [
        Figures(
            name,
            median(sample.rate for sample in taken),
            median(sample.rate / best.rate for sample, best in zip(taken, limit, strict=True)),
            median(sample.cost for sample in taken),
            median(sample.cost / best.cost for sample, best in zip(taken, limit, strict=True)),
        )
        for name, taken in samples.items()
    ]


def here(work: Callable[[], int]) -> Sample:
    """A round of ``work`` in this process, which returns how many requests it was worth."""
    wall, cpu = time.perf_counter(), time.process_time()
    requests = work()
    return Sample(requests, time.perf_counter() - wall, time.process_time() - cpu)


def cpu_of(roots: Sequence[int]) -> float:
    """CPU seconds spent so far by processes and all their descendants, dead ones that were waited for included."""
    children: dict[int, list[int]] = {}
    spent: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):  # gone meanwhile
                # proc(5): ppid is the 4th field, utime stime cutime cstime the 14th to 17th
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                children.setdefault(int(fields[1]), []).append(int(folder.name))
                spent[int(folder.name)] = sum(map(int, fields[11:15]))
    total, left = 0, list(roots)
    while left:
        process = left.pop()
        total += spent.get(process, 0)
        left += children.get(process, [])
    return total * TICK
