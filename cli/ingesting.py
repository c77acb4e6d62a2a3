"""``magazin ingest``."""

from __future__ import annotations

import dataclasses
import io
import json
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO

import click

from cli.options import FAILED, flag, say, with_settings
from cli.progress import bar
from cli.settings import Settings
from cli.stopping import stop_at
from cli.wiring import Magazin
from ingest.bulk import Bulk, Summary
from ingest.entries import Entry, entries, lines
from ingest.fetch.url import mask
from ingest.localfiles import files, leads_out

SHOWN = 20  # failures, for people
HOW_TO_TAKE_FILES = "files and folders themselves are taken in with --allow-files"


@click.command()
@click.argument("sources", nargs=-1, required=True, metavar="FILE|-…")
@click.option("--context", default="default", show_default=True, help="For lines that name no context.")
@click.option(
    "--allow-files",
    is_flag=True,
    help="Also take local files in: those that lists name, and files and folders given as FILE.",
)
@click.option("--wait-retries", is_flag=True, help="Wait for the last try of what fails, not only for the first.")
@click.option("--no-work", is_flag=True, help="Only queue and wait; leave the work to workers that run elsewhere.")
@click.option("--json", "as_json", is_flag=True, help="The summary as one JSON object.")
@flag("--threads", "worker.threads")
@with_settings
def ingest(
    settings: Settings,
    sources: tuple[str, ...],
    context: str,
    allow_files: bool,
    wait_retries: bool,
    no_work: bool,
    as_json: bool,
) -> None:
    """Take in many URLs, and wait for the outcomes. It works the queue off itself, beside any other worker.

    FILE is a list (- is standard input): a URL a line; CSV with a header that names url, and context and mime if it
    has them; or JSON lines with these fields. With --allow-files it may also be a file or a folder to take in.

    Stopped by Ctrl-C, the same command goes on where it was: nothing is lost, nothing is doubled.

    \b
    Exit status: 0 when all are in store, 1 when any isn't.

    \b
    Examples:
      magazin ingest urls.txt --context exhibition-2019
      cat records.jsonl | magazin ingest - --json
      magazin ingest scans/ --allow-files --context scans
    """
    stop = stop_at(signal.SIGTERM, signal.SIGINT, once=True)  # the second ends even a wait for standard input
    magazin = Magazin(settings)
    with ExitStack() as stack:
        listed = chained(sources, context, allow_files, stack)
        show = stack.enter_context(bar(quiet=as_json))
        bulk = Bulk(
            magazin.store,
            magazin.references,
            files=magazin.local_files if allow_files else None,
            readers=settings.worker.threads,
            patient=wait_retries,
            progress=lambda found: show(found.done, found.total, note(found)),
        )
        ended = threading.Event()
        if not no_work:
            hands = magazin.hands()
            thread = threading.Thread(target=hands.run, args=(ended,), name="hands")
            thread.start()
            stack.callback(thread.join)
        stack.callback(ended.set)
        summary = bulk.run(listed, stop)
    magazin.close()
    report(summary, as_json)
    if not summary.all_well:
        sys.exit(FAILED)


def chained(sources: tuple[str, ...], context: str, allow_files: bool, stack: ExitStack) -> Iterator[Entry]:
    """The entries of all sources, lazily; every list is opened first, so that a wrong name is told at once."""
    opened: list[Iterable[Entry]] = []
    for source in sources:
        path = Path(source)
        if source == "-":
            stream = io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8", errors="surrogateescape")
            opened.append(entries(lines(stream), context))
        elif allow_files and (path.is_dir() or (path.is_file() and not is_list(path))):
            opened.append(walked(path, context))
        else:
            try:
                text: TextIO = stack.enter_context(path.open(encoding="utf-8", errors="surrogateescape"))
                if path.is_file() and b"\0" in begin(path):
                    raise click.ClickException(f"{source}: no list of URLs; {HOW_TO_TAKE_FILES}")
            except IsADirectoryError as error:
                raise click.ClickException(f"{source}: a folder; {HOW_TO_TAKE_FILES}") from error
            except OSError as error:
                raise click.ClickException(f"{source}: {error.strerror}") from error
            opened.append(entries(lines(text), context))
    return (entry for one in opened for entry in one)


def walked(path: Path, context: str) -> Iterator[Entry]:
    """An entry for a file, or for each file of a folder."""
    for number, file in enumerate(files(path), 1):
        wrong = "a link that leads out of the folder; name the file itself" if leads_out(path, file) else None
        yield Entry(number, str(file), context, wrong=wrong)


def is_list(path: Path) -> bool:
    """Whether a file begins like a list of URLs or paths, rather than being itself what is to be taken in."""
    head = begin(path)
    try:
        found_lines = head.decode("utf-8").lstrip("\ufeff").splitlines()
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4:  # else only the last character was cut
            return False
        found_lines = head[: error.start].decode("utf-8").splitlines()
    first = next((line.strip() for line in found_lines if line.strip() and not line.startswith("#")), "")
    found = next(iter(entries([first], "x")), None)
    if found is None or found.wrong is not None:
        return "url" in [cell.strip().lower() for cell in first.split(",")]
    return "://" in found.url or first.startswith("{") or Path(found.url).exists()


def begin(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(4096)


def note(summary: Summary) -> str:
    bad = summary.error + summary.invalid
    return f"{bad} failed, {summary.retry} to be tried again" if bad or summary.retry else ""


def report(summary: Summary, as_json: bool) -> None:
    counts = {one.name: getattr(summary, one.name) for one in dataclasses.fields(summary) if one.name != "failures"}
    if as_json:
        failed = [
            {
                "line": one.entry.line,
                "url": mask(one.entry.url),
                "context": one.entry.context,
                "status": one.status,
                "reason": one.reason,
            }
            for one in summary.failures
        ]
        say(json.dumps({"all_well": summary.all_well, **counts, "failed": failed}, ensure_ascii=False))
        return
    for one in summary.failures[:SHOWN]:
        say(f"line {one.entry.line}: {one.status} {mask(one.entry.url)}: {one.reason}")
    if len(summary.failures) > SHOWN:
        say("… and more; --json lists the first thousand")
    say(
        f"{summary.total} entries: {summary.stored} stored, {summary.present} were there already, "
        f"{summary.retry} to be tried again, {summary.error} failed, {summary.invalid} invalid"
    )
    if summary.stopped:
        say("stopped before the end; the same command goes on from here")
