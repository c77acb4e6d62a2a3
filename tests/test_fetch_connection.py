"""Where a fetch connects to, how it proves whom it speaks to, and sources that lie or break off."""

import ssl
import threading
from datetime import UTC, datetime

import pytest
import trustme
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest.fetch.fetcher import Fetcher
from ingest.fetch.guard import Guard
from ingest.fetch.outcome import Outcome
from tests.source import Dial, Source, fetch, fetcher, http, reset, resolver
from tests.test_fetch_guard import FORBIDDEN

FILE = http(b"the file", Content_Type="text/csv")


def on_the_internet(dial, **names):
    """A fetcher with the default guard, whose names and connections are the test's."""
    return Fetcher(Guard(resolve=resolver(**names)), connect=dial, read_timeout=10.0, deadline=20.0)


class TestGuard:
    @pytest.mark.parametrize("host", FORBIDDEN)
    def test_forbidden_literals_are_refused_before_any_connect(self, host):
        dial = Dial()
        fetched, _ = fetch(f"http://{host}/x", by=on_the_internet(dial))
        assert (fetched.outcome, fetched.transient, fetched.counted) == (Outcome.URL_BLOCKED, False, True)
        assert dial.dialled == []

    @pytest.mark.parametrize("scheme", ["http", "https"])
    def test_so_are_names_that_resolve_to_them(self, scheme):
        dial = Dial()
        fetched, _ = fetch(f"{scheme}://a.example/x?y", by=on_the_internet(dial, a_example=["8.8.8.8", "127.0.0.1"]))
        assert fetched.outcome is Outcome.URL_BLOCKED
        assert dial.dialled == []
        assert fetched.reason.startswith(f"{scheme}://a.example/x?… isn't fetched: a.example (127.0.0.1)")

    def test_the_connection_goes_to_the_very_address_that_was_checked(self):
        with Source(FILE) as source:
            dial = Dial(source)
            names = resolver(a_example=[["8.8.8.8"], ["127.0.0.1"]])
            by = Fetcher(Guard(resolve=names), connect=dial)
            fetched, _ = fetch("http://a.example:8080/x", by=by)
        assert (fetched.outcome, dial.dialled) == (Outcome.ARCHIVED, ["8.8.8.8"])
        assert names.asked == ["a.example"]
        assert source.headers()["host"] == "a.example:8080"

    def test_the_next_address_is_tried_when_one_refuses(self):
        with Source(FILE) as source:
            dial = Dial(source, failing=["8.8.8.8"])
            fetched, _ = fetch("http://a.example/", by=on_the_internet(dial, a_example=["8.8.8.8", "8.8.4.4"]))
        assert (fetched.outcome, dial.dialled) == (Outcome.ARCHIVED, ["8.8.8.8", "8.8.4.4"])

    @pytest.mark.parametrize(
        "target", ["http://127.0.0.1/", "http://0/", "http://[::1]/", "//b.example/", "http://b.example:99/"]
    )
    def test_every_redirect_passes_the_gate(self, target):
        with Source({"/": http(b"", "302 x", Location=target)}) as source:
            dial = Dial(source)
            by = on_the_internet(dial, a_example=["8.8.8.8"], b_example=["10.0.0.1"])
            fetched, _ = fetch("http://a.example/", by=by)
        assert (fetched.outcome, dial.dialled) == (Outcome.URL_BLOCKED, ["8.8.8.8"])
        assert fetched.final_url.rstrip("/") in (target.rstrip("/"), "http://b.example")

    def test_an_allowed_network_is_reached(self):
        with Source(FILE, host="127.0.0.2") as source:
            by = fetcher(resolver(a_example=["127.0.0.2"]), allow=["127.0.0.2/32"])
            assert fetch(f"http://a.example:{source.port}/", by=by)[0].outcome is Outcome.ARCHIVED
            assert fetch(source.url(), by=by)[0].outcome is Outcome.ARCHIVED
            assert fetch(f"http://127.0.0.1:{source.port}/", by=by)[0].outcome is Outcome.URL_BLOCKED

    def test_a_name_that_is_not_known_is_a_network_fault(self):
        fetched, _ = fetch("http://nowhere.example/")
        assert (fetched.outcome, fetched.transient, fetched.counted) == (Outcome.NETWORK_ERROR, True, True)
        assert "can't be resolved" in fetched.reason

    def test_a_source_that_is_not_there_is_a_network_fault(self):
        with Source(FILE) as source:
            pass
        fetched, _ = fetch(source.url())
        assert (fetched.outcome, fetched.transient) == (Outcome.NETWORK_ERROR, True)
        assert "refused" in fetched.reason

    def test_connecting_that_takes_too_long(self):
        def slow(sock, sockaddr):
            raise TimeoutError("timed out")

        fetched, _ = fetch("http://127.0.0.1:9/", by=fetcher(connect=slow))
        assert (fetched.outcome, fetched.transient) == (Outcome.TIMEOUT, True)
        assert "connecting" in fetched.reason

    def test_the_connect_timeout_is_set_before_the_connect(self):
        seen = []

        def look(sock, sockaddr):
            seen.append(sock.gettimeout())
            raise ConnectionRefusedError(111, "refused")

        fetch("http://127.0.0.1:9/", by=fetcher(connect=look, connect_timeout=1.5))
        assert seen == [1.5]

    def test_a_machine_out_of_descriptors_does_not_blame_the_source(self):
        def out(sock, sockaddr):
            raise OSError(24, "Too many open files")

        fetched, _ = fetch("http://127.0.0.1:9/", by=fetcher(connect=out))
        assert (fetched.outcome, fetched.transient) == (Outcome.SYSTEM_ERROR, True)

    def test_a_resolver_that_hangs_is_left_behind_when_told_to_stop(self):
        stop, release = threading.Event(), threading.Event()

        def hang(*_, **__):
            stop.set()
            release.wait()
            return []

        fetched, _ = fetch("http://a.example/", by=fetcher(hang), stop=stop)
        release.set()
        assert (fetched.outcome, fetched.counted) == (Outcome.SYSTEM_ERROR, False)

    def test_a_resolver_that_hangs_is_bounded_by_the_deadline(self):
        release = threading.Event()
        fetched, _ = fetch("http://a.example/", by=fetcher(lambda *_, **__: release.wait(), deadline=0.05))
        release.set()
        assert (fetched.outcome, fetched.transient) == (Outcome.TIMEOUT, True)


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture(scope="module")
def ca_file(authority, tmp_path_factory):
    path = tmp_path_factory.mktemp("ca") / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return str(path)


