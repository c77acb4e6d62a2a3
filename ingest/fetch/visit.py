"""What a fetch makes of the answer that it gets: every step from the status line to the last byte."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final, Protocol

from ingest.fetch import media
from ingest.fetch.coding import gunzipped, to_undo
from ingest.fetch.digest import Tally, announced
from ingest.fetch.failure import Failure, transient, verdict
from ingest.fetch.filename import filename
from ingest.fetch.freshness import fresh_until, retry_after
from ingest.fetch.journey import BLOCK, Answer, Journey, refusal
from ingest.fetch.outcome import Fetched, Known, Outcome
from ingest.fetch.url import mask
from storage.ids import Clock

HASHES: Final = frozenset({"md5", "sha256"})


class Sink(Protocol):
    def write(self, data: bytes) -> int: ...


@dataclass(frozen=True)
class Terms:
    """What a fetch is held to. ``declared`` is the caller's media type, ``known`` the copy at hand, if there is one."""

    declared: str | None
    accept_html: bool
    max_bytes: int
    retry_after_cap: float
    known: Known | None


class Visit:
    def __init__(self, journey: Journey, sink: Sink, terms: Terms, clock: Clock) -> None:
        self._journey, self._sink, self._terms, self._clock = journey, sink, terms, clock
        self._facts = Fetched(Outcome.ARCHIVED, "", mime_declared=terms.declared)

    def outcome(self) -> Fetched:
        """Never raises but for what the sink raises."""
        try:
            answer = self._answer()
            if answer.status == 304:
                return self._not_modified(answer)
            if answer.status != 200:
                cap = self._terms.retry_after_cap
                raise refusal(answer.status, retry_after(answer.value("Retry-After"), self._clock(), cap))
            return self._receive(answer)
        except Failure as failure:
            return self._failed(failure)
        finally:
            self._journey.close()

    def _answer(self) -> Answer:
        answer = self._journey.go(self._terms.known)
        if answer.status == 304 and not self._journey.conditional:
            answer = self._journey.go(None)
            if answer.status == 304:
                raise refusal(304, None)
        return answer

    def _receive(self, answer: Answer) -> Fetched:
        self._note(answer)
        digests, known = announced(answer.values), self._terms.known
        if known is not None and _same(digests, known):
            return self._unchanged("announces the hash of the held copy")
        if answer.length == 0:
            raise verdict(Outcome.EMPTY, "sent an empty body")
        if answer.length is not None and answer.length > self._terms.max_bytes:
            raise self._too_large(f"is {answer.length} bytes long")
        if known is not None and known.length_decides and answer.length is not None and answer.length == known.size:
            return self._unchanged("has the length of the held copy")

        wire = Tally(digests)
        pieces, decoded = self._pieces(answer, wire)
        first = next(pieces, b"")
        if not first:
            raise verdict(Outcome.EMPTY, "sent an empty body")
        self._judge_kind(first)
        stored = Tally(HASHES)
        for piece in chain([first], pieces):
            if stored.size + len(piece) > self._terms.max_bytes:
                raise self._too_large("goes on")
            stored.add(piece)
            self._sink.write(piece)
        for algorithm, value in digests.items():
            if wire.hex(algorithm) != value:
                raise transient(Outcome.NETWORK_ERROR, f"sent a body whose {algorithm} isn't the one that it announced")
        if known is not None and stored.hex("sha256") == known.sha256:
            return self._unchanged("has the bytes of the held copy")
        return replace(
            self._facts,
            reason=f"{self._named} was fetched" + (", and decompressed from gzip" if decoded else ""),
            size=stored.size,
            md5=stored.hex("md5"),
            sha256=stored.hex("sha256"),
        )

    def _pieces(self, answer: Answer, wire: Tally) -> tuple[Iterator[bytes], bool]:
        """The body as it is stored, and whether that took decoding; ``wire`` sees it as it came."""

        def passing() -> Iterator[bytes]:
            for block in answer.blocks(media.HEAD, self._terms.max_bytes):
                if answer.received > self._terms.max_bytes:
                    raise self._too_large("goes on")
                wire.add(block)
                yield block

        blocks = passing()
        head = next(blocks, b"")
        whole = chain([head], blocks)
        coding = ",".join(answer.values("Content-Encoding"))
        if to_undo(coding, self._facts.mime_received, self._facts.filename or "", head):
            return gunzipped(whole, BLOCK), True
        return whole, False

    def _note(self, answer: Answer) -> None:
        """What the headers say."""
        self._facts = replace(
            self._facts,
            http_status=answer.status,
            final_url=self._journey.url,
            mime_received=media.named(answer.value("Content-Type")) or media.OCTETS,
            filename=filename(answer.value("Content-Disposition"), self._journey.url),
            e_tag=answer.validator("ETag"),
            last_modified=answer.validator("Last-Modified"),
            expires=answer.validator("Expires"),
            cache_control=", ".join(answer.values("Cache-Control"))[:1024] or None,
            fresh_until=fresh_until(answer.values, self._clock()),
            length_declared=answer.length,
        )

    def _judge_kind(self, head: bytes) -> None:
        shown = media.sniffed(head)
        mime = media.verdict(self._terms.declared, self._facts.mime_received, shown)
        self._facts = replace(self._facts, mime_sniffed=shown, mime=mime)
        if mime in media.HTML and not self._terms.accept_html:
            raise verdict(Outcome.NOT_DATA, "is a web page, where a file was expected")

    def _not_modified(self, answer: Answer) -> Fetched:
        known = self._terms.known
        assert known is not None  # without it the request wasn't conditional

        def values(name: str) -> Sequence[str]:
            kept = {"expires": known.expires, "cache-control": known.cache_control}.get(name.lower())
            return answer.values(name) or ([kept] if kept is not None else [])

        return replace(
            held(known, f"{self._named} answered 304 Not Modified"),
            http_status=304,
            final_url=self._journey.url,
            e_tag=answer.validator("ETag") or known.e_tag,
            last_modified=answer.validator("Last-Modified") or known.last_modified,
            expires=answer.validator("Expires") or known.expires,
            cache_control=", ".join(values("Cache-Control"))[:1024] or None,
            fresh_until=fresh_until(values, self._clock()),
            mime_declared=self._terms.declared,
        )

    def _unchanged(self, why: str) -> Fetched:
        known = self._terms.known
        assert known is not None
        facts = replace(self._facts, size=known.size, md5=known.md5, sha256=known.sha256)
        return replace(facts, outcome=Outcome.NOT_CHANGED, reason=f"{self._named} {why}")

    def _failed(self, failure: Failure) -> Fetched:
        """Without the validators of this answer: they would vouch for a copy that isn't held."""
        return Fetched(
            failure.outcome,
            f"{self._named} {failure.message}",
            transient=failure.transient,
            counted=failure.counted,
            http_status=self._journey.status,
            final_url=self._journey.url,
            retry_after=failure.retry_after,
            mime_declared=self._terms.declared,
            mime_received=self._facts.mime_received,
            mime_sniffed=self._facts.mime_sniffed,
            length_declared=self._facts.length_declared,
        )

    def _too_large(self, what: str) -> Failure:
        return verdict(Outcome.TOO_LARGE, f"{what}, more than the {self._terms.max_bytes} bytes that are taken")

    @property
    def _named(self) -> str:
        return mask(self._journey.url)


def held(known: Known, reason: str) -> Fetched:
    """NOT_CHANGED, with all that is known of the held copy."""
    return Fetched(
        Outcome.NOT_CHANGED,
        reason,
        final_url=known.final_url,
        size=known.size,
        md5=known.md5,
        sha256=known.sha256,
        e_tag=known.e_tag,
        last_modified=known.last_modified,
        expires=known.expires,
        cache_control=known.cache_control,
        fresh_until=known.fresh_until,
    )


def _same(digests: dict[str, str], known: Known) -> bool:
    """Whether the announced hashes are those of the held copy; all that can be compared must agree."""
    kept = {"md5": known.md5, "sha256": known.sha256}
    compared = [digests[name] == value for name, value in kept.items() if name in digests and value is not None]
    return bool(compared) and all(compared)
