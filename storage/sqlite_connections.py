"""Connections to one SQLite file: one for each thread, none across a fork, every error as one of ours.

apsw, because it brings an SQLite of its own: those before 3.51.3 may damage a database when its WAL is reset. A process
that has the file open here must not open it with another SQLite (the module sqlite3) too: neither sees the other's
locks, and closing one drops those of both.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakSet

import apsw

from storage.errors import Full, StoreError, TooLarge, Unavailable, Unknown
from storage.table import Row

PAGE = 16384  # bytes; small transactions as fast as with 4,096, parts of 512 KiB as with 32,768
_SETTINGS = f"""
    PRAGMA synchronous = FULL;
    PRAGMA wal_autocheckpoint = {(16 << 20) // PAGE};
    PRAGMA journal_size_limit = {64 << 20};
    PRAGMA cache_size = -4000;
    PRAGMA temp_store = MEMORY;
    PRAGMA trusted_schema = OFF;
    PRAGMA cell_size_check = ON
"""
_BUSY = 0.001  # seconds between two tries for the write lock: about as long as a write takes


class Connection:
    """What one thread uses; ``lock`` is held by who uses or closes it."""

    def __init__(self, raw: apsw.Connection) -> None:
        self.raw, self.lock = raw, threading.RLock()
        self.closed = self.in_unit = False
        self._cursor = raw.cursor()
        self._serial, self.commits = next(_SERIALS), 0

    def execute(self, text: str, values: Sequence[Any] = ()) -> None:
        for _ in self._cursor.execute(text, values):
            pass  # to the end: a statement left in the middle keeps its snapshot

    def rows(self, text: str, names: tuple[str, ...], values: Sequence[Any]) -> list[Row]:
        return [dict(zip(names, row, strict=True)) for row in self._cursor.execute(text, values)]

    def state(self) -> object:
        """Another one after each commit, of this connection or of any other."""
        if self.in_unit:
            return object()
        [row] = self._cursor.execute("PRAGMA data_version")  # doesn't count commits of its own connection
        return self._serial, row[0], self.commits

    def close(self) -> None:
        self.closed = True
        self.raw.close()


class _Process:
    """What belongs to one process and must not be used by its children."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.local = threading.local()
        self.guard = threading.Lock()  # of ``opened``
        self.opened: WeakSet[Connection] = WeakSet()
        self.held: list[Connection] = []
        self.writer = threading.Lock()  # who waits here is woken at once; SQLite's own waits are naps

    @property
    def connection(self) -> Connection | None:
        return getattr(self.local, "connection", None)


class Connections:
    """``wait``: seconds after which a writer that finds no turn raises Unavailable."""

    def __init__(self, path: Path, wait: float) -> None:
        self._path, self._wait, self._closed = path, wait, False
        self._process = _Process()
        with _GUARD:
            _ALL.add(self)

    def rows(self, text: str, names: tuple[str, ...], values: Sequence[Any]) -> list[Row]:
        """The answer of a SELECT. Sees what was committed before, and this thread's own unit."""
        connection = self._acquire()
        try:
            return connection.rows(text, names, values)
        except apsw.Error as error:
            raise self._translated(error) from error
        finally:
            connection.lock.release()

    def state(self) -> object:
        """See :class:`~storage.interface.Watchful`."""
        connection = self._acquire()
        try:
            return connection.state()
        except apsw.Error as error:
            raise self._translated(error) from error
        finally:
            connection.lock.release()

    @contextmanager
    def unit(self) -> Iterator[Connection]:
        """A transaction of this thread; one within another joins it."""
        process = self._here()
        if process.connection is not None and process.connection.in_unit:
            yield process.connection
            return
        if not process.writer.acquire(timeout=self._wait):
            raise Unavailable(f"{self._path}: no turn to write within {self._wait} s")
        try:
            connection = self._acquire()
            try:
                connection.execute("BEGIN IMMEDIATE")
                connection.in_unit = True
                try:
                    yield connection
                    self._check_alive(connection)
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.raw.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
                finally:
                    connection.in_unit = False
                    connection.commits += 1
            except apsw.Error as error:
                raise self._translated(error, writing=True) from error
            finally:
                connection.lock.release()
        finally:
            process.writer.release()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A unit of its own, or a step of the one under way; a step that fails is taken back alone."""
        connection = self._here().connection
        if connection is None or not connection.in_unit:
            with self.unit() as connection:
                yield connection
            return
        self._check_alive(connection)
        try:
            connection.execute("SAVEPOINT step")
            try:
                yield connection
            except BaseException:
                if connection.raw.in_transaction:
                    connection.execute("ROLLBACK TO step")
                raise
            finally:
                if connection.raw.in_transaction:
                    connection.execute("RELEASE step")
        except apsw.Error as error:
            raise self._translated(error, writing=True) from error

    def close(self) -> None:
        """Close those of all threads, each when the verb or unit under way in it is over."""
        self._closed = True
        process = self._here()
        with process.guard:
            for connection in process.opened:
                if connection.lock.acquire(timeout=self._wait):
                    connection.close()
                    connection.lock.release()

    def before_fork(self) -> None:
        """Close what a child would inherit: even an unused copy of it would let go of the file's locks (SQLite, «How
        to corrupt», 2.6). Threads that go on in this process open new ones."""
        process = self._here()
        process.guard.acquire()
        for connection in process.opened:
            if connection.lock.acquire(timeout=self._wait):
                process.held.append(connection)
                if not connection.in_unit:
                    connection.close()

    def after_fork(self) -> None:
        """In the parent."""
        process = self._process
        while process.held:
            process.held.pop().lock.release()
        process.guard.release()

    def begin_process(self) -> None:
        """In the child. What is open nevertheless is kept as it is: closing it here is as harmful as using it."""
        _INHERITED.extend(connection for connection in self._process.opened if not connection.closed)
        self._process = _Process()

    def _here(self) -> _Process:
        if self._process.pid != os.getpid():  # a fork that no hook saw
            self.begin_process()
        return self._process

    def _acquire(self) -> Connection:
        """This thread's connection, locked."""
        while True:
            process = self._here()
            connection = process.connection or self._open(process)
            connection.lock.acquire()
            if not connection.closed:
                return connection
            connection.lock.release()
            process.local.connection = None

    def _open(self, process: _Process) -> Connection:
        with process.guard:
            if self._closed:
                raise Unavailable(f"{self._path}: this store is closed")
            try:
                raw = apsw.Connection(str(self._path), statementcachesize=400)
                raw.set_busy_handler(_Patience(self._wait))
                connection = Connection(raw)
                connection.execute(f"PRAGMA page_size = {PAGE}")
                self._switch_to_wal(connection)
                connection.execute(_SETTINGS)
            except apsw.Error as error:
                raise self._translated(error) from error
            process.opened.add(connection)
            process.local.connection = connection
            return connection

    def _switch_to_wal(self, connection: Connection) -> None:
        """SQLite's busy handler isn't asked when two processes do this to a new file at once."""
        patience, tries = _Patience(self._wait), 0
        while True:
            try:
                [row] = connection.rows("PRAGMA journal_mode = WAL", ("mode",), ())
            except apsw.BusyError:
                if not patience(tries):
                    raise
                tries += 1
                continue
            if row["mode"] != "wal":
                raise StoreError(
                    f"{self._path}: no write-ahead log is possible here; the folder must be on a local disk"
                )
            return

    def _check_alive(self, connection: Connection) -> None:
        if not connection.raw.in_transaction:
            raise StoreError(f"{self._path}: this unit was rolled back when one of its writes failed")

    def _translated(self, error: apsw.Error, writing: bool = False) -> StoreError:
        said = f"{self._path}: {error}"
        if isinstance(error, apsw.FullError) or getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE:
            return Full(said)
        if isinstance(error, apsw.BusyError | apsw.LockedError | apsw.ProtocolError | apsw.CantOpenError):
            return Unavailable(said)
        if isinstance(error, apsw.CorruptError | apsw.NotADBError):
            return StoreError(f"{said}. The database is damaged: restore it from a backup, or try «sqlite3 … .recover»")
        if isinstance(error, apsw.TooBigError):
            return TooLarge(said)
        if isinstance(error, apsw.IOError) and writing:
            return Unknown(said)
        return StoreError(said)


class _Patience:
    """Whether to try again after so many tries, having napped."""

    def __init__(self, wait: float) -> None:
        self._wait, self._end = wait, 0.0

    def __call__(self, tries: int) -> bool:
        now = time.monotonic()
        if tries == 0:
            self._end = now + self._wait
        if now >= self._end:
            return False
        time.sleep(_BUSY)
        return True


_SERIALS = itertools.count()
_GUARD = threading.Lock()  # of ``_ALL``
_ALL: WeakSet[Connections] = WeakSet()
_INHERITED: list[Connection] = []


def _before_fork() -> None:
    _GUARD.acquire()
    for connections in _ALL:
        connections.before_fork()


def _after_fork_in_parent() -> None:
    for connections in _ALL:
        connections.after_fork()
    _GUARD.release()


def _after_fork_in_child() -> None:
    for connections in _ALL:
        connections.begin_process()
    _GUARD.release()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)


def library_version() -> str:
    """Of the SQLite in use."""
    return str(apsw.sqlite_lib_version())
