"""What can go wrong with a source, told apart by whether trying again may help."""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Iterator
from http.client import HTTPException, IncompleteRead, RemoteDisconnected
from typing import Final

import requests
import urllib3

from ingest.fetch.outcome import Outcome

_OURS: Final = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.EADDRNOTAVAIL}
"""Errors of this machine, not of the source: out of descriptors, memory, ports."""


class Failure(Exception):
    """Ends a fetch. The message goes on after the URL: "http://a.example/x answered 404 Not Found"."""

    def __init__(
        self,
        outcome: Outcome,
        message: str,
        *,
        transient: bool = False,
        counted: bool = True,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.outcome, self.message = outcome, message
        self.transient, self.counted, self.retry_after = transient, counted, retry_after


def transient(outcome: Outcome, message: str) -> Failure:
    return Failure(outcome, message, transient=True)


def verdict(outcome: Outcome, message: str) -> Failure:
    """What the source has is not wanted: it isn't a fault of the source, and so not counted."""
    return Failure(outcome, message, counted=False)


def in_connecting(error: OSError) -> Failure:
    """Why there is no connection."""
    if isinstance(error, socket.gaierror):
        return transient(
            Outcome.NETWORK_ERROR, f"couldn't be reached: its host name can't be resolved ({_told(error)})"
        )
    if isinstance(error, TimeoutError):
        return transient(Outcome.TIMEOUT, "couldn't be reached: connecting took too long")
    if error.errno in _OURS:
        return transient(Outcome.SYSTEM_ERROR, f"wasn't asked: this machine failed ({_told(error)})")
    return transient(Outcome.NETWORK_ERROR, f"couldn't be reached: {_told(error)}")


def in_asking(error: Exception) -> Failure:
    """Why there is a connection, yet no answer."""
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return Failure(Outcome.TLS_ERROR, f"has a certificate that isn't trusted: {cause.verify_message}")
    for cause in causes:
        if isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLEOFError):
            return transient(Outcome.TLS_ERROR, f"failed to set up TLS: {_told(cause)}")
        if isinstance(cause, TimeoutError | urllib3.exceptions.TimeoutError):
            return transient(Outcome.TIMEOUT, "didn't answer in time")
        if isinstance(cause, ConnectionError | ssl.SSLEOFError):
            how = "closed" if isinstance(cause, RemoteDisconnected | ssl.SSLEOFError) else "reset"
            return transient(Outcome.NETWORK_ERROR, f"{how} the connection without an answer")
        if isinstance(cause, HTTPException):
            return transient(Outcome.NETWORK_ERROR, f"didn't answer in valid HTTP ({_told(cause)})")
    if isinstance(error, requests.RequestException | urllib3.exceptions.HTTPError | OSError):
        return transient(Outcome.NETWORK_ERROR, f"couldn't be asked: {_told(error)}")
    return _unforeseen(error)


def in_reading(error: Exception, received: int, declared: int | None) -> Failure:
    """Why the body ended before its end, after so many of the declared bytes."""
    causes = list(_causes(error))
    received += sum(len(cause.partial) for cause in causes if isinstance(cause, IncompleteRead) and not declared)
    many = f"{received} bytes" if declared is None else f"{received} of {declared} bytes"
    for cause in causes:
        if isinstance(cause, TimeoutError | urllib3.exceptions.TimeoutError):
            return transient(Outcome.TIMEOUT, f"fell silent after {many}")
        if isinstance(cause, HTTPException | OSError | urllib3.exceptions.HTTPError):
            return transient(Outcome.TRUNCATED, f"broke off after {many}")
    return _unforeseen(error)


def _unforeseen(error: Exception) -> Failure:
    return transient(Outcome.SYSTEM_ERROR, f"couldn't be fetched: {type(error).__name__}: {_told(error)}")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error and what led to it, innermost last."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _told(error: BaseException) -> str:
    """An error's own words, without what a hostile server could put into a log with them."""
    text = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return "".join(char if char.isprintable() else "�" for char in text)[:200]
