"""Walks the interleavings of real code, one step for each call of the store.

Each actor runs in a greenlet and is stopped before every verb of the store (and before each read of a ``fetch``). A
schedule is replayed from the start, so everything must be deterministic: ids, clock and revisions are counted.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from greenlet import getcurrent, greenlet

from storage.memory import MemoryStore, Partition

Actor = Callable[[], Any]


class StepStore(MemoryStore):
    """A strict memory store without transactions that stops its actor before each step."""

    def __init__(self, new_rev: Callable[[], str]) -> None:
        super().__init__(strict=True, transactional=False, new_rev=new_rev)
        self.stepping = False

    def save(self) -> Callable[[], None]:
        """What brings the store back to what it holds now. Rows are replaced, never changed, and so can be shared."""
        saved = {
            name: {key: (dict(held.rows), list(held.order)) for key, held in partitions.items()}
            for name, partitions in self._data.items()
        }
        deleted, erased = set(self._deleted), set(self._erased)

        def back() -> None:
            for name, partitions in saved.items():
                self._data[name] = {}
                for key, (rows, order) in partitions.items():
                    held = self._data[name][key] = Partition()
                    held.rows, held.order = dict(rows), list(order)
            self._deleted, self._erased = set(deleted), set(erased)

        return back

    def _step(self) -> None:
        if self.stepping:
            scheduler = getcurrent().parent
            if scheduler is not None:
                scheduler.switch("step")

    def get(self, *args: Any, **kwargs: Any) -> Any:
        self._step()
        return super().get(*args, **kwargs)

    def read(self, *args: Any, **kwargs: Any) -> Any:
        self._step()
        return super().read(*args, **kwargs)

    def put(self, *args: Any, **kwargs: Any) -> Any:
        self._step()
        return super().put(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> Any:
        self._step()
        return super().delete(*args, **kwargs)

    def erase(self, *args: Any, **kwargs: Any) -> Any:
        self._step()
        return super().erase(*args, **kwargs)

    def commit(self, *args: Any, **kwargs: Any) -> Any:
        self._step()
        return super().commit(*args, **kwargs)


@dataclass
class Kill:
    """Actor ``actor`` is killed before its step ``step``: it never goes on, not even into its ``finally``."""

    actor: int
    step: int


@dataclass
class Run:
    """One schedule as it was run: which actor took each step, and who could have."""

    choices: list[int] = field(default_factory=list)
    options: list[tuple[int, ...]] = field(default_factory=list)
    results: dict[int, Any] = field(default_factory=dict)
    killed: int | None = None
    graveyard: list[greenlet] = field(default_factory=list)
    """A killed greenlet must not be collected before the check, or its ``finally`` would run."""

    def preemptions(self, upto: int) -> int:
        """Switches away from an actor that could have gone on."""
        return sum(
            self.choices[i] != self.choices[i - 1] and self.choices[i - 1] in self.options[i] for i in range(1, upto)
        )


def replay(actors: Sequence[Actor], prefix: Sequence[int], kill: Kill | None, pick: random.Random | None = None) -> Run:
    """Run the actors by this prefix of choices; after it without preemption, or at random."""
    run = Run()
    threads = [greenlet(actor) for actor in actors]
    steps = [0] * len(actors)
    alive = dict(enumerate(threads))
    current = -1
    while alive:
        if kill is not None and kill.actor in alive and steps[kill.actor] >= kill.step:
            run.graveyard.append(alive.pop(kill.actor))
            run.killed = kill.actor
            continue
        options = tuple(alive)
        position = len(run.choices)
        if position < len(prefix):
            current = prefix[position]
        elif pick is not None:
            current = pick.choice(options)
        elif current not in alive:
            current = options[0]
        run.choices.append(current)
        run.options.append(options)
        steps[current] += 1
        result = alive[current].switch()
        if alive[current].dead:
            run.results[current] = result
            del alive[current]
    return run


def schedules(world: Callable[[], tuple[Sequence[Actor], Callable[[Run], None]]], bound: int) -> int:
    """Every schedule with up to ``bound`` preemptions, each in a world of its own and then checked; how many."""
    count = 0
    for _ in _explore(world, bound, None):
        count += 1
    return count


def with_kills(world: Callable[[], tuple[Sequence[Actor], Callable[[Run], None]]], bound: int, victim: int) -> int:
    """The same, with one actor killed before each of its steps in turn."""
    count = 0
    for step in itertools.count():
        before, seen_kill = count, False
        for run in _explore(world, bound, Kill(victim, step)):
            count += 1
            seen_kill = seen_kill or run.killed is not None
        if not seen_kill:
            return before
    raise AssertionError


def sampled(
    world: Callable[[], tuple[Sequence[Actor], Callable[[Run], None]]], count: int, seed: int, kill: bool
) -> None:
    """Random schedules, with a random kill in each if wanted."""
    pick = random.Random(seed)
    for _ in range(count):
        actors, check = world()
        death = Kill(pick.randrange(len(actors)), pick.randrange(40)) if kill else None
        _checked(check, replay(actors, (), death, pick), death)


def _explore(
    world: Callable[[], tuple[Sequence[Actor], Callable[[Run], None]]], bound: int, kill: Kill | None
) -> Iterator[Run]:
    pending: list[list[int]] = [[]]
    while pending:
        prefix = pending.pop()
        actors, check = world()
        run = replay(actors, prefix, kill)
        for position in range(len(prefix), len(run.choices)):
            spent = run.preemptions(position)
            previous = run.choices[position - 1] if position else None
            for option in run.options[position]:
                if option == run.choices[position]:
                    continue
                preempts = previous is not None and previous != option and previous in run.options[position]
                if spent + preempts <= bound:
                    pending.append([*run.choices[:position], option])
        _checked(check, run, kill)
        yield run


def _checked(check: Callable[[Run], None], run: Run, kill: Kill | None) -> None:
    try:
        check(run)
    except AssertionError as error:
        raise AssertionError(f"schedule {run.choices}, kill {kill}: {error}") from error
