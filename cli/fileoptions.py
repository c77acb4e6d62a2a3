"""What the commands of ``magazin files`` share: types, options, and how a bucket is opened."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from cli import kinds
from cli.settings import Settings
from cli.wiring import Magazin
from storage.bucket import Bucket
from storage.bucket_find import condition
from storage.bucket_record import check_chunk_size, check_filename, check_metadata
from storage.bucket_tables import tables_of
from storage.buckets import DEFAULT


class Checked(click.ParamType[Any]):
    """A value that a function takes and gives, or refuses by ValueError."""

    def __init__(self, name: str, check: Callable[[str], Any]) -> None:
        self.name, self._check = name, check

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._check(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _metadata(text: str) -> Any:
    try:
        return check_metadata(json.loads(text))
    except RecursionError:
        raise ValueError("metadata: not JSON") from None


def _pattern(text: str) -> str:
    condition(None, None, text, None)
    return text


def _bucket(name: str) -> str:
    tables_of(name)
    return name


BUCKET = Checked("name", _bucket)
NAME = Checked("name", check_filename)
METADATA = Checked("json", _metadata)
PATTERN = Checked("regex", _pattern)
CHUNK = Checked("size", lambda text: check_chunk_size(kinds.SIZE.read(text)))
SPAN = Checked("duration", kinds.SPAN_OF_TIME.read)
in_bucket = click.option("--bucket", type=BUCKET, default=DEFAULT, show_default=True, help="The bucket.")
by_id = click.option("--id", "by_id", is_flag=True, help="NAME is a file's id.")
revised = click.option(
    "--revision", type=int, default=-1, show_default=True, help="0 is the oldest, -1 the newest, -2 the one before."
)
as_json = click.option("--json", "as_json", is_flag=True, help="JSON, one object a line.")


@contextmanager
def opened(settings: Settings, bucket: str) -> Iterator[Bucket]:
    magazin = Magazin(settings)
    try:
        yield magazin.buckets.open(bucket)
    finally:
        magazin.close()
