"""What the workloads of one run share: folders, pictures in store, and servers that end with their workload."""

from __future__ import annotations

import dataclasses
import shutil
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench import servers
from bench.pictures import LARGE, SMALL, photo
from bench.servers import Server
from cli.settings import Images, Settings
from cli.wiring import Magazin

PICTURES = Path("build/bench")
"""Where drawn pictures are kept from one run to the next."""
FILE = 20_000_000
"""Bytes of an original that is no picture."""


@dataclass
class Lab:
    """``seconds``: of one round of one case. ``references``: how many the grown store of workload ``growth`` has.
    ``stack`` ends what a workload has started."""

    folder: Path
    seconds: float
    rounds: int
    references: int
    stack: ExitStack = field(default_factory=ExitStack)
    missing: list[str] = field(default_factory=list)

    def start(self, server: AbstractContextManager[Server]) -> Server:
        return self.stack.enter_context(server)

    def has(self, program: str) -> bool:
        """Whether a peer is installed; those that aren't are told at the end."""
        there = servers.found(program) is not None or (program == "granian" and find_spec("granian") is not None)
        if not there and program not in self.missing:
            self.missing.append(program)
        return there

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @cached_property
    def files(self) -> Path:
        """``large.jpg``, ``small.jpg`` and ``file.bin`` as plain files, for nginx and for peers."""
        folder = self.folder / "files"
        folder.mkdir()
        shutil.copy(photo(PICTURES, LARGE), folder / "large.jpg")
        shutil.copy(photo(PICTURES, SMALL), folder / "small.jpg")
        (folder / "file.bin").write_bytes(bytes(range(251)) * (FILE // 251) + bytes(FILE % 251))
        return folder

    @cached_property
    def stock(self) -> dict[str, str]:
        """The references of these files, by their names, in the store at ``data``."""
        return self._stocked(self.data, Images())

    @cached_property
    def unprepared(self) -> Path:
        """The data folder of another store, with the same references and nothing prepared at ingest."""
        folder = self.folder / "unprepared"
        self._stocked(folder, Images(pyramid_pixels=0, boxes=False))
        return folder

    def _stocked(self, data: Path, images: Images) -> dict[str, str]:
        with parts(data, images=images) as magazin:
            return {
                path.name: magazin.local_files.put("bench", path, None, threading.Event()).reference.reference_id
                for path in sorted(self.files.iterdir())
            }


class Missing(Exception):
    """Something without which a workload says nothing."""


@contextmanager
def parts(data: Path, **sections: Any) -> Iterator[Magazin]:
    """Magazin's parts in this process, over this data folder; ``sections`` of its settings that aren't the defaults."""
    magazin = Magazin(dataclasses.replace(Settings(data=data), **sections))
    try:
        yield magazin
    finally:
        magazin.close()
