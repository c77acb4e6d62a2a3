"""``magazin doctor``."""

from __future__ import annotations

import dataclasses
import json
import resource
import shutil
import sys
from collections.abc import Iterator
from importlib import metadata

import click

from app.viewerfiles import bundle
from cli.libraries import Finding, formats, libraries, packages
from cli.options import FAILED, say, with_settings
from cli.settings import Settings
from cli.sources import SettingsError
from cli.wiring import Magazin
from storage.errors import StoreError
from storage.interface import Advising

SCARCE = 2 << 30  # bytes free, below which a warning is due
FILES = 1024
MARKS = {"ok": "ok  ", "warn": "WARN", "bad": "BAD "}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@with_settings
def doctor(settings: Settings, as_json: bool) -> None:
    """Tell what Magazin runs on: versions and their floors, formats, storage, cache; what is missing, how to get it.

    Exit status 1 when anything is bad; warnings aren't.

    \b
    Examples:
      magazin doctor
      magazin doctor --json --data /srv/magazin
    """
    found = [*examined(settings)]
    sick = any(one.state == "bad" for one in found)
    if as_json:
        say(json.dumps({"healthy": not sick, "findings": [dataclasses.asdict(one) for one in found]}))
    else:
        width = max(len(one.name) for one in found)
        for one in found:
            say(f"{MARKS[one.state]} {one.name:{width}}  {one.text}{f' → {one.remedy}' if one.remedy else ''}")
    if sick:
        sys.exit(FAILED)


def examined(settings: Settings) -> Iterator[Finding]:
    yield Finding("magazin", "ok", metadata.version("magazin"))
    yield from libraries()
    yield from packages()
    yield from formats(settings.images.svg)
    yield _viewer()
    yield Finding("settings", "ok", str(settings.config or "no file: defaults, variables, flags"))
    magazin = Magazin(settings)
    yield from _storage(magazin)
    yield from _cache(magazin)
    yield from _machine(settings)
    magazin.close()


def _viewer() -> Finding:
    if bundle().links.scripts:
        return Finding("viewer", "ok", "its page has its scripts")
    return Finding("viewer", "warn", "its page shows plain images: its script isn't here", "make viewer, in a checkout")


def _storage(magazin: Magazin) -> Iterator[Finding]:
    plugin, data = magazin.settings.storage.plugin, magazin.settings.data
    try:
        tokens = list(magazin.tokens.list())
        kept = type(magazin.blobs).__name__
        dangers = list(magazin.store.advice()) if isinstance(magazin.store, Advising) else []
    except (StoreError, SettingsError, OSError) as error:
        yield Finding("storage", "bad", f"{plugin}: {error or type(error).__name__}", "see docs/operating.md")
        return
    yield Finding("storage", "ok", f"{plugin}, {kept}, data in {data}")
    yield from (Finding("storage", "warn", danger.text, danger.remedy) for danger in dangers)
    access = magazin.settings.access
    if access.open_writes:
        yield Finding("access", "warn", f"writes are open to {access.open_writes}", "unset [access] open_writes")
    elif not tokens:
        yield Finding("access", "warn", "there is no token, so that nobody can write over HTTP", "magazin token")
    else:
        yield Finding("access", "ok", f"{len(tokens)} tokens")


def _cache(magazin: Magazin) -> Iterator[Finding]:
    cache = magazin.settings.cache
    magazin.cache.set("doctor", b"probe")
    if magazin.cache.get("doctor") == b"probe":
        yield Finding("cache", "ok", f"up to {cache.size} bytes and {cache.files} files")
    else:
        yield Finding("cache", "warn", "keeps nothing", "is its folder writable, and is there room?")
    magazin.cache.evict("doctor")


def _machine(settings: Settings) -> Iterator[Finding]:
    folder = next(folder for folder in (settings.data, *settings.data.parents) if folder.is_dir())
    free = shutil.disk_usage(folder).free
    state = "ok" if free > SCARCE else "warn"
    yield Finding("disk", state, f"{free >> 20} MiB free in {settings.data}", "" if state == "ok" else "make room")
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = files >= FILES or files == resource.RLIM_INFINITY
    yield Finding("open files", "ok" if enough else "warn", str(files), "" if enough else "raise ulimit -n")
