"""Locks between processes: one file, and a byte of it for each name.

The kernel frees a lock when its holder dies, however it dies, and nothing accumulates: the file stays empty, since a
lock may lie past its end. (filelock needs a file for each name, and somebody to sweep them.) They are Linux's open
file description locks, so that two objects in one process exclude each other as well, and closing one file never
frees another's lock. Two names on one byte are possible (1 in 2^62) and harmless: one waits for the other.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import sys
import threading
from pathlib import Path

import xxhash

_BUSY = (errno.EAGAIN, errno.EACCES)


class ByteLocks:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._mutex = threading.Lock()
        self._held: set[int] = set()

    def take(self, name: bytes) -> int | None:
        """Take the lock of this name without waiting: a token for :meth:`free`, or None when another holds it.

        Raises OSError where there are no such locks: the folder is missing or not writable, or this isn't Linux.
        """
        # Opened anew for each lock: after the file was deleted, all meet again in the new one.
        token = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            _lock_byte(token, xxhash.xxh3_64_intdigest(name) >> 2)
        except OSError as error:
            os.close(token)
            if error.errno in _BUSY:
                return None
            raise
        with self._mutex:
            self._held.add(token)
        return token

    def free(self, token: int) -> None:
        with self._mutex:
            if token not in self._held:
                return
            self._held.discard(token)
        os.close(token)

    def after_fork(self) -> None:
        """In a forked child: give back what came with the fork, else the child would keep its parent's locks alive."""
        held, self._held, self._mutex = self._held, set(), threading.Lock()
        for token in held:
            os.close(token)


def _lock_byte(file: int, offset: int) -> None:
    if sys.platform != "linux":
        raise OSError(errno.ENOLCK, "no open file description locks here")
    request = struct.pack("hhqqi0q", fcntl.F_WRLCK, os.SEEK_SET, offset, 1, 0)
    fcntl.fcntl(file, fcntl.F_OFD_SETLK, request)
