"""Progress on standard error, where a person watches; nothing where a script does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)


@contextmanager
def counting(what: str, *, quiet: bool) -> Iterator[Callable[[int], object]]:
    """A counter of unknown end."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda done: None
        return
    with Progress(
        SpinnerColumn(), TextColumn(what), TextColumn("{task.completed:,}"), TimeElapsedColumn(), console=console
    ) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done: progress.update(task, completed=done)


@contextmanager
def bar(*, quiet: bool) -> Iterator[Callable[[int, int, str], object]]:
    """A bar: done, total so far, and a note."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda done, total, note: None
        return
    with Progress(
        BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[note]}"), TimeElapsedColumn(), console=console
    ) as progress:
        task = progress.add_task("", total=None, note="")
        yield lambda done, total, note: progress.update(task, completed=done, total=total, note=note)


@contextmanager
def transfer(name: str, size: int | None, *, quiet: bool) -> Iterator[Callable[[int], object]]:
    """Bytes done, of ``size`` where it is known, and how fast."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda done: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console) as progress:
        task = progress.add_task(escape(name), total=size)
        yield lambda done: progress.update(task, completed=done)
