"""From the id in a path to the original that it opens, or to the problem that says why not."""

from __future__ import annotations

from typing import Any, Final

from app.problems import bad_field, not_found, not_ready
from ingest.records import REFERENCE_ID, BadContext, Original, Reference, Status, check_context
from ingest.references import References
from storage.ids import Clock

SOON: Final = 2  # seconds: the wait for a download under way
LATEST: Final = 3600


def check_id(reference_id: str) -> str:
    if not REFERENCE_ID.fullmatch(reference_id):
        raise bad_field("reference_id", "expected 1 to 64 of A-Z a-z 0-9 -")
    return reference_id


def known_context(context: str) -> str:
    try:
        return check_context(context)
    except BadContext as error:
        raise bad_field("context", str(error)) from None


class Lookup:
    def __init__(self, references: References, clock: Clock) -> None:
        self._references, self._clock = references, clock

    def original(self, reference_id: str) -> Original:
        """The original, its bytes in store; 404 for an unknown id or a failed one, 503 while it isn't here yet."""
        return self.found(reference_id)[1]

    def found(self, reference_id: str) -> tuple[Reference, Original]:
        """The same with its reference."""
        found = self._references.find(check_id(reference_id))
        if found is None:
            raise not_found("There is no such reference.")
        original = found[1]
        if original.status == Status.OK:
            return found
        if original.status == Status.ERROR:
            raise not_found("The original could not be had; the list of its context tells why.", **_members(original))
        wait = SOON
        if original.status == Status.RETRY and original.due is not None:
            wait = min(max(SOON, (original.due - self._clock()) // 1_000_000), LATEST)
        raise not_ready("The original is not here yet.", wait, **_members(original))

    def image(self, reference_id: str) -> Original:
        """The same, of an image; 404 for other types and for images beyond the limits."""
        return self.found_image(reference_id)[1]

    def found_image(self, reference_id: str) -> tuple[Reference, Original]:
        """The same with its reference."""
        found = self.found(reference_id)
        original = found[1]
        if not original.is_image:
            raise not_found("There are no scaled images of this original.", **_members(original))
        return found


def _members(original: Original) -> dict[str, Any]:
    """For everyone, so without the reason: it names the source, and what the source's host resolves to."""
    members = {"original_status": str(original.status), "outcome": original.outcome}
    return {name: value for name, value in members.items() if value is not None}
