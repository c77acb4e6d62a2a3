"""The cache's database: diskcache without its pickles, and with failures that tell what to do about them.

diskcache keeps the rows and their order: least recently stored, since least recently used writes at every read. What
it would do of its own accord and doesn't here: unpickle what lies in its folder (CVE-2025-69872), hand out damaged
values, catch up late with its size limit and know none in files, leave files behind after a full disk.
"""

from __future__ import annotations

import sqlite3
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import diskcache
import xxhash

from storage.valuefiles import Foreign, ValueFiles

DATABASE: str = diskcache.core.DBNAME
INLINE_BELOW = 1_000_000
"""Bytes; smaller values lie in the database, where reading them costs half of what a file does."""

_APPLICATION, _FORMAT = 0x4D61675A, 1  # marks in the header of the database: whose it is, and how seals are made
_PAGE = 16 * 1024  # at 4 KiB a value of 90 KB takes three times as long to read
_LOG_PAGES = 256  # of the write-ahead log: 4 MiB before it is written back, and no more stays on the disk
_LOCKED = 0.5  # seconds to wait for another's write
_SETTINGS: dict[str, str | int] = {
    # All of them are named: one that isn't would be taken from the database's own table of settings.
    "statistics": 0,
    "tag_index": 0,
    "eviction_policy": "least-recently-stored",
    "cull_limit": 1,
    "sqlite_auto_vacuum": 1,
    "sqlite_cache_size": 128,  # pages, for each thread; every value is read once, so that more would only hold memory
    "sqlite_journal_mode": "wal",
    "sqlite_journal_size_limit": _LOG_PAGES * _PAGE,
    "sqlite_mmap_size": 0,  # a mapped file that is cut kills the process that reads it (SIGBUS)
    "sqlite_synchronous": 0,  # what a power failure may damage is found out, and syncs under the lock hold others up
    "sqlite_wal_autocheckpoint": _LOG_PAGES,
    "disk_min_file_size": INLINE_BELOW,
    "disk_pickle_protocol": 0,
}
_PASSING = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_TOOBIG,
}


class Hindered(Exception):
    """No fault of the database: a full disk, a missing permission, a folder that is gone or another program's."""


class Locked(Hindered):
    """Another process has been writing for longer than a call waits."""


class Broken(Exception):
    """The database is damaged, of another format or was tampered with. Only a new one helps."""


class Unsound(Exception):
    """One value isn't what was stored: damaged, or planted."""


@dataclass
class _Arrival:
    """A value on its way in, and the file that it was written to, so that a failed write can be taken back."""

    value: bytes
    file: str | None = None


class _Disk(diskcache.Disk):  # type: ignore[misc]
    """Keys and values are bytes and nothing else: no pickle is written, and none is ever loaded."""

    files: ValueFiles

    def put(self, key: bytes) -> tuple[memoryview, bool]:
        return memoryview(key), True

    def get(self, key: object, raw: object) -> bytes:
        raise Unsound("keys are never read back")

    def store(self, value: _Arrival, read: bool, key: object = None) -> tuple[int, int, str | None, bytes | None]:
        if len(value.value) < self.min_file_size:
            return 0, diskcache.core.MODE_RAW, None, value.value
        value.file = self.files.write(value.value)
        return len(value.value), diskcache.core.MODE_BINARY, value.file, None

    def fetch(self, mode: object, filename: Any, value: object, read: bool) -> bytes:
        if mode == diskcache.core.MODE_RAW and isinstance(value, bytes):
            return value
        if mode == diskcache.core.MODE_BINARY:
            return self.files.read(filename)
        raise Unsound(f"a value of mode {mode!r}")

    def remove(self, file_path: Any) -> None:
        with suppress(Foreign):
            self.files.remove(file_path)


class _Diskcache(diskcache.Cache):  # type: ignore[misc]
    """With limits that hold after every write."""

    file_limit: int
    evicted: Callable[[int], None]

    def _cull(self, now: float, sql: Callable[..., Any], cleanup: Callable[[str], None], limit: object = None) -> None:
        """Called in the transaction of each write; the original removes ten rows at most, whatever their size."""

        def drop(rows: Iterable[tuple[int, str]]) -> int:
            count = 0
            for rowid, file in rows:
                sql("DELETE FROM Cache WHERE rowid = ?", (rowid,))
                cleanup(file)
                count += 1
            return count

        beyond = (
            "SELECT rowid, filename FROM Cache WHERE filename IS NOT NULL ORDER BY store_time DESC LIMIT -1 OFFSET ?"
        )
        oldest = "SELECT rowid, filename FROM Cache ORDER BY store_time LIMIT 4"
        count = drop(sql(beyond, (self.file_limit,)).fetchall())
        while self._used(sql) > self.size_limit and (dropped := drop(sql(oldest).fetchall())):
            count += dropped
        if count:
            self.evicted(count)

    @staticmethod
    def _used(sql: Callable[..., Any]) -> int:
        used: int = sql(
            "SELECT (pages.page_count - free.freelist_count) * page.page_size + files.value"
            " FROM pragma_page_count AS pages, pragma_freelist_count AS free, pragma_page_size AS page,"
            " Settings AS files WHERE files.key = 'size'"
        ).fetchone()[0]
        return used


