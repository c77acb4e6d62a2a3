"""What all commands share: where the data is, the settings, and how an error ends."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from cli import logs, sources
from cli.settings import DEFINITIONS

Command = TypeVar("Command", bound=Callable[..., Any])

FAILED, WRONG_USE, NO_STORE = 1, 2, 3
EXIT_STATUS = """
\b
Exit status:
  0  done, and all is well
  1  done, and something is not well: what, was printed
  2  wrong arguments or settings
  3  the store can't be reached, or has no room
"""


class Failed(click.ClickException):
    """One clear line and exit status 1."""

    exit_code = FAILED


class Misused(click.ClickException):
    exit_code = WRONG_USE


class StoreGone(click.ClickException):
    exit_code = NO_STORE


def flag(name: str, setting: str) -> Callable[[Command], Command]:
    """A command's own flag for one setting, ``section.key``."""
    section, key = setting.split(".")
    one = DEFINITIONS[section, key]
    doc = f"{one.doc} [default: {one.kind.write(one.default).strip(chr(34))}]"
    return click.option(name, setting.replace(".", "__"), metavar=one.key.upper(), help=doc)


def with_settings(function: Command) -> Command:
    """Adds --data, --config and --set, and calls the command with ``settings``; flags go to its context's ``obj``, as
    the environment of child processes."""

    @click.option("--data", type=click.Path(path_type=Path), help="The data folder. [default: ./magazin-data]")
    @click.option(
        "--config", type=click.Path(path_type=Path), help="A TOML file. [default: magazin.toml in the data folder]"
    )
    @click.option(
        "--set", "pairs", multiple=True, metavar="SECTION.KEY=VALUE", help="Any setting; see docs/settings.md."
    )
    def command(data: Path | None, config: Path | None, pairs: Sequence[str], **arguments: Any) -> Any:
        flags = {
            name.replace("__", "."): value
            for name in list(arguments)
            if "__" in name and (value := arguments.pop(name)) is not None
        }
        for pair in pairs:
            name, equals, value = pair.partition("=")
            if not equals:
                raise Misused(f"--set wants SECTION.KEY=VALUE, not {pair!r}")
            flags[name] = value
        settings = sources.load(data=data, config=config, flags=flags)
        logs.configure(settings.log)
        environ = {"MAGAZIN_DATA": str(settings.data), **sources.variables(flags)}
        if settings.config:
            environ["MAGAZIN_CONFIG"] = str(settings.config)
        click.get_current_context().obj = environ
        return function(settings, **arguments)

    return cast(Command, functools.update_wrapper(command, function))


def say(line: str = "") -> None:
    """A line for people or scripts, on standard output, at once."""
    click.echo(line)
    sys.stdout.flush()
