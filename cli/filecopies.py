"""``magazin files put`` and ``get``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import click

from cli import transfers
from cli.fileoptions import CHUNK, METADATA, NAME, as_json, by_id, in_bucket, opened, revised
from cli.options import Failed, say, with_settings
from cli.progress import transfer
from cli.settings import Settings
from storage.bucket_record import CHUNK_SIZE, FileRecord


@click.command()
@click.argument("file", metavar="FILE|-")
@click.argument("name", type=NAME, required=False)
@in_bucket
@click.option("--metadata", type=METADATA, help="Any JSON value, kept with the file.")
@click.option(
    "--chunk-size",
    type=CHUNK,
    default=CHUNK_SIZE,
    help="Bytes of one chunk, up to 1 MiB.  [default: 255 KiB]",
)
@click.option("--if-absent", is_flag=True, help="Only if the name has no revision yet.")
@as_json
@with_settings
def put(
    settings: Settings,
    file: str,
    name: str | None,
    bucket: str,
    metadata: Any,
    chunk_size: int,
    if_absent: bool,
    as_json: bool,
) -> None:
    """Store a file, or standard input, as the newest revision of NAME; by default that of the file. Prints its id.

    \b
    Examples:
      magazin files put report.pdf
      magazin files put scan.tif 2026/scan.tif --metadata '{"title": "Map"}'
      tar c folder | magazin files put - folder.tar
    """
    if name is None:
        if file == "-":
            raise click.UsageError("Standard input needs a NAME.")
        name = cast(str, NAME.convert(Path(file).name, None, None))
    more = {"first": if_absent, "metadata": metadata, "chunk_size_bytes": chunk_size}
    with (
        opened(settings, bucket) as files,
        _source(file) as (source, size),
        transfer(name, size, quiet=as_json) as show,
    ):
        record = transfers.put(files, source, name, show, **more)
    say(json.dumps(record.shown(), ensure_ascii=False) if as_json else record.id)


@click.command()
@click.argument("name")
@click.argument("target", metavar="[TARGET|-]", required=False)
@in_bucket
@by_id
@revised
@with_settings
def get(settings: Settings, name: str, target: str | None, bucket: str, by_id: bool, revision: int) -> None:
    """Fetch a file to TARGET (a file or a folder; by default here) or to standard output, and verify it.

    Broken off, the same command goes on where it was. TARGET appears when all is there.

    \b
    Examples:
      magazin files get report.pdf
      magazin files get report.pdf old.pdf --revision 0
      magazin files get backup.tar - | tar t
    """
    with opened(settings, bucket) as files:
        record = files.get(name) if by_id else files.get_by_name(name, revision)
        path = _target(target, record)
        with transfer(record.filename, record.length, quiet=False) as show:
            if path is None:
                transfers.send(files, record, transfers.standard_output(), show)
            else:
                transfers.get(files, record, path, show)


@contextmanager
def _source(file: str) -> Iterator[tuple[Any, int | None]]:
    """What is to be stored, and its size where it is known."""
    if file == "-":
        yield transfers.standard_input(), None
        return
    try:
        with Path(file).open("rb") as source:
            yield source, Path(file).stat().st_size if Path(file).is_file() else None
    except OSError as error:
        raise Failed(f"{file}: {error.strerror or error}") from error


def _target(target: str | None, record: FileRecord) -> Path | None:
    """Where to put a file; None for standard output."""
    if target == "-":
        return None
    if target is None:
        return Path(transfers.local_name(record.filename))
    path = Path(target)
    return path / transfers.local_name(record.filename) if path.is_dir() else path
