"""All tables of Magazin, declared once. The plugins create them; ``etc/schema.cql`` is printed from here.

Names and columns of the binaries service's own table structure are kept; further columns, key parts and tables are
ours. ``event``, ``attached``, ``naming``, ``tag``, ``attempt`` and ``generation`` are time-ordered unique ids, made
once and never used again. Times are microseconds.
"""

from __future__ import annotations

from typing import Final

from storage.table import Table, Type, cas, plain

TEXT, INT, BLOB, TIMESTAMP = Type.TEXT, Type.INT, Type.BLOB, Type.TIMESTAMP

BOXES: Final = ((800, 600), (440, 330), (140, 105), (116, 87))
"""The seed's boxes, width and height in pixels; each has a table of its own."""

CONTEXTS = cas("contexts", "context", context=TEXT, generation=TEXT)
URLS = cas("urls", "url", url=TEXT, original_id=TEXT)
URLS_ORIGINAL = plain("urls_original", "original_id | url", hint=True, original_id=TEXT, url=TEXT)

BINARY_REFS = cas(
    "binary_refs",
    "reference_id",
    reference_id=TEXT,
    original_id=TEXT,
    context=TEXT,
    generation=TEXT,
    url=TEXT,
    attached=TEXT,
)
BINARYREFS_ORIGINAL = plain(
    "binaryrefs_original", "original_id | event", hint=True, original_id=TEXT, event=TEXT, reference_id=TEXT
)
"""Append-only: an attach, or with an empty reference_id a release."""
BINARYREFS_CONTEXT = plain(
    "binaryrefs_context",
    "generation digit | reference_id attached",
    hint=True,
    generation=TEXT,
    digit=TEXT,  # the first hex digit of reference_id: 16 partitions in order are one order by reference_id
    reference_id=TEXT,
    attached=TEXT,
)

ORIGINALS = cas(
    "originals",
    "original_id",
    original_id=TEXT,
    # the seed's
    last_modified=TEXT,
    e_tag=TEXT,
    mime=TEXT,
    created=TIMESTAMP,
    last_checked=TIMESTAMP,
    checksum=TEXT,  # sha256, lower-case hex
    status=TEXT,  # PROCESSING, OK, ERROR, RETRY
    # where it came from and where its bytes are
    url=TEXT,
    host=TEXT,
    size=INT,
    part_size=INT,
    attempt=TEXT,  # names the blob whose parts are this original's bytes
    md5=TEXT,
    filename=TEXT,
    # of an image
    width=INT,  # pixels, as displayed: EXIF orientation applied
    height=INT,
    pages=INT,
    rights=TEXT,  # the URI of a licence that its metadata names
    pyramid_size=INT,  # bytes of its pyramid, whose blob's attempt is this one's with "-pyramid" behind it
    pyramid_checksum=TEXT,
    # the work on it
    registered=INT,  # when this row was made
    retired=INT,  # 1 once the sweep has begun on it: one way, never undone
    trying=TEXT,  # the attempt under way
    due=INT,
    failures=INT,
    lost_leases=INT,
    lease_owner=TEXT,
    lease_until=INT,
    # the verdict of the last try
    outcome=TEXT,
    reason=TEXT,
    http_status=INT,
    final_url=TEXT,
    last_success=INT,
    first_failure=INT,
    last_failure=INT,
    next_check_at=INT,
    # what was said of it and seen in it
    mime_declared=TEXT,
    mime_received=TEXT,
    mime_sniffed=TEXT,
    length_declared=INT,
    expires=TEXT,
    cache_control=TEXT,
    fresh_until=INT,
)
ORIGINALS_DATA = plain(
    "originals_data",
    "original_id attempt bucket | part",
    chunks=True,
    original_id=TEXT,
    attempt=TEXT,
    bucket=INT,  # part // 64: no partition above 32 MiB
    part=INT,
    data=BLOB,
    crc=TEXT,
)

SCALED: Final = {
    (width, height): plain(
        f"scaled_{width}x{height}",
        "original_id attempt",
        chunks=True,
        original_id=TEXT,
        attempt=TEXT,
        data=BLOB,
        crc=TEXT,
    )
    for width, height in BOXES
}

LOGS = plain("logs", "attached | timestamp seq", attached=TEXT, timestamp=TIMESTAMP, seq=TEXT, message=TEXT)
"""A reference's own lines; ``seq`` keeps apart two lines of one millisecond."""
ORIGINAL_LOGS = plain(
    "original_logs", "original_id | timestamp seq", original_id=TEXT, timestamp=TIMESTAMP, seq=TEXT, message=TEXT
)
"""An original's lines, shown under each of its references."""

QUEUE_OPEN = plain("queue_open", "day | bucket host", hint=True, day=INT, bucket=INT, host=TEXT)
"""Which hosts have entries in which minute; ``bucket`` is the minute of ``due``, ``day`` its day, both since 1970."""
QUEUE = plain("queue", "bucket host | due original_id", hint=True, bucket=INT, host=TEXT, due=INT, original_id=TEXT)
CANDIDATES = plain("candidates", "hour shard | kind id", hint=True, hour=INT, shard=INT, kind=TEXT, id=TEXT)
"""What may have become litter; ``kind`` is original, blob, generation, file or index, ``hour`` counts since 1970."""
RECENT_OPEN = plain("recent_open", "span | bucket", hint=True, span=TEXT, bucket=INT)
"""Which minutes of a day have entries (span: the day), and which days do (span: ``days``)."""
RECENT = plain("recent", "minute | stored original_id", hint=True, minute=INT, stored=INT, original_id=TEXT)
"""Images by the time at which they were stored, for the gallery."""
LEASES = cas("leases", "name", name=TEXT, owner=TEXT, until=INT, value=INT)
"""Locks with an end, and the marks of the queue and the candidates (``value``)."""
TOKENS = cas("tokens", "token_id", token_id=TEXT, hash=TEXT, created=INT, label=TEXT)
"""Who may write: the sha256 of each token's secret."""

BINARIES: Final[tuple[Table, ...]] = (
    CONTEXTS,
    URLS,
    URLS_ORIGINAL,
    BINARY_REFS,
    BINARYREFS_ORIGINAL,
    BINARYREFS_CONTEXT,
    ORIGINALS,
    ORIGINALS_DATA,
    *SCALED.values(),
    LOGS,
    ORIGINAL_LOGS,
    QUEUE_OPEN,
    QUEUE,
    CANDIDATES,
    RECENT_OPEN,
    RECENT,
    LEASES,
    TOKENS,
)
