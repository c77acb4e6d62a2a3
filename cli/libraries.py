"""Versions of what Magazin stands on, and the floors below which known faults lie."""

from __future__ import annotations

import ctypes
import ctypes.util
import platform
import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata

from packaging.requirements import Requirement

from imaging import libvips
from imaging.formats import FORMATS, SVG
from imaging.outputs import outputs
from imaging.proof import readable
from storage.sqlite_connections import library_version

SQLITE = "3.51.3"  # before: the WAL reset bug with several connections
LIBVIPS = "8.18.3"
LIBHEIF, LIBWEBP = "1.22", "1.3.2"
BUNDLED = {"libheif": "1.23.0", "libwebp": "1.6.0"}  # in the wheel pyvips-binary since 8.18.3

NEEDED = {"jpeg", "png", "tiff", "webp"}


@dataclass(frozen=True)
class Finding:
    """``state``: ok, warn (works, and should be looked at) or bad. ``remedy`` says what to do."""

    name: str
    state: str
    text: str
    remedy: str = ""


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def floor(name: str, version: str, least: str, remedy: str, *, below: str = "bad") -> Finding:
    if numbers(version) >= numbers(least):
        return Finding(name, "ok", f"{version} (at least {least})")
    return Finding(name, below, f"{version} is older than {least}", remedy)


def libraries() -> Iterator[Finding]:
    yield floor("python", platform.python_version(), "3.11", "install a newer Python")
    yield floor("sqlite of the store", library_version(), SQLITE, "pip install --upgrade apsw")
    yield floor(
        "sqlite of the cache",
        sqlite3.sqlite_version,
        SQLITE,
        "it comes with Python; a damaged cache is rebuilt, so that this costs speed only",
        below="warn",
    )
    vips = ".".join(map(str, libvips.version()))
    yield floor("libvips", vips, LIBVIPS, f"pip install --force-reinstall --no-deps 'pyvips-binary>={LIBVIPS}'")
    wheel = _version("pyvips-binary")
    for name, least in (("libheif", LIBHEIF), ("libwebp", LIBWEBP)):
        if wheel is not None and numbers(wheel) == numbers(vips) >= numbers(LIBVIPS):
            yield Finding(name, "ok", f"at least {BUNDLED[name]}, within pyvips-binary {wheel}")
        elif (found := _shared(name)) is not None:
            yield floor(name, found, least, f"upgrade {name}, or pip install 'pyvips[binary]'")
        else:
            yield Finding(name, "warn", "version unknown", "pip install --upgrade 'pyvips[binary]'")


def packages() -> Iterator[Finding]:
    """Every requirement of the distribution; those of extras only tell whether they are there."""
    for text in metadata.requires("magazin") or []:
        wanted = Requirement(text)
        extra = _extra_of(wanted)
        if extra in ("tests", "lint", "browsers") or (wanted.marker and not extra and not wanted.marker.evaluate()):
            continue
        found = _version(wanted.name)
        label = f"{wanted.name} ({extra})" if extra else wanted.name
        if found is None:
            install = f"pip install 'magazin[{extra}]'" if extra else f"pip install {wanted.name}"
            yield Finding(label, "warn" if extra else "bad", "is missing", install)
        elif not wanted.specifier.contains(found, prereleases=True):
            yield Finding(
                label, "bad", f"{found} doesn't fit {wanted.specifier}", f"pip install '{text.split(';')[0]}'"
            )
        else:
            yield Finding(label, "ok", found)


def formats(svg: bool) -> Iterator[Finding]:
    """What is read is proved here and now; SVG only where it is switched on."""
    wanted = [known.name for known in (*FORMATS, *([SVG] if svg else []))]
    read = [name for name in readable() if name in wanted]
    yield Finding("formats read", "ok" if set(read) >= NEEDED else "bad", ", ".join(read))
    if missing := [name for name in wanted if name not in read]:
        yield Finding("formats not read", "warn", ", ".join(missing), "pip install 'magazin[images]'")
    yield Finding("formats written", "ok", ", ".join(outputs()))


def _extra_of(wanted: Requirement) -> str | None:
    match = re.search(r"extra == ['\"]([\w-]+)['\"]", str(wanted.marker or ""))
    return match[1] if match else None


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _shared(name: str) -> str | None:
    """The version that a shared library of the system tells."""
    path = ctypes.util.find_library({"libheif": "heif", "libwebp": "webp"}[name])
    if path is None:
        return None
    try:
        library = ctypes.CDLL(path)
        if name == "libheif":
            library.heif_get_version.restype = ctypes.c_char_p
            return str(library.heif_get_version().decode())
        packed = int(library.WebPGetDecoderVersion())
    except (OSError, AttributeError):
        return None
    return f"{packed >> 16 & 255}.{packed >> 8 & 255}.{packed & 255}"
