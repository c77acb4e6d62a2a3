"""The driver's errors as ours."""

from __future__ import annotations

import re

import cassandra
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionBusy, ConnectionException, ConnectionShutdown
from cassandra.pool import NoConnectionsAvailable
from cassandra.protocol import ErrorMessage, OverloadedErrorMessage, RequestValidationException

from storage.errors import Full, SchemaMismatch, StoreError, TooLarge, Unavailable, Unknown

# What a server that is out of room, or was sent too much, says; it has no codes for them.
_TOO_LARGE = ("exceeds allowed maximum", "exceeds maximum allowed", "Key length of", "Mutation of", "is too big")
_FULL = ("disk usage exceeds", "No space left")
_BEGUN = (cassandra.RequestExecutionException, cassandra.OperationTimedOut, ErrorMessage)
_PASSING = "Unable to perform auth"
"""Says a node that can't read just now who there is, and who may do what."""
_MISSING = ("does not exist", "doesn't exist", "unconfigured table", "Undefined column", "Unknown identifier")


class NoQuorum(cassandra.OperationTimedOut):  # type: ignore[misc]
    """Nobody answered, and too few nodes are up that could. The nodes themselves need some ten seconds to know."""


class LoginFailed(ConnectionException):  # type: ignore[misc]
    """A node didn't let us in. Not AuthenticationFailed, after which the driver never comes back to that node."""

    @property
    def is_passing(self) -> bool:
        return _PASSING in str(self)


def is_busy(error: Exception) -> bool:
    """Nothing was done, and a little later it may go through."""
    if isinstance(error, NoHostAvailable):
        return bool(reasons := _reasons(error)) and all(is_busy(one) for one in reasons)
    return isinstance(error, ConnectionBusy | NoConnectionsAvailable | OverloadedErrorMessage)


def is_lost(error: Exception, *, sent: bool) -> bool:
    """Whether what was ``sent`` to a node got lost there. NoHostAvailable too may mean that: speculation uses nodes up,
    so that the driver finds no other when one of them fails."""
    if isinstance(error, NoHostAvailable):
        return sent and not any(isinstance(one, cassandra.Unavailable) for one in _reasons(error))
    return isinstance(error, (*_BEGUN, ConnectionShutdown)) and not isinstance(error, cassandra.Unavailable)


def is_refused(error: Exception) -> bool:
    """Whether a write that isn't repeated by the driver was begun nowhere, so that it has certainly no effect."""
    refusals = (NoHostAvailable, cassandra.RequestValidationException, RequestValidationException)
    return isinstance(error, (*refusals, LoginFailed, StoreError))


def translated(error: Exception, *, writing: bool = False) -> StoreError:
    """``writing``: something may have been written."""
    if isinstance(error, StoreError):
        return error
    said = _said(error)
    if isinstance(error, NoHostAvailable):
        reasons = _reasons(error)
        if any(isinstance(one, LoginFailed) and not one.is_passing for one in reasons):
            return StoreError(f"Cassandra accepts neither user nor password: {said}")
        begun = writing and any(isinstance(one, _BEGUN) for one in reasons)
        return (Unknown if begun else Unavailable)(f"no node of Cassandra answers: {said}")
    if any(phrase in said for phrase in _FULL):
        return Full(f"Cassandra has no room: {said}")
    if any(phrase in said for phrase in _TOO_LARGE):
        return TooLarge(said)
    if isinstance(error, cassandra.RequestValidationException | RequestValidationException):
        if any(phrase in said for phrase in _MISSING):
            return SchemaMismatch(f"{said}; «magazin init» makes what is missing")
        if _PASSING in said:
            return Unavailable(f"too few nodes of Cassandra are up: {said}")
        return StoreError(f"Cassandra refuses it: {said}")
    if isinstance(error, NoQuorum):
        return (Unknown if writing else Unavailable)("too few nodes of Cassandra are up")
    if isinstance(error, cassandra.Unavailable) or is_busy(error):
        return Unavailable(f"too few nodes of Cassandra are up: {said}")
    if isinstance(error, (*_BEGUN, cassandra.DriverException, ConnectionException, OSError)):
        return (Unknown if writing else Unavailable)(f"Cassandra didn't answer in time: {said}")
    return StoreError(f"{type(error).__name__}: {said}")


def _said(error: Exception) -> str:
    text = " ".join(str(error).split())
    message = re.search(r'code=\w+ \[.*?\] message="(.*?)"(?: info|$)', text)
    return (message[1] if message else text)[:500] or type(error).__name__


def _reasons(error: NoHostAvailable) -> list[Exception]:
    return list(error.errors.values()) if isinstance(error.errors, dict) else list(error.errors)