def tls(authority, *names, **options):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names, **options).configure_cert(context)
    context.seen = []
    context.sni_callback = lambda _, name, __: context.seen.append(name)
    return context


class TestTls:
    def test_name_and_certificate_are_those_of_the_url(self, authority, ca_file):
        with Source(FILE, tls=tls(authority, "a.example")) as source:
            by = fetcher(resolver(a_example=["127.0.0.1"]), ca_file=ca_file)
            fetched, got = fetch(source.url("/x", "a.example"), by=by)
            assert (fetched.outcome, got) == (Outcome.ARCHIVED, b"the file")
            assert fetch(source.url("/x", "a.example."), by=by)[0].outcome is Outcome.ARCHIVED
        assert source.tls.seen == ["a.example"] * 2
        assert source.headers(0)["host"] == f"a.example:{source.port}"

    def test_so_is_that_of_an_address(self, authority, ca_file):
        with Source(FILE, tls=tls(authority, "127.0.0.1")) as source:
            assert fetch(source.url(), by=fetcher(ca_file=ca_file))[0].outcome is Outcome.ARCHIVED

    def test_a_certificate_of_another_name(self, authority, ca_file):
        with Source(FILE, tls=tls(authority, "b.example")) as source:
            by = fetcher(resolver(a_example=["127.0.0.1"]), ca_file=ca_file)
            fetched, _ = fetch(source.url("/", "a.example"), by=by)
        self.refused(fetched, source, "a.example")

    def test_a_certificate_of_an_unknown_authority(self, authority):
        with Source(FILE, tls=tls(authority, "127.0.0.1")) as source:
            fetched, _ = fetch(source.url())
        self.refused(fetched, source, "certificate")

    def test_a_certificate_that_has_expired(self, authority, ca_file):
        past = datetime(2020, 1, 1, tzinfo=UTC)
        with Source(FILE, tls=tls(authority, "127.0.0.1", not_before=past, not_after=past.replace(month=2))) as source:
            fetched, _ = fetch(source.url(), by=fetcher(ca_file=ca_file))
        self.refused(fetched, source, "expired")

    def test_a_source_that_speaks_no_tls(self):
        with Source(raw=lambda connection: connection.sendall(FILE)) as source:
            fetched, _ = fetch(source.url().replace("http:", "https:"))
        assert (fetched.outcome, fetched.transient) == (Outcome.TLS_ERROR, True)

    def test_a_source_that_hangs_up_on_the_handshake(self):
        with Source(raw=lambda connection: (connection.recv(1), reset(connection))) as source:
            fetched, _ = fetch(source.url().replace("http:", "https:"))
        assert (fetched.outcome, fetched.transient) == (Outcome.NETWORK_ERROR, True)

    def test_a_silent_handshake_ends_at_the_deadline(self):
        with Source(raw=lambda _: source.closing.wait()) as source:
            fetched, _ = fetch(source.url().replace("http:", "https:"), by=fetcher(deadline=0.2))
        assert (fetched.outcome, fetched.transient) == (Outcome.TIMEOUT, True)
        assert "0.2 s" in fetched.reason

    def test_a_cut_in_the_middle_of_a_body(self, authority, ca_file):
        answer = http(bytes(20_000), Content_Length="40000")
        with Source(answer, tls=tls(authority, "127.0.0.1")) as source:
            fetched, _ = fetch(source.url(), by=fetcher(ca_file=ca_file))
        assert (fetched.outcome, fetched.transient) == (Outcome.TRUNCATED, True)

    @staticmethod
    def refused(fetched, source, why):
        assert (fetched.outcome, fetched.transient, fetched.counted) == (Outcome.TLS_ERROR, False, True)
        assert why in fetched.reason
        assert (source.requests, source.connections) == ([], 1)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/csv\r\n"


