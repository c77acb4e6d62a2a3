"""Who holds a lease: a process, named so that another one on the same machine can tell whether it still lives."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

IsDead: TypeAlias = Callable[[str], bool]


def _started(pid: int) -> str | None:
    """The start time of a process in clock ticks since boot, so that a pid that is used again is not taken for it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return None


def _machine() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        boot = "-"
    return f"{socket.gethostname()}+{boot}+{_pid_namespace()}"


def _pid_namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return "-"


def this_process() -> str:
    """A name for this process, unique for ever: machine, pid, start, and something random."""
    return f"{_machine()}|{os.getpid()}|{_started(os.getpid())}|{secrets.token_hex(4)}"


def is_dead(owner: str) -> bool:
    """True only when the owner was a process of this machine that is gone; False when in doubt."""
    parts = owner.split("|")
    if len(parts) != 4 or parts[0] != _machine() or not parts[1].isdigit() or parts[2] == "None":
        return False
    if not Path("/proc/self/stat").exists():
        return False
    return _started(int(parts[1])) != parts[2]
