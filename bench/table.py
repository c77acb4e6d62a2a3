"""What was measured, as Markdown."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bench import servers
from bench.measure import Figures, Workload, measure
from imaging.libvips import version
from storage.sqlite_connections import library_version

PACKAGES = ("falcon", "gunicorn", "granian", "pyvips", "diskcache", "apsw", "requests")


def compared(workload: Workload) -> str:
    """Measure it, and show every case beside the first."""
    return table(workload, measure(workload))


def table(workload: Workload, figures: Sequence[Figures]) -> str:
    lines = [
        f"## {workload.title}",
        "",
        workload.about,
        "",
        f"| case | per second | ÷ {figures[0].name} | CPU ms each | ÷ {figures[0].name} |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for one in figures:
        cells = (number(one.rate), number(one.rate_ratio), number(one.cost * 1000), number(one.cost_ratio))
        lines.append(f"| {one.name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def number(value: float) -> str:
    """Three digits that mean something, thousands in full."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def machine() -> str:
    """Where it was measured, with what, and how busy it was with other things."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    packages = [f"{name} {importlib.metadata.version(name)}" for name in PACKAGES if _is_installed(name)]
    programs = [said for name, flag in (("nginx", "-v"), ("wrk", "-v")) if (said := _version(name, flag))]
    return "\n".join(
        (
            f"- {os.cpu_count()} cores ({_processor()}), {memory:.0f} GiB, Linux {platform.release()}; "
            f"load average {os.getloadavg()[0]:.1f} at the beginning",
            f"- Python {platform.python_version()}, libvips {'.'.join(map(str, version()))}, "
            f"SQLite {library_version()}, {', '.join(packages)}",
            f"- {', '.join(programs) or 'neither nginx nor wrk'}",
        )
    )


def _is_installed(name: str) -> bool:
    try:
        return bool(importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return False


def _version(program: str, flag: str) -> str:
    path = servers.found(program)
    if path is None:
        return ""
    said = subprocess.run([path, flag], capture_output=True, text=True)
    found = re.search(r"\d+(?:\.\d+)+", said.stdout + said.stderr)
    return f"{program} {found[0] if found else ''}".strip()


def _processor() -> str:
    found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    return found[1] if found else platform.machine()
