"""Mistakes that real fetchers shipped, one test each."""

import gzip

import pytest
import trustme

from ingest.fetch.fetcher import Fetcher
from ingest.fetch.guard import Guard
from ingest.fetch.outcome import Known, Outcome
from tests.source import Dial, Source, fetch, fetcher, http, resolver
from tests.test_fetch_connection import tls
from tests.test_fetch_freshness import NOW, SECOND

CSV = {"Content_Type": "text/csv"}
BODY = b"a,b\n1,2\n"
HELD = "0" * 64


def test_percent_20_became_percent_2520():
    with Source(http(BODY, **CSV)) as source:
        fetch(source.url("/a%20b/c d%2fe%c3%a9?q=%20&p=100%"))
    assert source.targets == ["/a%20b/c%20d%2fe%c3%a9?q=%20&p=100%25"]


def test_a_percent_escaped_name_stored_as_such():
    with Source(http(BODY, **CSV)) as source:
        fetched, _ = fetch(source.url("/r%C3%A9sum%C3%A9%20100%2525.csv"))
    assert fetched.filename == "résumé 100%25.csv"


def test_no_verification_fallback_after_a_tls_error():
    with Source(http(BODY, **CSV), tls=tls(trustme.CA(), "127.0.0.1")) as source:
        fetched, _ = fetch(source.url())
    assert (fetched.outcome, fetched.transient) == (Outcome.TLS_ERROR, False)
    assert (source.connections, source.requests) == (1, [])  # not asked again without a look at the certificate


def test_head_refused_file_called_broken():
    def only_get(connection, request):
        return http(BODY, **CSV) if request.startswith(b"GET ") else http(b"", "405 Method Not Allowed")

    with Source(only_get) as source:
        assert fetch(source.url())[0].outcome is Outcome.ARCHIVED
    assert len(source.requests) == 1


def test_a_csv_link_judged_by_its_html_redirect_page():
    page = http(b"<html>moved</html>", "302 Found", Location="/real.csv", Content_Type="text/html")
    with Source({"/data.csv": page, "/real.csv": http(BODY, **CSV)}) as source:
        fetched, got = fetch(source.url("/data.csv"))
    assert (fetched.outcome, fetched.mime, got) == (Outcome.ARCHIVED, "text/csv", BODY)


def test_too_large_shown_as_merely_stale():
    with Source(http(BODY, **CSV)) as source:
        fetched, _ = fetch(source.url(), max_bytes=4, known=Known(sha256=HELD, e_tag='"x"'))
    assert fetched.outcome is Outcome.TOO_LARGE
    assert fetched.reason == f"{source.url()} is 8 bytes long, more than the 4 bytes that are taken"


def test_a_short_body_taken_as_whole():
    with Source(http(BODY, Content_Length="9", **CSV)) as source:
        fetched, _ = fetch(source.url())
    assert (fetched.outcome, fetched.transient) == (Outcome.TRUNCATED, True)
    assert "broke off after 8 of 9 bytes" in fetched.reason


@pytest.mark.parametrize("content_type", ["application/x-gzip", "text/csv", None])
def test_a_gz_stored_decompressed(content_type):
    coded = gzip.compress(BODY)
    with Source(http(coded, Content_Encoding="x-gzip", Content_Type=content_type)) as source:
        fetched, got = fetch(source.url("/data.csv.gz"))
    assert (fetched.outcome, got, fetched.size) == (Outcome.ARCHIVED, coded, len(coded))
    assert fetched.mime == "application/gzip"


def test_decoded_size_compared_with_the_wires():
    body = BODY * 1000
    coded = gzip.compress(body)
    with Source(http(coded, Content_Encoding="gzip", **CSV)) as source:
        fetched, got = fetch(source.url("/data.csv"))
    assert (fetched.outcome, got) == (Outcome.ARCHIVED, body)
    assert (fetched.length_declared, fetched.size) == (len(coded), len(body))


