"""The steps of a fetch, against a real source on this machine."""

import base64
import gzip
import hashlib
import random
import threading

import pytest

from ingest.fetch.outcome import Known, Outcome
from tests.source import Source, fetch, fetcher, http
from tests.test_fetch_freshness import AT, NOW, SECOND

BODY = b"a,b\n1,2\n" * 1000
MD5, SHA256 = hashlib.md5(BODY).hexdigest(), hashlib.sha256(BODY).hexdigest()
CSV = {"Content_Type": "text/csv; charset=utf-8"}


def base64_of(name, data):
    return base64.b64encode(hashlib.new(name, data).digest()).decode()


def test_a_file_arrives_with_all_that_is_known_of_it():
    answer = http(BODY, **CSV, ETag='W/"x"', Last_Modified=AT[-10], Expires=AT[60], Date=AT[0], Cache_Control="public")
    with Source({"/d/data.csv?key=secret": answer}) as source:
        url = source.url("/d/data.csv?key=secret")
        fetched, got = fetch(f" {url}#part", by=fetcher(clock=lambda: NOW), mime="Text/Plain")
    assert got == BODY
    assert (fetched.outcome, fetched.transient, fetched.counted) == (Outcome.ARCHIVED, False, False)
    assert (fetched.size, fetched.md5, fetched.sha256) == (len(BODY), MD5, SHA256)
    assert (fetched.http_status, fetched.final_url, fetched.length_declared) == (200, url, len(BODY))
    assert (fetched.mime, fetched.mime_received, fetched.mime_sniffed) == ("text/csv", "text/csv", "text/plain")
    assert (fetched.mime_declared, fetched.filename) == ("text/plain", "data.csv")
    assert (fetched.e_tag, fetched.last_modified) == ('W/"x"', AT[-10])
    assert (fetched.expires, fetched.cache_control) == (AT[60], "public")
    assert fetched.fresh_until == NOW + 60 * SECOND
    assert "secret" not in fetched.reason


def test_the_request_is_one_plain_get():
    with Source(http(BODY, **CSV)) as source:
        fetch(source.url("/x?y"), by=fetcher(user_agent="Magazin/1 (mail@a.example)"))
    assert source.connections == 1
    assert source.requests[0].split(b"\r\n")[0] == b"GET /x?y HTTP/1.1"
    assert source.headers() == {
        "host": f"127.0.0.1:{source.port}",
        "user-agent": "Magazin/1 (mail@a.example)",
        "accept": "*/*",
        "accept-encoding": "identity",
        "connection": "close",
    }


def test_proxies_and_passwords_of_the_environment_are_ignored(monkeypatch, tmp_path):
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password secret\n")
    (tmp_path / ".netrc").chmod(0o600)
    with Source(http(b"", "500 proxy")) as proxy, Source(http(BODY, **CSV)) as source:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url())
        monkeypatch.setenv("no_proxy", "")
        monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
        monkeypatch.setenv("HOME", str(tmp_path))
        fetched, _ = fetch(source.url())
    assert fetched.outcome is Outcome.ARCHIVED
    assert proxy.connections == 0
    assert "authorization" not in source.headers()


@pytest.mark.parametrize("url", ["", "nonsense", "ftp://127.0.0.1/x", "http://me:secret@127.0.0.1/x", "http://"])
def test_a_bad_url_is_a_verdict_not_an_exception(url):
    fetched, _ = fetch(url)
    assert (fetched.outcome, fetched.transient, fetched.counted) == (Outcome.URL_INVALID, False, True)
    assert "secret" not in fetched.reason


@pytest.mark.parametrize(
    "status, transient",
    [
        *[(f"{code} Reason", False) for code in (201, 203, 204, 205, 206, 207, 300, 305, 306, 400, 401, 403, 404, 410)],
        *[(f"{code} Reason", True) for code in (202, 408, 425, 429, 500, 501, 502, 503, 504, 599)],
        *[(f"{code} Reason", False) for code in (103, 418, 451, 600, 999)],
    ],
)
def test_only_200_is_archived(status, transient):
    with Source(http(BODY, status, **CSV, Retry_After="7")) as source:
        fetched, got = fetch(source.url())
    assert (fetched.outcome, got) == (Outcome.HTTP_ERROR, b"")
    assert (fetched.transient, fetched.counted) == (transient, True)
    assert fetched.http_status == int(status[:3])
    assert fetched.retry_after == (7.0 if transient else None)
    assert f"answered {status[:3]}" in fetched.reason


