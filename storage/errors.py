"""What can go wrong below: each class answers one question, whether trying again can help."""


class StoreError(Exception):
    """Any failure of the storage layer."""


class Unavailable(StoreError):
    """The store can't be reached or is too busy, and nothing was written. Try again later."""


class Unknown(StoreError):
    """A write was sent and its outcome could not be learnt: it may or may not be there."""


class Full(StoreError):
    """No room left (HTTP 507). Nothing of the failed write is visible."""


class TooLarge(StoreError):
    """A value above 1 MiB, or a commit above 8 MiB."""


class WrongKind(StoreError):
    """A plain verb was used on a compare-and-set table, or the other way round."""


class SchemaMismatch(StoreError):
    """A table of this name exists and has another shape."""


class BrokenPromise(StoreError):
    """Only from a store in strict mode: a key of a plain table was written with another value, or after its delete."""


class BlobError(StoreError):
    """Any failure that concerns one blob."""


class KeyTaken(BlobError):
    """A blob of this owner and attempt exists already, whole or half."""


class Damaged(BlobError):
    """A part is missing, has the wrong length or doesn't match its checksum. Trying again doesn't help."""

    def __init__(self, owner: str, attempt: str, part: int, what: str) -> None:
        super().__init__(f"blob {owner}/{attempt}, part {part}: {what}")
        self.owner, self.attempt, self.part, self.what = owner, attempt, part, what


class MissingPart(Damaged):
    """There is no such part."""


class WrongLength(Damaged):
    """A part is longer or shorter than its place in the blob says."""


class WrongChecksum(Damaged):
    """A part, or with part -1 the whole blob, isn't what was written."""


class ExtraPart(Damaged):
    """There is something behind the last part."""
