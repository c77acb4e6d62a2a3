"""Write tokens: ``mgz_<id>_<secret>``. Only the secret's hash is kept; the text is shown once, when it is issued."""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from storage.ids import Clock, Ids
from storage.interface import Store
from storage.schema import TOKENS
from storage.table import ABSENT, Put, Remove

FORM: Final = re.compile(r"mgz_([0-9a-f]{8})_([0-9a-f]{32})")
NO_HASH: Final = "0" * 64


@dataclass(frozen=True)
class Token:
    """A token as listed: without its secret. ``created`` in microseconds."""

    token_id: str
    label: str
    created: int


class Tokens:
    """Issue, check, list and revoke tokens. Takes effect in every process at once: each check reads the store."""

    def __init__(self, store: Store, ids: Ids, clock: Clock) -> None:
        self._store, self._ids, self._clock = store, ids, clock

    def issue(self, label: str) -> str:
        """A new token's text; 122 random bits of secret."""
        while True:
            token_id = self._ids.random()[:8]
            secret = self._ids.random().replace("-", "")
            row = {"token_id": token_id, "hash": _hash(secret), "created": self._clock(), "label": label}
            if self._store.commit(TOKENS, (token_id,), [Put(row, ABSENT)]):
                return f"mgz_{token_id}_{secret}"

    def valid(self, token: str) -> bool:
        """Whether this text was issued and not revoked. Takes the same time however much of the secret is right."""
        match = FORM.fullmatch(token)
        if match is None:
            return False
        row = self._store.get(TOKENS, (match[1],))
        known = str(row["hash"]) if row else NO_HASH
        return hmac.compare_digest(known, _hash(match[2]))

    def revoke(self, token_id: str) -> bool:
        """Whether there was such a token."""
        while (row := self._store.get(TOKENS, (token_id,))) is not None:
            if self._store.commit(TOKENS, (token_id,), [Remove((token_id,), str(row["rev"]))]):
                return True
        return False

    def list(self) -> Iterator[Token]:
        """All tokens, in no order. Walks the table: for the command line, never in a request."""
        cursor: bytes | None = None
        while True:
            rows, cursor = self._store.scan(TOKENS, cursor)
            for row in rows:
                yield Token(str(row["token_id"]), str(row["label"]), int(row["created"] or 0))
            if cursor is None:
                return


def _hash(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()
