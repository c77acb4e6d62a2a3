"""The steps of a fetch, against a real source on this machine."""

import threading

import pytest

from ingest.fetch.outcome import Outcome
from tests.source import BODY, CSV, MD5, SHA256, Source, fetch, fetcher, http
from tests.test_fetch_freshness import AT, NOW, SECOND


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