class Rows:
    """Values by name, of one folder. Every call may raise Hindered or Broken; connections are one for each thread.

    ``evicted`` is told how many rows the limits took, which are those of :class:`storage.cache.Cache`.
    """

    def __init__(
        self, folder: Path, files: ValueFiles, *, size_limit: int, file_limit: int, evicted: Callable[[int], None]
    ) -> None:
        self._path, self._log, self._files = folder / DATABASE, folder / f"{DATABASE}-wal", files
        with _told():
            _prepare(self._path)
            rows = _Diskcache(str(folder), timeout=_LOCKED, disk=_Disk, size_limit=size_limit, **_SETTINGS)
            rows.disk.files, rows.file_limit, rows.evicted = files, file_limit, evicted
            rows._sql("CREATE INDEX IF NOT EXISTS Cache_files ON Cache (store_time) WHERE filename IS NOT NULL")
        self._rows = rows
        self._identity = identity(self._path)
        self._writing = threading.Lock()

    def get(self, name: bytes) -> bytes | None:
        """The value as it was put, or None. Raises Unsound."""
        try:
            value, seal = self._rows.get(name, tag=True)
        except Unsound:
            raise
        except Foreign as error:
            raise Unsound(f"a foreign file: {error}") from None
        except Exception as error:
            raise _verdict(error) from error
        if value is None or seal == _seal(name, value):
            found: bytes | None = value
            return found
        raise Unsound("checksum or length")

    def put(self, name: bytes, value: bytes) -> None:
        """All or nothing, also on the disk."""
        arrival = _Arrival(value)
        try:
            with self._write():
                self._rows.set(name, arrival, tag=_seal(name, value))
        except Exception:
            if arrival.file is not None:
                self._files.remove(arrival.file)
            raise
        self._trim_log()

    def remove(self, name: bytes) -> None:
        with self._write():
            self._rows.delete(name)

    def files(self) -> list[str]:
        """The names of all value files that there should be."""
        with _told():
            return [name for (name,) in self._rows._sql("SELECT filename FROM Cache WHERE filename IS NOT NULL")]

    def in_place(self) -> bool:
        """Whether the database that is open here still is the one that others would open."""
        return self._identity is not None and identity(self._path) == self._identity

    @contextmanager
    def _write(self) -> Iterator[None]:
        # Threads queue here. At SQLite's own lock they would sleep and try again, and some never have luck.
        if not self._writing.acquire(timeout=_LOCKED):
            raise Locked("by another thread of this process")
        try:
            with _told():
                yield
        finally:
            self._writing.release()

    def _trim_log(self) -> None:
        # SQLite begins the log anew only at a moment without readers, which never comes under load.
        try:
            size = self._log.stat().st_size
        except OSError:
            return
        if size > 2 * _LOG_PAGES * _PAGE:
            with self._write():
                self._rows._sql("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        """Close this thread's connection. Those of other threads close with the threads, or with this object."""
        self._rows.close()


def identity(path: Path) -> tuple[int, int] | None:
    """What tells a file from another one at its place; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _seal(name: bytes, value: bytes) -> bytes:
    """Length and checksum, bound to the name, so that a value in another's place is found as well."""
    return struct.pack("<QQ", len(value), xxhash.xxh3_64_intdigest(value, xxhash.xxh3_64_intdigest(name)))


def _prepare(path: Path) -> None:
    """Before diskcache opens it: the page size of a new database, and a look at one that is there.

    diskcache takes every row of the table of settings for an attribute of its own, and waits a minute for a lock.
    """
    with closing(sqlite3.connect(path, timeout=_LOCKED, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA page_size = {_PAGE}")
        connection.execute("PRAGMA auto_vacuum = FULL")
        connection.execute("BEGIN IMMEDIATE")
        (owner,) = connection.execute("PRAGMA application_id").fetchone()
        (form,) = connection.execute("PRAGMA user_version").fetchone()
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        if (owner, form, tables) == (0, 0, set()):
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {_FORMAT}")
        elif owner != _APPLICATION:
            raise Hindered(f"{path} belongs to another program")
        elif form != _FORMAT:
            raise Broken(f"format {form}")
        if "Settings" in tables:
            known = {*_SETTINGS, *diskcache.core.METADATA, "size_limit"}
            strange = {key for (key,) in connection.execute("SELECT key FROM Settings")} - known
            if strange:
                raise Broken(f"settings that nobody made: {min(map(repr, strange)):.80}")
        connection.execute("COMMIT")


def _verdict(error: Exception) -> Exception:
    """What a failure within diskcache means."""
    if isinstance(error, Hindered | Broken):
        return error
    cause: BaseException = error
    # diskcache says Timeout for whatever hinders a transaction, and hides a failure behind that of its ROLLBACK.
    if (isinstance(error, diskcache.Timeout) or "cannot rollback" in str(error)) and error.__context__ is not None:
        cause = error.__context__
    code = getattr(cause, "sqlite_errorcode", None)
    code = code & 0xFF if isinstance(code, int) else None
    text = f"{type(cause).__name__}: {cause}"
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return Locked(text)
    if code in _PASSING or isinstance(cause, OSError | MemoryError):
        return Hindered(text)
    return Broken(text)


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise _verdict(error) from error
