"""Where the queue keeps an original that is due: in a bucket of its minute and host, listed under its day."""

from __future__ import annotations

from typing import Final

from ingest.records import Original
from storage.schema import QUEUE, QUEUE_OPEN
from storage.table import Row, Table

MINUTE: Final = 60 * 1_000_000
DAY: Final = 24 * 60 * MINUTE
MINUTES_A_DAY: Final = 24 * 60


def queue_rows(original: Original) -> list[tuple[Table, Row]]:
    """The bucket's entry and the bucket's own, for ``put_many``; to be written before the original's ``due``."""
    due = original.due or 0
    bucket: Row = {"day": due // DAY, "bucket": due // MINUTE, "host": original.host}
    entry: Row = {
        "bucket": due // MINUTE,
        "host": original.host,
        "due": due,
        "original_id": original.original_id,
    }
    return [(QUEUE_OPEN, bucket), (QUEUE, entry)]
