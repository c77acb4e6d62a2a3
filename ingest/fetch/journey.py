"""From a URL to the answer at the end of its redirects. Every hop passes the same checks, for it is a new request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Final

import requests
from urllib3.response import HTTPResponse

from ingest.fetch.connection import Session
from ingest.fetch.failure import Failure, in_asking, in_reading
from ingest.fetch.outcome import Known, Outcome
from ingest.fetch.url import BlockedUrl, InvalidUrl, join, mask, split
from ingest.fetch.watchdog import Watchdog

BLOCK: Final = 256 * 1024  # bytes read at once
REDIRECTS: Final = {301, 302, 303, 307, 308}
VALIDATOR_LIMIT: Final = 1024  # characters; it goes into every later request
_TRANSIENT: Final = {202, 408, 425, 429}  # 202: what was asked for is still being made
_CODED_TAG: Final = re.compile(r'(.*[^-])--?(?:gzip|br|zstd|deflate)"')


class Answer:
    """A response whose body is still on the wire."""

    def __init__(self, response: requests.Response, watchdog: Watchdog) -> None:
        self._raw: HTTPResponse = response.raw
        self._watchdog = watchdog
        self.status = response.status_code
        self.received = 0
        length = self.value("Content-Length")
        self.length = int(length.split(",")[0]) if length is not None else None

    def values(self, name: str) -> Sequence[str]:
        return self._raw.headers.getlist(name)

    def value(self, name: str) -> str | None:
        """The first, where there are several."""
        return next(iter(self.values(name)), None)

    def validator(self, name: str) -> str | None:
        """A header that is worth keeping verbatim and sending back: printable and of sensible length."""
        value = self.value(name)
        return value if value and len(value) <= VALIDATOR_LIMIT and value.isprintable() else None

    def blocks(self, first: int, limit: int) -> Iterator[bytes]:
        """The body as it is on the wire, ``first`` bytes and then BLOCK at a time, to at most ``limit`` + 1 bytes.
        Raises Failure when it ends before its declared length, which urllib3 counts."""
        size = first
        while self.received <= limit:
            try:
                data = self._raw.read(min(size, limit + 1 - self.received), decode_content=False)
            except Exception as error:
                self._watchdog.check()
                raise in_reading(error, self.received, self.length) from error
            self._watchdog.check()  # a connection that was shut looks like the end of the body
            if not data:
                break
            self.received += len(data)
            yield data
            size = BLOCK

    def close(self) -> None:
        self._raw.close()


class Journey:
    """``url`` is what was asked last, ``status`` what was answered last, ``conditional`` whether validators went out
    with it."""

    def __init__(
        self, session: Session, watchdog: Watchdog, url: str, timeouts: tuple[float, float], max_redirects: int
    ) -> None:
        self._session, self._watchdog, self._start = session, watchdog, url
        self._timeouts, self._max_redirects = timeouts, max_redirects
        self._answer: Answer | None = None
        self.url, self.conditional = url, False

    @property
    def status(self) -> int | None:
        return None if self._answer is None else self._answer.status

    def go(self, known: Known | None) -> Answer:
        """The answer at the end of the redirects, whatever its status. Raises Failure.

        Only the URL that gave the known validators is asked with them: elsewhere an equal date or tag means nothing.
        """
        url = self._start
        for _ in range(self._max_redirects + 1):
            asked_before = known is not None and url == (known.final_url or self._start)
            answer = self._ask(url, conditions(known) if known is not None and asked_before else {})
            if answer.status not in REDIRECTS:
                return answer
            location = answer.value("Location")
            if location is None:
                raise Failure(Outcome.HTTP_ERROR, f"answered {_phrase(answer.status)} without saying where to go")
            try:
                url = join(url, location)
            except InvalidUrl as error:
                raise Failure(Outcome.URL_INVALID, f"redirects to {mask(location)}: {error}") from error
        raise Failure(Outcome.HTTP_ERROR, f"leads through more than {self._max_redirects} redirects")

    def close(self) -> None:
        """Closes the last answer's connection, its body read or not."""
        if self._answer is not None:
            self._answer.close()

    def _ask(self, url: str, headers: Mapping[str, str]) -> Answer:
        self.close()
        self.url, self._answer, self.conditional = url, None, bool(headers)
        parts = split(url)
        wire = f"{parts.scheme}://{parts.netloc}{parts.target}"
        try:
            request = self._session.prepare_request(requests.Request("GET", wire, headers=dict(headers)))
            request.url = wire  # requests unescaped and resolved in it what it saw fit
            response = self._session.send(request, stream=True, allow_redirects=False, timeout=self._timeouts)
        except BlockedUrl as error:
            raise Failure(Outcome.URL_BLOCKED, f"isn't fetched: {error}") from error
        except Failure:
            raise
        except Exception as error:
            self._watchdog.check()
            raise in_asking(error) from error
        self._answer = Answer(response, self._watchdog)
        self._watchdog.check()
        return self._answer


def conditions(known: Known) -> dict[str, str]:
    """The headers that ask for a change only. Without a held copy there are none.

    Servers that mark a tag for the coding of the answer (``"x-gzip"``) don't know it again when identity is asked for,
    so the bare tag is offered beside it.
    """
    if known.sha256 is None:
        return {}
    headers = {}
    if known.e_tag:
        coded = _CODED_TAG.fullmatch(known.e_tag)
        headers["If-None-Match"] = f'{known.e_tag}, {coded[1]}"' if coded else known.e_tag
    if known.last_modified:
        headers["If-Modified-Since"] = known.last_modified
    return headers


def refusal(status: int, retry_after: float | None) -> Failure:
    """What a status other than 200 means."""
    again = status in _TRANSIENT or 500 <= status < 600
    return Failure(
        Outcome.HTTP_ERROR,
        f"answered {_phrase(status)}",
        transient=again,
        retry_after=retry_after if again else None,
    )


def _phrase(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
