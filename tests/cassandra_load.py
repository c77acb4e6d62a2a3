"""A steady load on a store, by threads that remember what they were told, and what must be true of it afterwards."""

from __future__ import annotations

import threading
import time
import uuid
from types import TracebackType
from typing import Self

from storage.contract_rows import LINES, NOTES, line
from storage.errors import StoreError, Unknown
from storage.interface import Store
from storage.table import ABSENT, Put


class Actor(threading.Thread):
    """Does one thing again and again. ``seconds`` are those of each step, ``failures`` what ended in an error."""

    def __init__(self, store: Store) -> None:
        super().__init__(daemon=True)
        self.store, self.name_ = store, uuid.uuid4().hex
        self.seconds: list[float] = []
        self.failures: list[StoreError] = []
        self.crash: BaseException | None = None
        self.done = threading.Event()
        self.went = threading.Condition()

    def step(self) -> None:
        raise NotImplementedError

    def check(self) -> None:
        raise NotImplementedError

    def run(self) -> None:
        while not self.done.is_set() and self.crash is None:
            begun = time.monotonic()
            try:
                self.step()
            except StoreError as error:
                self.failures.append(error)
            except BaseException as error:
                self.crash = error
            with self.went:
                self.seconds.append(time.monotonic() - begun)
                self.went.notify_all()

    def go(self, steps: int) -> None:
        """Wait until it has gone so many steps further."""
        with self.went:
            goal = len(self.seconds) + steps
            assert self.went.wait_for(lambda: len(self.seconds) >= goal or self.crash is not None, 300)
        if self.crash is not None:
            raise self.crash


class Writer(Actor):
    """Puts rows, and reads one that it put before."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.told: list[int] = []

    def step(self) -> None:
        page = len(self.seconds)
        self.store.put(LINES, line(self.name_, page, note="n" * 1000))
        self.told.append(page)
        known = self.told[page * 7 % len(self.told)]
        assert self.store.get(LINES, (self.name_, known, "a")) == line(self.name_, known, note="n" * 1000)

    def check(self) -> None:
        """What was acknowledged is there."""
        there = {row["page"] for row in self.store.read(LINES, (self.name_,), limit=1_000_000, columns=["page"])}
        assert set(self.told) <= there


class Counter(Actor):
    """Adds one to a number, which others may do too."""

    def __init__(self, store: Store, name: str = "") -> None:
        super().__init__(store)
        self.name_ = name or self.name_
        self.told = self.unknown = self.conflicts = 0
        self.store.commit(NOTES, (self.name_,), [Put({"name": self.name_, "size": 0}, ABSENT)])

    def step(self) -> None:
        row = self.store.get(NOTES, (self.name_,))
        assert row is not None
        try:
            changed = {"name": self.name_, "size": row["size"] + 1}
            if self.store.commit(NOTES, (self.name_,), [Put(changed, row["rev"])]):
                self.told += 1
            else:
                self.conflicts += 1
        except Unknown:
            self.unknown += 1
            raise

    def check(self) -> None:
        """Alone: each addition that was told counts once, one of unknown outcome may."""
        size = self._size()
        assert self.told <= size <= self.told + self.unknown, (self.told, size, self.unknown)

    @staticmethod
    def check_together(counters: list[Counter]) -> None:
        """With others, an addition that met a conflict may have been applied and then overtaken."""
        told = sum(one.told for one in counters)
        more = sum(one.unknown + one.conflicts for one in counters)
        size = counters[0]._size()
        assert told <= size <= told + more, (told, size, more)

    def _size(self) -> int:
        row = self.store.get(NOTES, (self.name_,))
        assert row is not None
        size: int = row["size"]
        return size


class Load:
    """``with Load(actors) as load``: they run until the block ends."""

    def __init__(self, actors: list[Actor]) -> None:
        self.actors = actors

    def __enter__(self) -> Self:
        for actor in self.actors:
            actor.start()
        self.go(20)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for actor in self.actors:
            actor.done.set()
        for actor in self.actors:
            actor.join()

    def go(self, steps: int) -> None:
        for actor in self.actors:
            actor.go(steps)

    @property
    def failures(self) -> list[StoreError]:
        return [error for actor in self.actors for error in actor.failures]

    def report(self) -> str:
        seconds = sorted(one for actor in self.actors for one in actor.seconds)
        p50, p99 = seconds[len(seconds) // 2], seconds[len(seconds) * 99 // 100]
        return f"{len(seconds)} steps, p50 {p50 * 1e3:.1f} ms, p99 {p99 * 1e3:.0f} ms, worst {seconds[-1] * 1e3:.0f} ms"
