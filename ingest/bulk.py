"""Many references at once: attach each, wait for the outcomes, tell how it went.

Everything that is done is in the store after each line, so that a run that was stopped goes on where it was when it
is started again: what is there already counts as done.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from ingest.entries import Entry
from ingest.fetch.url import BlockedUrl, InvalidUrl
from ingest.localfiles import NotTaken, Stopped, Taken, path_of
from ingest.records import BadContext, Original, Status
from ingest.references import References
from storage.interface import Store
from storage.schema import ORIGINALS

WINDOW: Final = 2000  # entries under way at once
LOOK: Final = 200  # of them looked at in one turn
PAUSE: Final = 0.25  # seconds between two turns without news
INVALID: Final = "INVALID"
KEPT: Final = 1000  # failures that are kept with their reason


class Files(Protocol):
    """What takes local files in; LocalFiles where that is allowed."""

    def put(self, context: str, path: Path, mime: str | None, stop: threading.Event) -> Taken: ...


@dataclass(frozen=True)
class Failure:
    """An entry that isn't OK: ``status`` INVALID (never attached), ERROR or RETRY (will be tried again later)."""

    entry: Entry
    status: str
    reason: str


@dataclass
class Summary:
    """``stored``: fetched or read now; ``present``: were there before; ``retry``: the worker tries again later."""

    total: int = 0
    stored: int = 0
    present: int = 0
    retry: int = 0
    error: int = 0
    invalid: int = 0
    stopped: bool = False
    failures: list[Failure] = field(default_factory=list)

    @property
    def done(self) -> int:
        return self.stored + self.present + self.retry + self.error + self.invalid

    @property
    def all_well(self) -> bool:
        return not self.stopped and self.stored + self.present == self.total

    def fail(self, entry: Entry, status: str, reason: str) -> None:
        name = status.lower()
        setattr(self, name, getattr(self, name) + 1)
        if len(self.failures) < KEPT:
            self.failures.append(Failure(entry, status, reason))


class Bulk:
    """``files`` is None where local files are not allowed. ``patient``: wait for the last try, not for the first."""

    def __init__(
        self,
        store: Store,
        references: References,
        *,
        files: Files | None = None,
        readers: int = 4,
        patient: bool = False,
        progress: Callable[[Summary], object] = lambda summary: None,
    ) -> None:
        self._store, self._references, self._files = store, references, files
        self._readers, self._patient, self._progress = readers, patient, progress
        self._waiting: deque[tuple[Entry, str]] = deque()  # and the original's id
        self._reading: dict[Future[Taken], Entry] = {}
        self._summary = Summary()

    def run(self, entries: Iterable[Entry], stop: threading.Event) -> Summary:
        """Take all in and wait for the outcomes, or until ``stop`` is set. StoreErrors pass."""
        self._summary.stopped = True
        with ThreadPoolExecutor(self._readers, "read") as pool:
            for entry in entries:
                while len(self._waiting) + len(self._reading) >= WINDOW and not stop.is_set():
                    self._look(stop)
                if stop.is_set():
                    break
                self._summary.total += 1
                self._take(entry, pool, stop)
                self._progress(self._summary)
            else:
                while (self._waiting or self._reading) and not stop.is_set():
                    self._look(stop)
                self._summary.stopped = bool(self._waiting or self._reading)
            pool.shutdown(cancel_futures=True)  # after a stop; else there are none
        for future, entry in self._reading.items():
            if not future.cancelled():
                self._read(entry, future)
        return self._summary

    def _take(self, entry: Entry, pool: ThreadPoolExecutor, stop: threading.Event) -> None:
        if entry.wrong is not None:
            self._summary.fail(entry, INVALID, entry.wrong)
            return
        path = path_of(entry.url)
        if path is not None and self._files is not None:
            self._reading[pool.submit(self._files.put, entry.context, path, entry.mime, stop)] = entry
        elif path is not None:
            self._summary.fail(entry, INVALID, "no URL; local files are read only with --allow-files")
        else:
            self._attach(entry)

    def _attach(self, entry: Entry) -> None:
        try:
            _, original = self._references.attach(entry.context, entry.url, entry.mime)
        except (BadContext, InvalidUrl, BlockedUrl) as error:
            self._summary.fail(entry, INVALID, str(error))
            return
        if original.status == Status.OK:
            self._summary.present += 1
        elif not self._decided(entry, original):
            self._waiting.append((entry, original.original_id))

    def _look(self, stop: threading.Event) -> None:
        """Look at what has waited longest; rest when there is no news."""
        before = self._summary.done
        for future in [future for future in self._reading if future.done()]:
            self._read(self._reading.pop(future), future)
        batch = [self._waiting.popleft() for _ in range(min(LOOK, len(self._waiting)))]
        rows = self._store.fetch((ORIGINALS, (original_id,)) for _, original_id in batch)
        for (entry, original_id), found in zip(batch, rows, strict=True):
            if not found:
                self._summary.fail(entry, Status.ERROR, "was removed meanwhile")
            elif not self._decided(entry, Original.of(found[0])):
                self._waiting.append((entry, original_id))
        self._progress(self._summary)
        if self._summary.done == before:
            stop.wait(PAUSE)

    def _decided(self, entry: Entry, original: Original) -> bool:
        if original.status == Status.OK:
            self._summary.stored += 1
        elif original.status == Status.ERROR or (original.status == Status.RETRY and not self._patient):
            self._summary.fail(entry, original.status, f"{original.outcome}: {original.reason}")
        else:
            return False
        return True

    def _read(self, entry: Entry, future: Future[Taken]) -> None:
        try:
            taken = future.result()
        except BadContext as error:
            self._summary.fail(entry, INVALID, str(error))
        except OSError as error:
            self._summary.fail(entry, Status.ERROR, error.strerror or str(error))
        except Stopped:
            pass  # neither done nor failed
        except NotTaken as error:
            self._summary.fail(entry, Status.ERROR, str(error))
        else:
            self._summary.stored += taken.is_new
            self._summary.present += not taken.is_new
