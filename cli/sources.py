"""Where settings come from: flags over ``MAGAZIN_<SECTION>_<KEY>`` over a TOML file over the defaults."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cli.settings import DEFINITIONS, SECTIONS, Definition, Settings

PREFIX = "MAGAZIN_"
OWN = ("MAGAZIN_DATA", "MAGAZIN_CONFIG", "MAGAZIN_LIFELINE")
"""Variables that are no settings: the data folder, the file, and the supervisor's pipe."""


class SettingsError(Exception):
    """A setting that can't be read; the message names it, its value and what is wanted."""


def load(
    *,
    data: Path | None = None,
    config: Path | None = None,
    flags: Mapping[str, str] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Settings:
    """Read all sources. ``flags`` maps ``section.key`` to text.

    The file is ``config``, else ``MAGAZIN_CONFIG``, else ``magazin.toml`` in the data folder where that exists.
    Raises SettingsError.
    """
    data = (data or Path(environ.get("MAGAZIN_DATA") or "magazin-data")).absolute()
    named = config or (Path(environ["MAGAZIN_CONFIG"]) if environ.get("MAGAZIN_CONFIG") else None)
    file = _existing(data / "magazin.toml") if named is None else named.absolute()
    values = _from_file(file) if file else {}
    values |= _from_environment(environ)
    for name, text in (flags or {}).items():
        section, _, key = name.partition(".")
        values[section, key] = _read(_known(section, key, name), text, f"--set {name}")
    made = {
        section: kind(**{key: value for (owner, key), value in values.items() if owner == section})
        for section, kind in SECTIONS.items()
    }
    return Settings(data=data, config=file, **made)


def _existing(file: Path) -> Path | None:
    return file if file.exists() else None


def _from_file(file: Path) -> dict[tuple[str, str], Any]:
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{file}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file}: {error}") from error
    values = {}
    for section, table in document.items():
        if section not in SECTIONS:
            raise SettingsError(f"{file}: unknown section [{section}]{_nearest(section, SECTIONS, '[{}]')}")
        if not isinstance(table, dict):
            raise SettingsError(f"{file}: [{section}] is a section, not a value")
        for key, raw in table.items():
            values[section, key] = _read(_known(section, key, f"{file}"), raw, f"{file}")
    return values


def _from_environment(environ: Mapping[str, str]) -> dict[tuple[str, str], Any]:
    variables = {one.variable: one for one in DEFINITIONS.values()}
    values = {}
    for name, text in sorted(environ.items()):
        if not name.startswith(PREFIX) or name in OWN:
            continue
        if name not in variables:
            raise SettingsError(f"{name}: unknown variable{_nearest(name, (*variables, *OWN[:2]), '{}')}")
        one = variables[name]
        values[one.section, one.key] = _read(one, text, name)
    return values


def _known(section: str, key: str, source: str) -> Definition:
    if (section, key) in DEFINITIONS:
        return DEFINITIONS[section, key]
    names = [f"[{one}] {other}" for one, other in DEFINITIONS]
    near = [f"[{section}] {other}" for other in difflib.get_close_matches(key, _keys(section), 1)]
    hint = f"; the nearest known one is {near[0]}" if near else _nearest(f"[{section}] {key}", names, "{}")
    raise SettingsError(f"{source}: unknown setting [{section}] {key}{hint}")


def _keys(section: str) -> list[str]:
    return [key for owner, key in DEFINITIONS if owner == section]


def _nearest(name: str, names: Iterable[str], shape: str) -> str:
    near = difflib.get_close_matches(name, list(names), 1, 0.0)
    return f"; the nearest known one is {shape.format(near[0])}" if near else ""


def _read(one: Definition, raw: Any, source: str) -> Any:
    try:
        return one.kind.read(raw)
    except (ValueError, TypeError, KeyError) as error:
        shown = "this value" if one.secret else repr(raw)
        raise SettingsError(f"{source}: {one.name} wants {one.kind.wanted}, not {shown}") from error


def variables(flags: Mapping[str, str]) -> dict[str, str]:
    """The same flags as environment variables, for child processes."""
    return {f"{PREFIX}{name.replace('.', '_')}".upper(): text for name, text in flags.items()}
