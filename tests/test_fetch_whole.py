"""Whether what arrived is all of it, and what was announced: sizes and hashes."""

import base64
import gzip
import hashlib
import random

import pytest

from ingest.fetch.outcome import Known, Outcome
from tests.source import BODY, CSV, MD5, SHA256, Source, fetch, fetcher, http


def base64_of(name, data):
    return base64.b64encode(hashlib.new(name, data).digest()).decode()


class TestSizes:
    def test_a_declared_length_above_the_limit_is_not_read(self):
        def only_headers(connection, _):
            connection.sendall(b"HTTP/1.1 200 x\r\nContent-Length: 101\r\n\r\n")
            source.closing.wait()

        with Source(only_headers) as source:
            fetched, got = fetch(source.url(), max_bytes=100)
        assert (fetched.outcome, fetched.transient, fetched.counted) == (Outcome.TOO_LARGE, False, False)
        assert (fetched.length_declared, got) == (101, b"")
        assert "101 bytes" in fetched.reason

    @pytest.mark.parametrize("size, outcome", [(100, Outcome.ARCHIVED), (101, Outcome.TOO_LARGE)])
    @pytest.mark.parametrize("framing", ["length", "close", "chunked", "nonsense", "gzip"])
    def test_the_limit_is_exact(self, size, outcome, framing):
        body = bytes(size)
        answers = {
            "length": http(body),
            "close": http(body, Content_Length=None),
            "chunked": http(b"", Content_Length=None, Transfer_Encoding="chunked")
            + b"%x\r\n%s\r\n0\r\n\r\n" % (size, body),
            "nonsense": http(body, Content_Length="many"),
            "gzip": http(gzip.compress(body), Content_Encoding="gzip"),
        }
        with Source(answers[framing]) as source:
            fetched, got = fetch(source.url(), by=fetcher(max_bytes=100))
        assert fetched.outcome is outcome
        assert len(got) <= 100

    def test_the_limit_holds_for_what_is_decompressed(self):
        with Source(http(gzip.compress(bytes(50_000_000)), Content_Encoding="gzip")) as source:
            fetched, got = fetch(source.url(), max_bytes=1_000_000)
        assert (fetched.outcome, fetched.counted) == (Outcome.TOO_LARGE, False)
        assert len(got) <= 1_000_000

    def test_the_limit_holds_on_the_wire_too(self):
        coded = gzip.compress(random.Random(1).randbytes(100))
        assert len(coded) > 100
        with Source(http(coded, Content_Encoding="gzip", Content_Length=None)) as source:
            assert fetch(source.url(), max_bytes=100)[0].outcome is Outcome.TOO_LARGE

    @pytest.mark.parametrize("headers", [{}, {"Content_Length": None}, {"Content_Length": "x"}])
    def test_an_empty_body_is_a_verdict(self, headers):
        with Source(http(b"", **headers)) as source:
            fetched, _ = fetch(source.url())
        assert (fetched.outcome, fetched.transient, fetched.counted) == (Outcome.EMPTY, False, False)

    def test_a_gzip_of_nothing_is_empty(self):
        with Source(http(gzip.compress(b""), Content_Encoding="gzip")) as source:
            fetched, _ = fetch(source.url())
        assert fetched.outcome is Outcome.EMPTY

    def test_a_large_body_comes_whole(self):
        body = bytes(range(256)) * 4 * 3000 + b"end"
        with Source(http(body)) as source:
            fetched, got = fetch(source.url())
        assert got == body
        assert (fetched.size, fetched.sha256) == (len(body), hashlib.sha256(body).hexdigest())


class TestAnnouncedHashes:
    @pytest.mark.parametrize(
        "headers",
        [
            {"Content_MD5": base64_of("md5", BODY)},
            {"Digest": f"sha-256={base64_of('sha256', BODY)}"},
            {"Repr_Digest": f"sha-256=:{base64_of('sha256', BODY)}:"},
        ],
    )
    def test_the_held_ones_spare_the_body(self, headers):
        def only_headers(connection, _):
            connection.sendall(http(**headers, Content_Length=str(len(BODY)), ETag='"y"'))
            source.closing.wait()

        with Source(only_headers) as source:
            fetched, got = fetch(source.url(), known=Known(sha256=SHA256, md5=MD5, size=len(BODY)))
        assert (fetched.outcome, got) == (Outcome.NOT_CHANGED, b"")
        assert (fetched.sha256, fetched.e_tag) == (SHA256, '"y"')

    def test_all_must_agree_with_what_is_held(self):
        digest = f"md5={base64_of('md5', BODY)}, sha-256={base64_of('sha256', b'new')}"
        with Source(http(b"new", Digest=digest)) as source:
            fetched, _ = fetch(source.url(), known=Known(sha256=SHA256, md5=MD5))
        assert fetched.outcome is Outcome.NETWORK_ERROR  # nor does it agree with itself

    @pytest.mark.parametrize("algorithm, name", [("md5", "md5"), ("sha256", "sha-256"), ("sha512", "sha-512")])
    def test_a_body_that_disagrees_is_tried_again(self, algorithm, name):
        with Source({}) as source:
            source.answers |= {
                "/right": http(BODY, Digest=f"{name}={base64_of(algorithm, BODY)}", **CSV),
                "/wrong": http(BODY, Digest=f"{name}={base64_of(algorithm, b'other')}", **CSV),
            }
            assert fetch(source.url("/right"))[0].outcome is Outcome.ARCHIVED
            fetched, _ = fetch(source.url("/wrong"))
        assert (fetched.outcome, fetched.transient, fetched.counted) == (Outcome.NETWORK_ERROR, True, True)
        assert algorithm in fetched.reason

    def test_they_are_those_of_the_wire(self):
        coded = gzip.compress(BODY)
        answer = http(coded, Content_Encoding="gzip", Repr_Digest=f"sha-256=:{base64_of('sha256', coded)}:", **CSV)
        with Source(answer) as source:
            fetched, got = fetch(source.url())
        assert (fetched.outcome, fetched.sha256, got) == (Outcome.ARCHIVED, SHA256, BODY)
        assert "decompressed" in fetched.reason