def test_an_e_tag_with_gzip_that_never_matches_again():
    def apache(connection, request):
        tags = source.headers()["if-none-match"].split(", ")
        return http(b"", "304 x") if '"abc"' in tags else http(BODY, **CSV)

    with Source(apache) as source:
        for tag in ('"abc-gzip"', '"abc--gzip"', '"abc-br"'):
            assert fetch(source.url(), known=Known(sha256=HELD, e_tag=tag))[0].outcome is Outcome.NOT_CHANGED
            assert source.headers()["if-none-match"] == f'{tag}, "abc"'
    assert source.headers()["accept-encoding"] == "identity"  # with which no new ones come


def test_a_weak_tag_quoted_twice():
    with Source(http(BODY, ETag='W/"abc"', **CSV)) as source:
        fetched, _ = fetch(source.url())
        assert fetched.e_tag == 'W/"abc"'
        source.answers = http(b"", "304 x")
        fetched, _ = fetch(source.url(), known=Known(sha256=fetched.sha256, e_tag=fetched.e_tag))
    assert source.headers()["if-none-match"] == 'W/"abc"'
    assert fetched.e_tag == 'W/"abc"'


def test_304_stored_as_an_empty_file():
    with Source(http(b"", "304 Not Modified", Content_Length=None)) as source:
        fetched, got = fetch(source.url(), known=Known(sha256=HELD, size=8, e_tag='"x"'))
    assert (fetched.outcome, fetched.sha256, fetched.size, got) == (Outcome.NOT_CHANGED, HELD, 8, b"")


def test_304_without_a_copy_at_hand():
    answers = [http(b"", "304 Not Modified"), http(BODY, **CSV)]
    with Source(lambda *_: answers.pop(0)) as source:
        fetched, got = fetch(source.url(), known=Known(e_tag='"x"'))
        assert (fetched.outcome, got) == (Outcome.ARCHIVED, BODY)
        assert all("if-none-match" not in source.headers(index) for index in (0, 1))
        answers += [http(b"", "304 Not Modified")] * 3
        fetched, _ = fetch(source.url())
    assert (fetched.outcome, fetched.transient) == (Outcome.HTTP_ERROR, False)
    assert len(answers) == 1  # one more request, no loop


def test_an_unasked_206_archived():
    with Source(http(BODY, "206 Partial Content", Content_Range="bytes 0-7/8", **CSV)) as source:
        fetched, got = fetch(source.url())
    assert (fetched.outcome, fetched.http_status, got) == (Outcome.HTTP_ERROR, 206, b"")
    assert "range" not in source.headers()


@pytest.mark.parametrize("headers", [b"\r\n", b"Transfer-Encoding: chunked\r\n\r\n"])
def test_an_endless_stream(headers):
    sent = []

    def endless(connection, _):
        connection.sendall(b"HTTP/1.1 200 OK\r\n" + headers)
        while not source.closing.is_set():
            connection.sendall(b"10000\r\n" + bytes(65536) + b"\r\n")
            sent.append(65536)

    with Source(endless) as source:
        fetched, got = fetch(source.url(), max_bytes=1_000_000)
    assert (fetched.outcome, fetched.counted) == (Outcome.TOO_LARGE, False)
    assert len(got) <= 1_000_000


@pytest.mark.parametrize(
    "start",
    [b"", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n"],
)
def test_a_trickle_of_one_byte_a_second(start):
    def trickle(connection, _):
        connection.sendall(start)
        while not source.closing.wait(0.01):
            connection.sendall(b"x")

    with Source(trickle) as source:
        fetched, _ = fetch(source.url(), by=fetcher(deadline=0.3, read_timeout=10.0))
    assert (fetched.outcome, fetched.transient, fetched.counted) == (Outcome.TIMEOUT, True, True)
    assert "0.3 s" in fetched.reason


def test_a_trickle_whose_cut_looks_like_a_proper_end():
    """A body without a length ends with the connection, which is what the watchdog brings about."""
    now = [0.0]

    class Sink:
        def write(self, data):
            return len(data)

    def slow(connection, _):
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + bytes(300_000))
        now[0] = 100.0
        source.closing.wait()

    with Source(slow) as source:
        fetched = fetcher(deadline=99.0, monotonic=lambda: now[0]).fetch(source.url(), Sink())
    assert fetched.outcome is Outcome.TIMEOUT


