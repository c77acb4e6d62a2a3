"""How much memory processes take at most: Linux' high-water mark of each (proc(5), VmHWM), which can be set back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path


def tree(roots: Sequence[int]) -> list[int]:
    """These processes and all their descendants."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):  # gone meanwhile
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(folder.name))
    found, left = [], list(roots)
    while left:
        found.append(left.pop())
        left += children.get(found[-1], [])
    return found


def set_back(pids: Iterable[int]) -> dict[int, int]:
    """Let the marks begin at what is in use now: that, in bytes, by process."""
    used = {}
    for pid in pids:
        Path(f"/proc/{pid}/clear_refs").write_text("5")
        used[pid] = _status(pid, "VmRSS")
    return used


def peaks(pids: Iterable[int]) -> dict[int, int]:
    """The marks, in bytes, by process."""
    return {pid: _status(pid, "VmHWM") for pid in pids}


def grown(before: dict[int, int]) -> int:
    """By how many bytes the process that grew most went beyond what it had used."""
    return max(peak - before[pid] for pid, peak in peaks(before).items())


def _status(pid: int, field: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * 1024
    raise KeyError(field)