class TestLies:
    """Nothing of these is ever taken for a whole file."""

    @pytest.mark.parametrize(
        "answer",
        [
            HEAD + b"Content-Length: 100\r\n\r\n" + b"x" * 99,
            HEAD + b"Content-Length: 100000\r\n\r\n" + b"x" * 50_000,
            HEAD + b"Content-Length: 5\r\n\r\n",
            HEAD + b"Transfer-Encoding: chunked\r\n\r\n",
            HEAD + b"Transfer-Encoding: chunked\r\n\r\n4\r\ndata\r\n",
            HEAD + b"Transfer-Encoding: chunked\r\n\r\n4\r\ndata\r\n5",
            HEAD + b"Transfer-Encoding: chunked\r\n\r\n9\r\ndata\r\n",
            HEAD + b"Transfer-Encoding: chunked\r\n\r\n4\r\ndata\r\nzz\r\n",
            HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n4\r\ndata\r\n",
            HEAD + b"Transfer-Encoding: chunked\r\n\r\n-4\r\ndata\r\n0\r\n\r\n",
            HEAD + b"Transfer-Encoding: chunked\r\n\r\n-1\r\ndata\r\n0\r\n\r\n",
        ],
    )
    @pytest.mark.parametrize("how", ["closed", "reset"])
    def test_a_body_cut_short(self, answer, how):
        def cut(connection, _):
            connection.sendall(answer)
            reset(connection)

        with Source(cut if how == "reset" else answer) as source:
            fetched, _ = fetch(source.url())
        assert (fetched.outcome, fetched.transient, fetched.counted) == (Outcome.TRUNCATED, True, True)

    @pytest.mark.parametrize(
        "answer",
        [
            b"",
            b"\r\n",
            b"nonsense\r\n\r\n",
            b"HTTP/1.1 abc OK\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-",
            b"HTTP/1.1 200 OK\r\n" + b"X: " + b"x" * 100_000 + b"\r\n\r\n",
            b"HTTP/1.1 200 OK\r\n" + b"X: x\r\n" * 200 + b"\r\n",
            HEAD + b"Content-Length: 4\r\nContent-Length: 8\r\n\r\nfour" + b"more",
            HEAD + b"Content-Length: 4, 8\r\n\r\nfour",
            HEAD + b"no colon here\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ndata\r\n0\r\n\r\n",
            HEAD + b"Transfer-Encoding : chunked\r\n\r\n4\r\ndata\r\n0\r\n\r\n",
            HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n4\r\ndata\r\n0\r\n\r\n",
            HEAD + b"Transfer-Encoding: xchunked\r\n\r\n4\r\ndata\r\n0\r\n\r\n",
            HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ndata\r\n0\r\n\r\n",
        ],
    )
    def test_what_is_not_http(self, answer):
        with Source(answer) as source:
            fetched, got = fetch(source.url())
        assert (fetched.outcome, fetched.transient, fetched.counted) == (Outcome.NETWORK_ERROR, True, True)
        assert got == b""

    @pytest.mark.parametrize(
        "answer, body",
        [
            (HEAD + b"Content-Length: 4, 4\r\n\r\ndata", b"data"),
            (HEAD + b"Content-Length: 4\r\nContent-Length: 4\r\n\r\ndata", b"data"),
            (HEAD + b"Content-Length: 1_0\r\n\r\n" + b"x" * 12, b"x" * 12),
            (HEAD + b"Content-Length: +3\r\n\r\ndata", b"data"),
            (HEAD + b"Content-Length: -3\r\n\r\ndata", b"data"),
            (HEAD + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\ndata", b"data"),
            (HEAD + b"Transfer-Encoding: identity\r\n\r\ndata", b"data"),
            (
                HEAD + b"Transfer-Encoding: CHUNKED \r\nContent-Length: 2\r\n\r\n4;x=y\r\ndata\r\n0\r\nT: t\r\n\r\n",
                b"data",
            ),
            (HEAD + b"\r\ndata", b"data"),
            (b"HTTP/1.0 200\r\n\r\ndata", b"data"),
            (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndatamore", b"data"),
            (HEAD.replace(b"\r\n", b"\n") + b"Content-Length: 4\n\ndata", b"data"),
            (HEAD + b"X: folded\r\n  line\r\nContent-Length: 4\r\n\r\ndata", b"data"),
            (HEAD + b"Set-Cookie: \xff;;=;\r\nContent-Length: 4\r\n\r\ndata", b"data"),
        ],
    )
    def test_odd_but_whole(self, answer, body):
        with Source(answer) as source:
            fetched, got = fetch(source.url())
        assert (fetched.outcome, got) == (Outcome.ARCHIVED, body)

    def test_a_negative_chunk_is_not_all_that_comes(self):
        def endless(connection, _):
            connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n")
            while not source.closing.is_set():
                connection.sendall(bytes(1000))

        with Source(endless) as source:
            fetched, _ = fetch(source.url(), by=fetcher(deadline=5.0))
        assert fetched.outcome is Outcome.TRUNCATED

    def test_silence_ends_at_the_read_timeout(self):
        def silent(connection, _):
            connection.sendall(HEAD + b"Content-Length: 99999\r\n\r\n" + b"x" * 10_000)
            source.closing.wait()

        with Source({"/body": silent, "/head": lambda *_: source.closing.wait() and None}) as source:
            by = fetcher(read_timeout=0.1)
            fetched, _ = fetch(source.url("/body"), by=by)
            assert (fetched.outcome, fetched.transient, fetched.counted) == (Outcome.TIMEOUT, True, True)
            assert "fell silent" in fetched.reason
            fetched, _ = fetch(source.url("/head"), by=by)
            assert (fetched.outcome, fetched.transient) == (Outcome.TIMEOUT, True)
            assert "didn't answer" in fetched.reason

    def test_a_reset_before_the_answer(self):
        with Source(lambda connection, _: reset(connection)) as source:
            fetched, _ = fetch(source.url())
        assert (fetched.outcome, fetched.transient) == (Outcome.NETWORK_ERROR, True)

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        st.binary(max_size=300)
        | st.lists(
            st.sampled_from(
                [
                    *(
                        b"HTTP/1.1 200 OK\r\n",
                        b"HTTP/1.1 302 x\r\n",
                        b"\r\n",
                        b"Content-Length: 4\r\n",
                        b"data",
                        b"\xff",
                    ),
                    *(
                        b"Location: //[\r\n",
                        b"Location: \xe9\r\n",
                        b"Set-Cookie: a=b; Max-Age=x\r\n",
                        b"Expires: \x00\r\n",
                    ),
                    *(
                        b"Transfer-Encoding: chunked\r\n",
                        b"4\r\n",
                        b"0\r\n",
                        b"Content-Type: \xe9/x\r\n",
                        b"Retry-After: x\r\n",
                    ),
                    *(
                        b"Content-Disposition: a; filename*=x''%\r\n",
                        b"Content-Encoding: gzip\r\n",
                        b"\x1f\x8b\x08\x00",
                    ),
                    *(b"Digest: md5=x\r\n", b"ETag: \x7f\r\n", b"Cache-Control: max-age=\xb2\r\n", b"Age: \xb2\r\n"),
                ]
            ),
            max_size=9,
        ).map(b"".join)
    )
    def test_no_answer_makes_it_raise(self, answer):
        with Source({"/": answer}) as source:
            fetched, _ = fetch(source.url(), by=fetcher(max_redirects=2, read_timeout=1.0))
        assert fetched.outcome is not Outcome.SYSTEM_ERROR
        assert fetched.reason.isprintable()
