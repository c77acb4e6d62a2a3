"""One try at one original: fetch, keep, look at it, and commit the outcome (binaries service, state machine).

Everything is made under the claim's own attempt id, and becomes visible only when the outcome names that attempt.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Callable
from typing import Any

from imaging.errors import ImageError
from ingest import attempts
from ingest.backoff import Backoff
from ingest.claims import Claim
from ingest.fetch.fetcher import Fetcher, Sink
from ingest.fetch.outcome import Fetched, Outcome
from ingest.logs import MILLISECOND, Logs
from ingest.pictures import Pictures, Prepared
from ingest.recent import Recent
from ingest.records import Original, Status
from ingest.scaled import scaled_rows
from ingest.schedule import queue_rows
from storage.announcements import Litter, announcement
from storage.blobs import Blob, BlobStore
from storage.errors import BlobError, StoreError
from storage.ids import Clock
from storage.interface import Store

log = logging.getLogger(__name__)


class Jobs:
    """Works claims off. Thread-safe."""

    def __init__(
        self,
        store: Store,
        blobs: BlobStore,
        *,
        fetcher: Fetcher,
        pictures: Pictures,
        logs: Logs,
        clock: Clock,
        backoff: Backoff,
    ) -> None:
        self._store, self._blobs, self._fetcher, self._pictures = store, blobs, fetcher, pictures
        self._logs, self._clock, self._backoff = logs, clock, backoff

    def run(self, claim: Claim, stop: threading.Event) -> Original:
        """Fetch the claim's URL and conclude; the original as it is afterwards. StoreErrors pass when not even the
        outcome could be written: the lease then runs out."""
        original = claim.original
        return self.fill(
            claim,
            lambda sink: self._fetcher.fetch(original.url, sink, mime=original.mime_declared, stop=stop),
            stop,
        )

    def fill(self, claim: Claim, fetch: Callable[[Sink], Fetched], stop: threading.Event) -> Original:
        """Conclude a claim with the bytes that ``fetch`` writes to its sink."""
        try:
            changes, line = self._try(claim, fetch)
        except StoreError as error:
            log.warning("original %s: %s", claim.original.original_id, error)
            changes, line = self._failed(claim.original, _system_error(f"could not be stored: {error}", False))
        except Exception as error:  # a fault of ours must not be tried for ever
            log.exception("original %s", claim.original.original_id)
            changes, line = self._failed(claim.original, _system_error(f"{type(error).__name__}: {error}", True))
        if changes["status"] != Status.OK:
            self._throw_away(claim)
            if stop.is_set():  # whatever it was, it may be the stop's doing: the job goes back to the queue
                claim.conclude(status=Status.PROCESSING)
                return claim.original
        self._conclude(claim, changes, line)
        return claim.original

    def _try(self, claim: Claim, fetch: Callable[[Sink], Fetched]) -> tuple[dict[str, Any], str]:
        """The columns of the outcome, and the line for the log."""
        original = claim.original
        with self._blobs.create(original.original_id, claim.attempt) as writer:
            fetched = fetch(writer)
            if fetched.outcome is not Outcome.ARCHIVED:
                return self._failed(original, fetched)
            blob = writer.commit()
        claimed = original.mime_declared, fetched.mime_received, fetched.mime_sniffed, fetched.mime
        if not self._pictures.are_made_of(*claimed):
            return self._stored(blob, fetched, Prepared("no image"))
        try:
            prepared = self._pictures.prepare(blob, *claimed)
        except ImageError as error:
            reason = f"declared or recognised as an image, and can't be decoded: {error}"
            return self._failed(original, dataclasses.replace(fetched, outcome=Outcome.NOT_DATA, reason=reason))
        return self._stored(blob, fetched, prepared)

    def _stored(self, blob: Blob, fetched: Fetched, prepared: Prepared) -> tuple[dict[str, Any], str]:
        now = self._clock()
        self._store.put_many(scaled_rows(blob.owner, blob.attempt, prepared.made))
        changes = _said(fetched) | {
            "status": Status.OK,
            "reason": None,
            "created": now // MILLISECOND * MILLISECOND,
            "last_checked": now // MILLISECOND * MILLISECOND,
            "last_success": now,
            "failures": 0,
            "lost_leases": 0,
            "first_failure": None,
            "size": blob.size,
            "part_size": blob.part_size,
            "attempt": blob.attempt,
            "checksum": blob.sha256,
            "width": prepared.width,
            "height": prepared.height,
            "pages": prepared.pages,
            "rights": prepared.rights,
            "pyramid_size": prepared.pyramid.size if prepared.pyramid else None,
            "pyramid_checksum": prepared.pyramid.sha256 if prepared.pyramid else None,
        }
        return changes, f"stored: {blob.size} bytes, {fetched.mime}, sha256 {blob.sha256}; {prepared.note}"

    def _failed(self, original: Original, fetched: Fetched) -> tuple[dict[str, Any], str]:
        now = self._clock()
        failures = (original.failures or 0) + fetched.counted
        due = self._backoff.due(now, failures, fetched.retry_after) if fetched.transient else None
        changes = _said(fetched) | {
            "status": Status.ERROR if due is None else Status.RETRY,
            "due": original.due if due is None else due,
            "failures": failures,
            "last_checked": now // MILLISECOND * MILLISECOND,
            "last_failure": now,
            "first_failure": original.first_failure or now,
        }
        line = f"{fetched.outcome}: {fetched.reason}"
        if due is not None:
            line += f"; failure {failures}, next try in {(due - now) / 1_000_000:.0f} s"
        return changes, line

    def _conclude(self, claim: Claim, changes: dict[str, Any], line: str) -> None:
        after = dataclasses.replace(claim.original, **changes)
        rows = [self._logs.original_line(after.original_id, line)]
        if after.status == Status.RETRY:
            rows += queue_rows(after)
        elif after.is_image:
            rows += Recent.rows(after)
        replaced = claim.original.attempt
        if replaced is not None and after.attempt != replaced:
            rows.append(announcement(Litter.BLOB, f"{after.original_id}/{replaced}", self._clock()))
        if not claim.conclude(rows, **changes):
            log.info("original %s: another took it over; this try is thrown away", after.original_id)
            self._throw_away(claim)

    def _throw_away(self, claim: Claim) -> None:
        """What was written for the attempt; what can't be erased now is announced, and goes with a sweep."""
        try:
            attempts.erase(self._store, self._blobs, claim.original.original_id, claim.attempt)
        except (StoreError, BlobError) as error:
            log.info("attempt %s is left to the sweep: %s", claim.attempt, error)


def _said(fetched: Fetched) -> dict[str, Any]:
    """The columns that a fetch tells, whatever it came to. A failure leaves the validators of the good copy alone."""
    changes: dict[str, Any] = {
        "outcome": fetched.outcome.value,
        "reason": fetched.reason,
        "http_status": fetched.http_status,
        "final_url": fetched.final_url,
        "mime_received": fetched.mime_received,
        "mime_sniffed": fetched.mime_sniffed,
        "length_declared": fetched.length_declared,
    }
    if fetched.outcome is Outcome.ARCHIVED:
        names = ("mime", "md5", "filename", "e_tag", "last_modified", "expires", "cache_control", "fresh_until")
        changes |= {name: getattr(fetched, name) for name in names}
    return changes


def _system_error(reason: str, counted: bool) -> Fetched:
    return Fetched(Outcome.SYSTEM_ERROR, reason, transient=True, counted=counted)
