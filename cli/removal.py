"""``magazin rm`` and ``sweep``."""

from __future__ import annotations

import dataclasses
import json
import sys

import click

from cli.options import FAILED, Misused, flag, say, with_settings
from cli.settings import Settings
from cli.wiring import Magazin
from ingest.records import REFERENCE_ID, BadContext, check_context


@click.command()
@click.option("--context", "contexts", multiple=True, help="A context, with all of its references.")
@click.option("--reference", "references", multiple=True, metavar="ID", help="One reference.")
@with_settings
def rm(settings: Settings, contexts: tuple[str, ...], references: tuple[str, ...]) -> None:
    """Take references down. Their originals go with a later sweep, unless others refer to them.

    Caches on the way may answer until their max-age is over; docs/operating.md tells the bound.

    \b
    Examples:
      magazin rm --context exhibition-2019
      magazin rm --reference 0f0c7c3e-5c5e-5b0e-9b0a-3a1d2b3c4d5e
    """
    if not contexts and not references:
        raise Misused("name what to remove: --context or --reference")
    for context in contexts:
        try:
            check_context(context)
        except BadContext as error:
            raise Misused(str(error)) from None
    for reference in references:
        if not REFERENCE_ID.fullmatch(reference):
            raise Misused(f"reference {reference[:80]!r} must be 1 to 64 of A-Z a-z 0-9 -")
    magazin = Magazin(settings)
    for context in contexts:
        magazin.references.detach_context(context)
    for reference in references:
        magazin.references.detach(reference)
    magazin.close()


@click.command()
@flag("--grace", "sweep.grace")
@click.option("--dry-run", is_flag=True, help="Only count what would go.")
@click.option("--full", is_flag=True, help="Walk all originals, not only what was announced.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@with_settings
def sweep(settings: Settings, dry_run: bool, full: bool, as_json: bool) -> None:
    """Remove for good what nobody has referred to for the grace time. The worker does this by itself now and then.

    Exit status 1 when another sweep was running, and nothing was done.

    \b
    Examples:
      magazin sweep --dry-run
      magazin sweep --grace 24h --full --json
    """
    magazin = Magazin(settings)
    report = magazin.sweep.run(int(settings.sweep.grace * 1_000_000), dry_run=dry_run, full=full)
    magazin.close()
    if as_json:
        say(json.dumps({"clean": report.is_clean, **dataclasses.asdict(report)}))
    elif report.skipped:
        say("another sweep is running; nothing was done")
    else:
        say(
            f"{'would remove' if dry_run else 'removed'}: {report.originals} originals ({report.bytes} bytes), "
            f"{report.blobs} unfinished tries, {report.references} references of {report.contexts} contexts; "
            f"still referred to: {report.referenced}; too young: {report.young}"
        )
    if not report.is_clean:
        sys.exit(FAILED)