def test_the_reason_uses_our_words_for_a_status():
    with Source(http(b"", "404 <script>\x1b[2J")) as source:
        fetched, _ = fetch(source.url("/x?y"))
    assert fetched.reason == f"{source.url('/x?…')} answered 404 Not Found"


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


class TestKinds:
    PAGE = b"<!DOCTYPE html><title>Please log in</title>"

    @pytest.mark.parametrize("content_type", ["text/html; charset=utf-8", "TEXT/HTML", "text/csv", "image/jpeg", None])
    def test_a_web_page_where_a_file_was_expected(self, content_type):
        with Source(http(self.PAGE, Content_Type=content_type)) as source:
            fetched, got = fetch(source.url(), mime="text/csv")
            assert (fetched.outcome, fetched.transient, fetched.counted) == (Outcome.NOT_DATA, False, False)
            assert (fetched.mime_sniffed, got) == ("text/html", b"")
            assert fetch(source.url(), accept_html=True)[0].mime == "text/html"
            assert fetch(source.url(), mime="text/HTML; charset=utf-8")[0].mime == "text/html"

    def test_a_page_that_does_not_look_like_one_is_one_by_its_header(self):
        with Source(http(b"just words", Content_Type="text/html")) as source:
            assert fetch(source.url())[0].outcome is Outcome.NOT_DATA

    def test_a_hint_counts_where_the_header_says_nothing(self):
        with Source(http(BODY, Content_Type="application/octet-stream")) as source:
            fetched, _ = fetch(source.url(), mime="text/csv")
        assert (fetched.mime, fetched.mime_declared) == ("text/csv", "text/csv")
        assert fetched.mime_received == "application/octet-stream"

    def test_a_malformed_hint_or_header_is_none(self):
        with Source(http(bytes(9), Content_Type="no type at all")) as source:
            fetched, _ = fetch(source.url(), mime="<b>")
        assert (fetched.mime, fetched.mime_declared) == ("application/octet-stream", None)


class TestStop:
    def test_before_the_start(self):
        stop = threading.Event()
        stop.set()
        with Source(http(BODY)) as source:
            fetched, _ = fetch(source.url(), stop=stop)
        assert (fetched.outcome, fetched.transient, fetched.counted) == (Outcome.SYSTEM_ERROR, True, False)
        assert source.connections == 0

    @pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 x\r\n", http(b"x" * 9999, Content_Length=None)])
    def test_in_the_middle(self, sent):
        stop = threading.Event()

        def silent(connection, _):
            connection.sendall(sent)
            stop.set()
            source.closing.wait()

        with Source(silent) as source:
            fetched, _ = fetch(source.url(), stop=stop)
        assert (fetched.outcome, fetched.transient, fetched.counted) == (Outcome.SYSTEM_ERROR, True, False)
        assert "told to stop" in fetched.reason

    def test_an_event_that_is_never_set_changes_nothing(self):
        with Source(http(BODY, **CSV)) as source:
            assert fetch(source.url(), stop=threading.Event())[0].outcome is Outcome.ARCHIVED


def test_what_the_sink_raises_passes_through_and_the_connection_is_closed():
    class Full(Exception):
        pass

    class Sink:
        def write(self, data):
            raise Full

    hung_up = threading.Event()

    def watching(connection, _):
        connection.sendall(http(bytes(10_000), Content_Length="20000"))
        connection.recv(1)
        hung_up.set()

    with Source(watching) as source:
        with pytest.raises(Full):
            fetcher().fetch(source.url(), Sink())
        assert hung_up.wait(10)


def test_threads_share_a_fetcher():
    with Source(lambda _, request: http(request.split(b" ")[1] * 5000)) as source:
        shared, results = fetcher(), {}

        def run(target):
            results[target] = fetch(source.url(target), by=shared)[1]

        threads = [threading.Thread(target=run, args=(f"/{number}",)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert results == {f"/{number}": f"/{number}".encode() * 5000 for number in range(8)}
