"""``magazin init``, ``schema``, ``check``, ``token`` and ``settings``."""

from __future__ import annotations

import dataclasses
import json
import sys

import click

from cli.moments import moment
from cli.options import FAILED, say, with_settings
from cli.progress import counting
from cli.settings import DEFINITIONS, Settings
from cli.wiring import TABLES, Magazin
from storage.cassandra_cql import schema_text
from storage.cassandra_options import replication


@click.command()
@with_settings
def init(settings: Settings) -> None:
    """Make the data folder and the store's tables. Harmless when they are there.

    The embedded store needs no init: every command makes what is missing.

    \b
    Examples:
      magazin init --data /srv/magazin
      MAGAZIN_STORAGE_PLUGIN=cassandra magazin init
    """
    magazin = Magazin(settings)
    magazin.create()
    magazin.close()
    say(f"ready: {settings.storage.plugin}, data in {settings.data}")


@click.command()
@with_settings
def schema(settings: Settings) -> None:
    """Print the keyspace and the tables that `magazin init` makes in Cassandra, as CQL.

    \b
    Examples:
      magazin schema > schema.cql
      magazin schema --set cassandra.keyspace=photos --set cassandra.replication=dc1:3,dc2:3
    """
    cassandra = settings.cassandra
    say(schema_text(cassandra.keyspace, replication(cassandra.replication), TABLES).rstrip())


@click.command()
@click.option("--quick", is_flag=True, help="Only the rows; don't read what is stored.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@with_settings
def check(settings: Settings, quick: bool, as_json: bool) -> None:
    """Check every original (its parts, their checksums, its scaled images), every reference and every index.

    Runs beside a server. Missing index rows are put back, stale ones deleted, litter is announced to the sweep. Bytes
    are never changed. Exit status 1 when anything was wrong; litter and originals in ERROR aren't.

    \b
    Examples:
      magazin check
      magazin check --quick --json
    """
    magazin = Magazin(settings)
    with counting("originals checked", quiet=as_json) as progress:
        found = magazin.check.run(bytes_too=not quick, progress=progress)
    magazin.close()
    counts = {one.name: getattr(found, one.name) for one in dataclasses.fields(found) if one.name != "findings"}
    if as_json:
        texts = [dataclasses.asdict(one) for one in found.findings]
        say(json.dumps({"sound": found.is_sound, **counts, "findings": texts}, ensure_ascii=False))
    else:
        for finding in found.findings:
            say(f"{finding.kind}: {finding.text}")
        statuses = ", ".join(f"{count} {status}" for status, count in sorted(found.statuses.items())) or "none"
        say(f"originals: {found.originals} ({statuses}), {found.bytes} bytes; references: {found.references}")
        say(
            f"litter: {found.unreferenced} originals without a reference, {found.dead} references of removed contexts, "
            f"{found.unnamed} unfinished tries, {found.stale} index rows deleted"
        )
        wrong = ", ".join(f"{count} {kind}" for kind, count in sorted(found.wrong.items()))
        say(f"wrong: {wrong}" if wrong else "nothing is wrong")
    if not found.is_sound:
        sys.exit(FAILED)


@click.command()
@click.option("--label", default="", help="What the token is for; shown by --list.")
@click.option("--list", "listed", is_flag=True, help="Show the tokens that there are, without their secrets.")
@click.option("--revoke", metavar="ID", help="Make this token invalid, at once and everywhere.")
@click.option("--json", "as_json", is_flag=True, help="JSON: an object, or with --list a list.")
@with_settings
def token(settings: Settings, label: str, listed: bool, revoke: str | None, as_json: bool) -> None:
    """Make a token for writing and listing, and print it, this once. The store keeps its hash only.

    \b
    Examples:
      magazin token --label portal
      magazin token --list
      magazin token --revoke 1b9d6bcd
    """
    magazin = Magazin(settings)
    try:
        if listed:
            tokens = sorted(magazin.tokens.list(), key=lambda one: one.created)
            if as_json:
                say(json.dumps([dataclasses.asdict(one) for one in tokens]))
            for one in () if as_json else tokens:
                say(f"{one.token_id}  {moment(one.created)}  {one.label}")
        elif revoke is not None:
            if not magazin.tokens.revoke(revoke):
                raise click.ClickException(f"no token {revoke!r}; magazin token --list shows them")
            say(json.dumps({"revoked": revoke}) if as_json else f"revoked {revoke}")
        else:
            text = magazin.tokens.issue(label)
            say(json.dumps({"token": text}) if as_json else text)
    finally:
        magazin.close()


@click.command("settings")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, section by section.")
@with_settings
def settings_(settings: Settings, as_json: bool) -> None:
    """Show the settings in force, and where they come from: flags over variables over the file over the defaults.

    \b
    Examples:
      magazin settings --set cache.size="10 GiB"
      magazin settings --json
    """
    shown: dict[str, dict[str, str]] = {}
    for one in DEFINITIONS.values():
        value = getattr(getattr(settings, one.section), one.key)
        secret = one.secret and value != one.default
        shown.setdefault(one.section, {})[one.key] = '"…"' if secret else one.kind.write(value)
    if as_json:
        say(json.dumps({"data": str(settings.data), "config": settings.config and str(settings.config), **shown}))
        return
    say(f"# data: {settings.data}\n# file: {settings.config or 'none'}")
    for section, values in shown.items():
        say(f"\n[{section}]")
        for key, text in values.items():
            say(f"{key} = {text}")