def test_a_name_that_resolves_to_a_public_address_first_and_to_loopback_next():
    names = resolver(a_example=[["8.8.8.8"], ["127.0.0.1"]])
    again = http(b"", "302 Found", Location="http://a.example/two")
    with Source({"/one": again, "/two": http(BODY, **CSV)}) as source:
        dial = Dial(source)
        fetched, _ = fetch("http://a.example/one", by=Fetcher(Guard(resolve=names), connect=dial))
    assert fetched.outcome is Outcome.URL_BLOCKED
    assert dial.dialled == ["8.8.8.8"]
    assert names.asked == ["a.example"] * 2  # each connection: one look-up, one check, one address
    assert source.targets == ["/one"]


def test_a_redirect_to_a_private_address():
    with Source(http(b"", "302 Found", Location="http://169.254.169.254/latest/meta-data/")) as source:
        dial = Dial(source)
        names = resolver(a_example=["8.8.8.8"])
        fetched, _ = fetch("http://a.example/", by=Fetcher(Guard(resolve=names), connect=dial))
    assert (fetched.outcome, fetched.transient) == (Outcome.URL_BLOCKED, False)
    assert fetched.final_url == "http://169.254.169.254/latest/meta-data/"
    assert dial.dialled == ["8.8.8.8"]


def test_retry_after_of_a_century():
    with Source(http(b"", "503 Service Unavailable", Retry_After="3155760000")) as source:
        fetched, _ = fetch(source.url(), by=fetcher(retry_after_cap=600.0))
        assert (fetched.transient, fetched.retry_after) == (True, 600.0)
        source.answers = http(b"", "429 Too Many Requests", Retry_After="Wed, 01 Jan 2125 00:00:00 GMT")
        fetched, _ = fetch(source.url(), by=fetcher(retry_after_cap=600.0))
    assert (fetched.transient, fetched.retry_after) == (True, 600.0)


def test_filename_star_ignored():
    disposition = "attachment; filename=\"na_ve.csv\"; filename*=UTF-8''na%C3%AFve.csv"
    with Source(http(BODY, Content_Disposition=disposition, **CSV)) as source:
        assert fetch(source.url())[0].filename == "naïve.csv"


def test_cookies_leaking_from_one_fetch_to_the_next():
    hop = http(b"", "302 Found", Location="/end", Set_Cookie="wall=passed; Path=/")
    with Source({"/": hop, "/end": http(BODY, Set_Cookie="other=1; Path=/", **CSV)}) as source:
        by = fetcher()
        fetch(source.url(), by=by)
        fetch(source.url(), by=by)
    cookies = [source.headers(index).get("cookie") for index in range(4)]
    assert cookies == [None, "wall=passed", None, "wall=passed"]


def test_a_location_in_latin_1_that_crashed_the_client():
    with Source({"/": http(b"", "302 Found", Location="/caf\xe9.csv"), "/caf%E9.csv": http(BODY, **CSV)}) as source:
        fetched, _ = fetch(source.url())
    assert (fetched.outcome, fetched.filename) == (Outcome.ARCHIVED, "café.csv")


@pytest.mark.parametrize(
    "body, kind", [(b"\xff\xd8\xff\xe0\x00", "image/jpeg"), (b"\x00\x01", "application/octet-stream")]
)
def test_no_content_type(body, kind):
    with Source(http(body)) as source:
        fetched, _ = fetch(source.url())
    assert (fetched.outcome, fetched.mime) == (Outcome.ARCHIVED, kind)
    assert fetched.mime_received == "application/octet-stream"


def test_expires_0():
    with Source(http(BODY, Expires="0", **CSV)) as source:
        fetched, _ = fetch(source.url(), by=fetcher(clock=lambda: NOW))
        assert (fetched.expires, fetched.fresh_until) == ("0", None)
        source.answers = http(BODY, Expires="0", Cache_Control="max-age=5", **CSV)
        fetched, _ = fetch(source.url(), by=fetcher(clock=lambda: NOW))
    assert fetched.fresh_until == NOW + 5 * SECOND
