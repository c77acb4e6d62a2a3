"""Value files of the cache: those too large for its database, in up to 256 folders.

Names come out of a database that may have been tampered with, so a name is checked before anything is opened or
removed. Nothing is synced: a file cut by a power failure is found by its checksum, which lies in the database.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

_NAME = re.compile(r"[0-9a-f]{2}/[0-9a-f]{30}\.val")
_FOLDER = re.compile(r"[0-9a-f]{2}")
_TRIES = 10


class Foreign(Exception):
    """Not a name or a file that was made here."""


class ValueFiles:
    """``largest``: bytes of the largest file that is ever written here, so that none beyond is ever read."""

    def __init__(self, folder: Path, largest: int, entropy: Callable[[int], bytes] = os.urandom) -> None:
        self._folder, self._largest, self._entropy = folder, largest, entropy

    def write(self, data: bytes) -> str:
        """Write a new file and return its name. After an OSError nothing is left of it."""
        digits = self._entropy(16).hex()
        name = f"{digits[:2]}/{digits[2:]}.val"
        path = self._folder / name
        file = _create(path)
        try:
            with os.fdopen(file, "wb", buffering=0) as writer:
                rest = memoryview(data)
                while rest:
                    rest = rest[writer.write(rest) :]
        except BaseException:
            self.remove(name)
            raise
        return name

    def read(self, name: str) -> bytes:
        """The whole file. Raises OSError when it is gone, Foreign when it can't be one of ours."""
        # A link could lead anywhere, and a pipe would block.
        file = os.open(self._path(name), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(file, "rb", buffering=0) as reader:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode) or found.st_size > self._largest:
                raise Foreign(name)
            return reader.read()

    def remove(self, name: str) -> None:
        """Remove a file, and its folder when it was the last one there. Gone already, or not removable: nothing."""
        path = self._path(name)
        with suppress(OSError):
            path.unlink()
        with suppress(OSError):
            path.parent.rmdir()

    def sweep(self, known: Callable[[], Iterable[str]], now: float, grace: float) -> int:
        """Remove the files that nobody knows, as killed writers leave them, and the empty folders; how many files.

        Younger than ``grace`` seconds, a file may still wait for its row. One whose writer takes longer is lost to
        the cache, and asking for it is a miss.
        """
        old = [name for name, made in self._all() if abs(now - made) > grace]
        lost = set(old).difference(known()) if old else set()
        for name in lost:
            self.remove(name)
        for folder in self._folders():
            with suppress(OSError):
                folder.rmdir()
        return len(lost)

    def _path(self, name: str) -> Path:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise Foreign(repr(name))
        return self._folder / name

    def _folders(self) -> Iterator[Path]:
        with suppress(OSError), os.scandir(self._folder) as entries:
            for entry in entries:
                if _FOLDER.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                    yield Path(entry.path)

    def _all(self) -> Iterator[tuple[str, float]]:
        for folder in self._folders():
            with suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    name = f"{folder.name}/{entry.name}"
                    if _NAME.fullmatch(name):
                        with suppress(OSError):
                            yield name, entry.stat(follow_symlinks=False).st_mtime


def _create(path: Path) -> int:
    """Create the file, and its folder, which another may remove at any moment, being empty."""
    for _ in range(_TRIES):
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with suppress(FileNotFoundError):
            return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    raise FileNotFoundError(path)
