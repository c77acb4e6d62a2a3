"""A request's body, in pieces or whole, and never the beginning of one taken for all of it."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from typing import Final

from falcon import Request

from app.problems import Problem

PIECE: Final = 256 * 1024  # bytes read at once


def pieces(req: Request) -> Iterator[bytes]:
    """The body piece by piece. 400 when it ends early: the client has gone, or sends nonsense."""
    declared, count = req.content_length, 0
    stream = req.bounded_stream if declared is not None else req.stream
    while True:
        try:
            piece = stream.read(PIECE)
        except Exception as error:  # each server has its own for a body that is cut or malformed
            raise Problem(HTTPStatus.BAD_REQUEST, f"The body broke off: {type(error).__name__}.") from error
        if not piece:
            break
        count += len(piece)
        yield piece
    if declared is not None and count != declared:
        raise Problem(HTTPStatus.BAD_REQUEST, f"The body ended after {count} of {declared} bytes.")


def whole(req: Request, longest: int) -> bytes:
    """All of it, in memory; empty where the server can't tell its end. 413 beyond ``longest`` bytes, which are not
    waited for."""
    declared = req.content_length
    if declared is None and not req.env.get("wsgi.input_terminated"):
        return b""
    body = bytearray()
    if declared is not None and declared > longest:
        _too_long(longest)
    for piece in pieces(req):
        body += piece
        if len(body) > longest:
            _too_long(longest)
    return bytes(body)


def _too_long(longest: int) -> None:
    raise Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"The body is longer than {longest} bytes.")
