"""Finding files: by name, prefix, pattern, metadata, status."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, TypeAlias

import re2

from storage.bucket_index import Index
from storage.bucket_record import FileRecord, Status
from storage.bucket_tables import BucketTables
from storage.interface import Store

Pattern: TypeAlias = str | re.Pattern[str]
LONGEST_PATTERN: Final = 1000  # characters
LOOKS: Final = 5000

Fits: TypeAlias = Callable[[FileRecord], bool]


@dataclass(frozen=True)
class Page:
    """``after`` is where the next one begins, None at the end."""

    files: list[FileRecord]
    after: tuple[str, int, str] | None


class Search:
    """``looks``: files that one page looks at, at most."""

    def __init__(self, store: Store, tables: BucketTables, index: Index, looks: int = LOOKS) -> None:
        self._store, self._files, self._index, self._looks = store, tables.files, index, looks

    def find(
        self,
        *,
        filename: str | None,
        pattern: Pattern | None,
        prefix: str | None,
        metadata: dict[str, Any] | None,
        status: Status,
        newest_first: bool,
        skip: int,
        limit: int | None,
    ) -> Iterator[FileRecord]:
        """As :meth:`storage.bucket.Bucket.find`."""
        if skip < 0 or (limit is not None and limit < 0):
            raise ValueError(f"skip {skip} and limit {limit} must not be negative")
        fits = condition(filename, prefix, pattern, metadata)
        if status is Status.INCOMPLETE:
            found = self._under_way(newest_first)
        elif filename is not None:
            found = self._index.revisions(filename, status, newest_first=newest_first)
        elif prefix is not None:
            found = self._index.by_name(status, prefix, newest_first=newest_first)
        else:
            found = self._index.by_time(status, newest_first=newest_first)
        return islice(filter(fits, found), skip, None if limit is None else skip + limit)

    def page(
        self,
        *,
        filename: str | None,
        prefix: str,
        pattern: Pattern | None,
        after: tuple[str, int, str] | None,
        limit: int,
    ) -> Page:
        """As :meth:`storage.bucket.Bucket.page`."""
        fits = condition(filename, prefix, pattern, None)
        if filename is not None:
            place = None if after is None else after[1:]
            found = self._index.revisions(filename, Status.COMPLETE, newest_first=True, after=place)
        else:
            found = self._index.by_name(Status.COMPLETE, prefix, newest_first=True, after=after)
        files: list[FileRecord] = []
        for looks, record in enumerate(found, 1):
            if len(files) == limit:
                return Page(files, after)
            if fits(record):
                files.append(record)
            after = (record.filename, record.finished_at or 0, record.id)
            if looks == self._looks:
                return Page(files, after)
        return Page(files, None)

    def _under_way(self, newest_first: bool) -> Iterator[FileRecord]:
        """By startedAt. They are in no index, and few."""
        found: list[FileRecord] = []
        cursor: bytes | None = None
        while True:
            rows, cursor = self._store.scan(self._files, cursor)
            records = (FileRecord.of(row) for row in rows if row["status"] == Status.INCOMPLETE)
            found += (record for record in records if record.erasing is None)
            if cursor is None:
                break
        yield from sorted(found, key=lambda record: (record.started_at, record.id), reverse=newest_first)


def condition(
    filename: str | None, prefix: str | None, pattern: Pattern | None, metadata: dict[str, Any] | None
) -> Fits:
    """Whether a file has all that is asked for. Raises ValueError."""
    matches = _matcher(pattern)

    def fits(record: FileRecord) -> bool:
        return (
            (filename is None or record.filename == filename)
            and (prefix is None or record.filename.startswith(prefix))
            and (matches is None or matches(record.filename))
            and (metadata is None or _contains(record.metadata, metadata))
        )

    return fits


def _matcher(pattern: Pattern | None) -> Callable[[str], bool] | None:
    """RE2 for texts: it takes linear time, whoever wrote them, and is what RethinkDB matched with."""
    if pattern is None:
        return None
    if isinstance(pattern, re.Pattern):
        return lambda name: pattern.search(name) is not None
    if len(pattern) > LONGEST_PATTERN:
        raise ValueError(f"pattern: longer than {LONGEST_PATTERN} characters")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 1 << 20
    try:
        compiled = re2.compile(pattern, options=options)
    except (re2.error, UnicodeEncodeError) as error:
        said = error.args[0] if error.args else ""
        raise ValueError(f"pattern: {said.decode() if isinstance(said, bytes) else error}") from None
    return lambda name: compiled.search(name) is not None


def _contains(metadata: Any, wanted: dict[str, Any]) -> bool:
    return isinstance(metadata, dict) and all(
        name in metadata and metadata[name] == value for name, value in wanted.items()
    )
