"""The command ``magazin``."""

from __future__ import annotations

import errno
import importlib
import os
import sys
from contextlib import suppress
from pathlib import Path

import click

from cli.options import EXIT_STATUS, Failed, Misused, StoreGone
from cli.sources import SettingsError
from storage.errors import StoreError

COMMANDS = {
    "init": "cli.stores",
    "schema": "cli.stores",
    "serve": "cli.serve",
    "worker": "cli.work",
    "ingest": "cli.ingesting",
    "status": "cli.queues",
    "retry": "cli.queues",
    "rm": "cli.removal",
    "sweep": "cli.removal",
    "check": "cli.stores",
    "files": "cli.files",
    "doctor": "cli.doctor",
    "sign": "cli.signing",
    "token": "cli.stores",
    "settings": "cli.stores",
    "demo": "cli.demo",
}
"""Each command and the module of its function; a command imports no other's."""


class Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(COMMANDS[cmd_name])
        found = getattr(module, "settings_" if cmd_name == "settings" else cmd_name)
        assert isinstance(found, click.Command)
        return found

    def invoke(self, ctx: click.Context) -> object:
        try:
            result = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()  # what fails here is told; at the interpreter's end it would be a trace
            return result
        except SettingsError as error:
            raise Misused(str(error)) from error
        except StoreError as error:
            raise StoreGone(f"the store: {error or type(error).__name__}") from error
        except OSError as error:
            if error.errno == errno.EPIPE:  # whoever read this has had enough; click ends quietly
                raise
            _drop_output()
            raise Failed(f"{error.filename or 'input or output'}: {error.strerror or error}") from error


def _drop_output() -> None:
    """What is still buffered would fail once more at the interpreter's end, with a trace and a status of its own."""
    with suppress(OSError, AttributeError, ValueError):
        sys.stdout.flush()
    with suppress(OSError, AttributeError, ValueError), Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EXIT_STATUS,
)
@click.version_option(package_name="magazin")
def main() -> None:
    """Magazin takes in binaries by URL, keeps them, and serves them and scaled images of them.

    \b
    Examples:
      magazin token
      magazin serve --listen 127.0.0.1:8000 --data /srv/magazin
      magazin ingest urls.txt --data /srv/magazin
      magazin status --json --data /srv/magazin
    """


if __name__ == "__main__":
    main(prog_name="magazin")
