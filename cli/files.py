"""``magazin files``: the files of buckets."""

from __future__ import annotations

import click

from cli.filecopies import get, put
from cli.filelists import check, ls, revisions
from cli.fileoptions import BUCKET, NAME, by_id, in_bucket, opened
from cli.options import Failed, say, with_settings
from cli.settings import Settings
from cli.wiring import Magazin
from storage.bucket import SHARDS
from storage.bucket_errors import FileStoreError


class FileCommands(click.Group):
    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except FileStoreError as error:
            raise Failed(str(error)) from error


@click.group(cls=FileCommands)
def files() -> None:
    """Files in buckets: put them in, get them, list, rename, delete and check them.

    A name may have many revisions; each file has an id that never changes.

    \b
    Examples:
      magazin files put report.pdf
      magazin files get report.pdf
      magazin files ls 2026/
    """


@files.command()
@click.argument("name", type=BUCKET)
@click.option(
    "--shards",
    type=click.IntRange(1, 1024),
    default=SHARDS,
    show_default=True,
    help="Partitions of its names: one for each half million.",
)
@with_settings
def init(settings: Settings, name: str, shards: int) -> None:
    """Make a bucket. Harmless when it is there. NAME: a-z, then a-z, 0-9 and _, up to 40.

    \b
    Examples:
      magazin files init photos
    """
    magazin = Magazin(settings)
    magazin.create()
    magazin.buckets.make(name, shards=shards)
    magazin.close()
    say(f"ready: {name}")


@files.command()
@click.argument("name")
@in_bucket
@by_id
@click.option("--revision", type=int, help="Only this one: 0 is the oldest, -1 the newest.")
@click.option("--hard", is_flag=True, help="For ever, with all chunks; also what was deleted before.")
@with_settings
def rm(settings: Settings, name: str, bucket: str, by_id: bool, revision: int | None, hard: bool) -> None:
    """Delete a file: all revisions of a name, or one. Without --hard it is hidden, and its bytes are kept.

    \b
    Examples:
      magazin files rm report.pdf
      magazin files rm report.pdf --revision 0 --hard
    """
    with opened(settings, bucket) as files:
        if by_id:
            files.delete(name, hard=hard)
        elif revision is not None:
            files.delete(files.get_by_name(name, revision).id, hard=hard)
        else:
            files.delete_by_name(name, hard=hard)


@files.command()
@click.argument("name")
@click.argument("new", type=NAME)
@in_bucket
@by_id
@with_settings
def mv(settings: Settings, name: str, new: str, bucket: str, by_id: bool) -> None:
    """Rename all revisions of a name, or with --id one file. What has the new name already stays beside them.

    \b
    Examples:
      magazin files mv report.pdf 2026/report.pdf
    """
    with opened(settings, bucket) as files:
        if by_id:
            files.rename(name, new)
        else:
            files.rename_by_name(name, new)


for command in (put, get, ls, revisions, check):
    files.add_command(command)
