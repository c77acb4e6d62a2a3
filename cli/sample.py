"""What the repository keeps of settings and commands, printed from them: ``python -m cli.sample toml`` is
etc/magazin.toml, ``settings`` docs/settings.md, ``commands`` docs/commands.md. Tests hold them equal."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator

import click

from cli.main import main
from cli.settings import DEFINITIONS, SECTIONS


def toml() -> str:
    lines = [
        "# All settings with their defaults. The file read is --config FILE, else MAGAZIN_CONFIG, else magazin.toml in",
        "# the data folder. A variable MAGAZIN_<SECTION>_<KEY> goes over the file, a flag over both.",
    ]
    for section, made in SECTIONS.items():
        lines += ["", f"# {made.__doc__}", f"[{section}]"]
        for one in DEFINITIONS.values():
            if one.section == section:
                lines += [f"# {line}" for line in textwrap.wrap(one.doc, 110)]
                lines.append(f"{one.key} = {one.kind.write(one.default)}")
    return "\n".join(lines) + "\n"


def markdown() -> str:
    lines = [
        "# Settings",
        "",
        "A flag goes over an environment variable, a variable over the TOML file, the file over the defaults. The file",
        "is `--config FILE`, else `MAGAZIN_CONFIG`, else `magazin.toml` in the data folder. The data folder is",
        "`--data DIR`, else `MAGAZIN_DATA`, else `magazin-data`. Any setting is a flag too: `--set section.key=value`.",
        "",
        'Sizes are written `"2 GiB"` (1024) or `"2 GB"` (1000), durations `"30s"`, `"15m"`, `"24h"`, `"7d"`. Lists are',
        "comma-separated in a variable. An unknown name is an error that names the nearest known one.",
        "`etc/magazin.toml` has all of them with their defaults.",
    ]
    for section, made in SECTIONS.items():
        lines += [
            "",
            f"## [{section}]",
            "",
            f"{made.__doc__}",
            "",
            "| setting | default | variable | meaning |",
            "| --- | --- | --- | --- |",
        ]
        for one in DEFINITIONS.values():
            if one.section == section:
                doc = one.doc.replace("|", "\\|")
                lines.append(f"| `{one.key}` | `{one.kind.write(one.default)}` | `{one.variable}` | {doc} |")
    return "\n".join(lines) + "\n"


def commands() -> str:
    """The help of every command."""
    lines = ["# Commands", "", "What `magazin COMMAND --help` prints."]
    top = click.Context(main, info_name="magazin", terminal_width=100, help_option_names=["-h", "--help"])
    for context in [top, *_contexts(top)]:
        lines += ["", f"## {context.command_path}", "", "```", context.get_help().rstrip(), "```"]
    return "\n".join(line.rstrip() for line in "\n".join(lines).split("\n")) + "\n"


def _contexts(parent: click.Context) -> Iterator[click.Context]:
    """The commands of a group, and those of the groups among them."""
    group = parent.command
    if not isinstance(group, click.Group):
        return
    for name in group.list_commands(parent):
        if command := group.get_command(parent, name):
            context = click.Context(command, info_name=name, parent=parent, terminal_width=100)
            yield context
            yield from _contexts(context)


if __name__ == "__main__":
    sys.stdout.write({"toml": toml, "settings": markdown, "commands": commands}[sys.argv[1]]())
