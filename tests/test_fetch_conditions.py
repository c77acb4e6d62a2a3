"""Asking only for what is newer than the copy that is there."""

from ingest.fetch.outcome import Known, Outcome
from tests.source import BODY, CSV, MD5, SHA256, Source, fetch, fetcher, http
from tests.test_fetch_freshness import AT, NOW, SECOND


class TestConditions:
    HELD = Known(sha256=SHA256, md5=MD5, size=len(BODY), e_tag='W/"x"', last_modified=AT[-10])

    def test_validators_go_out_verbatim_and_304_renews_them(self):
        answer = http(b"", "304 x", Content_Length=None, ETag='"y"', Cache_Control="max-age=60")
        with Source(answer) as source:
            fetched, got = fetch(source.url(), by=fetcher(clock=lambda: NOW), known=self.HELD)
        assert source.headers()["if-none-match"] == 'W/"x"'
        assert source.headers()["if-modified-since"] == AT[-10]
        assert (fetched.outcome, fetched.http_status, got) == (Outcome.NOT_CHANGED, 304, b"")
        assert (fetched.sha256, fetched.md5, fetched.size) == (SHA256, MD5, len(BODY))
        assert (fetched.e_tag, fetched.last_modified) == ('"y"', AT[-10])
        assert (fetched.cache_control, fetched.fresh_until) == ("max-age=60", NOW + 60 * SECOND)

    def test_what_a_304_does_not_repeat_stays(self):
        known = Known(sha256=SHA256, e_tag='"x"', cache_control="max-age=60", expires=AT[60], fresh_until=NOW - 1)
        with Source(http(b"", "304 x", Age="10")) as source:
            fetched, _ = fetch(source.url(), by=fetcher(clock=lambda: NOW), known=known)
        assert (fetched.e_tag, fetched.cache_control, fetched.expires) == ('"x"', "max-age=60", AT[60])
        assert fetched.fresh_until == NOW + 50 * SECOND

    def test_what_is_fresh_is_not_asked_for(self):
        known = Known(sha256=SHA256, size=5, e_tag='"x"', fresh_until=NOW + 1, final_url="http://a.example/f")
        with Source(http(BODY)) as source:
            fetched, _ = fetch(source.url(), by=fetcher(clock=lambda: NOW), known=known)
            assert source.connections == 0
            fetch(source.url(), by=fetcher(clock=lambda: NOW + 1), known=known)
            assert source.connections == 1
        assert (fetched.outcome, fetched.http_status) == (Outcome.NOT_CHANGED, None)
        assert (fetched.sha256, fetched.e_tag, fetched.fresh_until) == (SHA256, '"x"', NOW + 1)
        assert fetched.final_url == "http://a.example/f"

    def test_without_a_copy_nothing_is_conditional_or_fresh(self):
        known = Known(e_tag='"x"', last_modified=AT[-10], fresh_until=NOW + 1)
        with Source(http(BODY, **CSV)) as source:
            fetched, _ = fetch(source.url(), by=fetcher(clock=lambda: NOW), known=known)
        assert fetched.outcome is Outcome.ARCHIVED
        assert not {"if-none-match", "if-modified-since"} & set(source.headers())

    def test_the_same_bytes_are_not_stored_twice(self):
        with Source(http(BODY, **CSV, ETag='"new"')) as source:
            fetched, _ = fetch(source.url(), known=self.HELD)
        assert (fetched.outcome, fetched.http_status, fetched.e_tag) == (Outcome.NOT_CHANGED, 200, '"new"')
        assert fetched.sha256 == SHA256

    def test_new_bytes_are(self):
        with Source(http(b"new", **CSV)) as source:
            fetched, got = fetch(source.url(), known=self.HELD)
        assert (fetched.outcome, got) == (Outcome.ARCHIVED, b"new")

    def test_an_equal_length_alone_means_nothing_unless_it_is_told_to(self):
        edited = BODY.replace(b"1", b"3")
        with Source(http(edited, **CSV)) as source:
            fetched, got = fetch(source.url(), known=self.HELD)
            assert (fetched.outcome, got) == (Outcome.ARCHIVED, edited)
            known = Known(sha256=SHA256, size=len(BODY), length_decides=True)
            assert fetch(source.url(), known=known)[0].outcome is Outcome.NOT_CHANGED
            known = Known(sha256=SHA256, size=len(BODY) + 1, length_decides=True)
            assert fetch(source.url(), known=known)[0].outcome is Outcome.ARCHIVED

    def test_only_the_url_that_gave_the_validators_is_asked_with_them(self):
        with Source({}) as source:
            source.answers |= {"/": http(b"", "302 x", Location="/file"), "/file": http(b"", "304 x")}
            known = Known(sha256=SHA256, e_tag='"x"', final_url=source.url("/file"))
            assert fetch(source.url(), known=known)[0].outcome is Outcome.NOT_CHANGED
            assert "if-none-match" not in source.headers(0)
            assert source.headers(1)["if-none-match"] == '"x"'
            source.answers["/file"] = http(b"moved", **CSV)
            elsewhere = Known(sha256=SHA256, last_modified=AT[0], final_url=source.url("/old"))
            assert fetch(source.url(), known=elsewhere)[0].outcome is Outcome.ARCHIVED
            assert all("if-modified-since" not in source.headers(index) for index in range(len(source.requests)))

    def test_a_failure_brings_no_validators(self):
        with Source(http(BODY[:9], ETag='"new"', Last_Modified=AT[0], Content_Length="99", **CSV)) as source:
            fetched, _ = fetch(source.url(), known=self.HELD)
        assert fetched.outcome is Outcome.TRUNCATED
        assert (fetched.e_tag, fetched.last_modified, fetched.sha256, fetched.size) == (None, None, None, None)
