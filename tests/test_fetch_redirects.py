"""Redirects are followed, to a bound and to URLs only."""

import pytest

from ingest.fetch.outcome import Outcome
from tests.source import BODY, CSV, Source, fetch, fetcher, http


class TestRedirects:
    def test_are_followed_to_the_end(self):
        def hop(status, where):
            return http(b"moved", status, Location=where, Content_Type="text/html")

        with Source({}) as source:
            source.answers |= {
                "/1": hop("301 x", "/2?x=%20"),
                "/2?x=%20": hop("302 x", "3"),
                "/3": hop("303 x", f"//127.0.0.1:{source.port}/4"),
                "/4": hop("307 x", source.url("/5")),
                "/5": hop("308 x", " /6#part"),
                "/6": http(BODY, **CSV),
            }
            fetched, got = fetch(source.url("/1"))
        assert (fetched.outcome, got, fetched.final_url) == (Outcome.ARCHIVED, BODY, source.url("/6"))
        assert source.targets == ["/1", "/2?x=%20", "/3", "/4", "/5", "/6"]
        assert fetched.filename == "6"

    @pytest.mark.parametrize("hops, outcome", [(10, Outcome.ARCHIVED), (11, Outcome.HTTP_ERROR)])
    def test_ten_and_no_more(self, hops, outcome):
        answers = {f"/{n}": http(b"", "302 x", Location=f"/{n + 1}") for n in range(hops)}
        with Source({**answers, f"/{hops}": http(BODY, **CSV)}) as source:
            fetched, _ = fetch(source.url("/0"))
        assert fetched.outcome is outcome
        assert len(source.requests) == 11
        assert not fetched.transient

    def test_in_a_circle_end(self):
        with Source(http(b"", "302 x", Location="/x")) as source:
            fetched, _ = fetch(source.url("/x"), by=fetcher(max_redirects=3))
        assert "more than 3 redirects" in fetched.reason
        assert (len(source.requests), fetched.http_status) == (4, 302)

    @pytest.mark.parametrize(
        "location", ["ftp://127.0.0.1/x", "file:///etc/passwd", "http://u:p@127.0.0.1/", "http://"]
    )
    def test_to_what_is_no_url(self, location):
        with Source(http(b"", "302 x", Location=location)) as source:
            fetched, _ = fetch(source.url("/start"))
        assert (fetched.outcome, fetched.transient) == (Outcome.URL_INVALID, False)
        assert (fetched.final_url, fetched.http_status) == (source.url("/start"), 302)
        assert "u:p" not in fetched.reason

    def test_without_a_place(self):
        with Source(http(BODY, "302 x", Content_Type="text/csv")) as source:
            fetched, _ = fetch(source.url())
        assert (fetched.outcome, fetched.http_status, fetched.transient) == (Outcome.HTTP_ERROR, 302, False)

    def test_their_bodies_are_not_read(self):
        def endless(connection, _):
            connection.sendall(b"HTTP/1.1 302 x\r\nLocation: /end\r\n\r\n")
            while not source.closing.is_set():
                connection.sendall(bytes(65536))

        with Source({"/": endless, "/end": http(BODY, **CSV)}) as source:
            fetched, _ = fetch(source.url())
        assert fetched.outcome is Outcome.ARCHIVED

    def test_keep_the_place_that_failed(self):
        with Source({"/": http(b"", "302 x", Location="/gone"), "/gone": http(b"", "410 x")}) as source:
            fetched, _ = fetch(source.url())
        assert (fetched.final_url, fetched.http_status) == (source.url("/gone"), 410)
