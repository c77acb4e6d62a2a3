"""``magazin files ls``, ``revisions`` and ``check``."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

import click

from cli.fileoptions import BUCKET, PATTERN, SPAN, as_json, in_bucket, opened
from cli.options import FAILED, say, with_settings
from cli.progress import counting
from cli.settings import Settings
from cli.wiring import Magazin
from storage.bucket_check import Report
from storage.bucket_record import FileRecord, Status


@click.command()
@click.argument("prefix", default="")
@in_bucket
@click.option("--pattern", type=PATTERN, help="Only names that contain this (RE2); a full scan.")
@click.option("--all", "every", is_flag=True, help="All revisions, not only the newest of each name.")
@click.option("--deleted", "status", flag_value="Deleted", help="Files that are deleted, and not yet for ever.")
@click.option("--incomplete", "status", flag_value="Incomplete", help="Uploads under way.")
@click.option("--limit", type=click.IntRange(1), help="So many lines at most.")
@as_json
@with_settings
def ls(
    settings: Settings,
    prefix: str,
    bucket: str,
    pattern: str | None,
    every: bool,
    status: str | None,
    limit: int | None,
    as_json: bool,
) -> None:
    """List files, by name. PREFIX: how the names begin.

    \b
    Examples:
      magazin files ls
      magazin files ls 2026/ --all --json
      magazin files ls --deleted
    """
    with opened(settings, bucket) as files:
        found = files.find(prefix=prefix, pattern=pattern, status=status or Status.COMPLETE)
        for record in islice(found if every or status else _newest(found), limit):
            _show(record, as_json)


@click.command()
@click.argument("name")
@in_bucket
@as_json
@with_settings
def revisions(settings: Settings, name: str, bucket: str, as_json: bool) -> None:
    """List the revisions of a name, oldest first: the first line is revision 0.

    \b
    Examples:
      magazin files revisions report.pdf
    """
    with opened(settings, bucket) as files:
        files.get_by_name(name)
        for record in files.find(filename=name, newest_first=False):
            _show(record, as_json)


@click.command()
@click.option("--bucket", type=BUCKET, help="Only this one.  [default: all]")
@click.option("--repair", is_flag=True, help="Mend what can be mended; without it nothing is changed.")
@click.option(
    "--older-than",
    type=SPAN,
    default="24h",
    show_default=True,
    help="How long an upload must have shown no sign of life to count as broken off.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@with_settings
def check(settings: Settings, bucket: str | None, repair: bool, older_than: float, as_json: bool) -> None:
    """Look at every file, chunk and index row of the buckets. Runs beside a server.

    A repair removes uploads that were broken off, ends removals that were, deletes chunks that belong to nothing, and
    puts index rows back. Missing and damaged chunks can't be mended. Exit status 1 while anything is wrong.

    \b
    Examples:
      magazin files check
      magazin files check --repair --json
    """
    magazin = Magazin(settings)
    reports = {}
    for name in sorted(magazin.buckets.names()) if bucket is None else [bucket]:
        with counting(f"files of {name} checked", quiet=as_json) as progress:
            found = magazin.buckets.open(name).check(round(older_than * 1_000_000), repair, progress)
        reports[name] = found
    magazin.close()
    sound = all(report.is_sound for report in reports.values())
    if as_json:
        shown = {name: _counted(report) for name, report in reports.items()}
        say(json.dumps({"sound": sound, "buckets": shown}, ensure_ascii=False))
    else:
        for name, report in reports.items():
            _tell(name, report)
    if not sound:
        sys.exit(FAILED)


def _newest(found: Iterator[FileRecord]) -> Iterator[FileRecord]:
    """The first of each name."""
    before = None
    for record in found:
        if record.filename != before:
            yield record
        before = record.filename


def _show(record: FileRecord, as_json: bool) -> None:
    shown = record.shown()
    if as_json:
        click.echo(json.dumps(shown, ensure_ascii=False))
        return
    moment = shown["finishedAt"] or shown["startedAt"]
    click.echo(f"{record.length or 0:>14}  {moment[:19]}Z  {record.id}  {record.filename}")


def _counted(report: Report) -> dict[str, Any]:
    counts = {one.name: getattr(report, one.name) for one in dataclasses.fields(report)}
    return counts | {"findings": [dataclasses.asdict(finding) for finding in report.findings]}


def _tell(bucket: str, report: Report) -> None:
    for finding in report.findings:
        say(f"{finding.kind}{', mended' if finding.repaired else ''}: {finding.text}")
    counts = ", ".join(f"{count} {status.lower()}" for status, count in report.files.items())
    say(f"{bucket}: {counts}; {report.bytes} bytes")
    wrong = Counter(report.found) - Counter(report.repaired)
    left = ", ".join(f"{count} {kind}" for kind, count in sorted(wrong.items()))
    say(f"wrong: {left}" if left else "nothing is wrong" if not report.found else "all was mended")
