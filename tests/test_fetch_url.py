import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.fetch.url import LENGTH_LIMIT, InvalidUrl, host_of, join, literal, mask, normalise, split


@pytest.mark.parametrize(
    "url, same",
    [
        ("HTTP://A.Example/Path?Q=A", "http://a.example/Path?Q=A"),
        ("http://a.example:80/", "http://a.example/"),
        ("https://a.example:443", "https://a.example"),
        ("https://a.example:80/", "https://a.example:80/"),
        ("http://a.example:/x", "http://a.example/x"),
        ("http://a.example:0080/x", "http://a.example/x"),
        ("http://a.example/x#part", "http://a.example/x"),
        (" \thttp://a.example/x \n", "http://a.example/x"),
        ("http://a.example/a%2fb%20c%C3%A9?%7e", "http://a.example/a%2fb%20c%C3%A9?%7e"),
        ("http://a.example/a b/../é?", "http://a.example/a b/../é?"),
        ("http://a.example?x=//y@z", "http://a.example?x=//y@z"),
        ("http://Bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://a。example/", "http://a.example/"),
        ("http://under_score.example./", "http://under_score.example./"),
        ("http://[2001:DB8:0:0::1]:8080/", "http://[2001:db8::1]:8080/"),
    ],
)
def test_one_spelling(url, same):
    assert normalise(url) == same
    assert normalise(same) == same


@pytest.mark.parametrize(
    "url, why",
    [
        ("", "empty"),
        (" \n", "empty"),
        ("a.example/x", "no scheme"),
        ("//a.example/x", "no scheme"),
        ("ftp://a.example/x", "scheme ftp"),
        ("file:///etc/passwd", "scheme file"),
        ("C:\\x", "scheme c"),
        ("http:a.example", "no host"),
        ("http:///x", "no host"),
        ("http://./x", "no host"),
        ("http://:80/x", "no host"),
        ("http://user:word@a.example/", "user information"),
        ("http://a.example\\@b.example/", "user information"),
        ("http://a.example\\b", "isn't a host"),
        ("http://a..b/", "isn't a host"),
        ("http://a b/", "isn't a host"),
        ("http://%61.example/", "isn't a host"),
        ("http://1.2.3.4.5/", "isn't a host"),
        ("http://256.256.256.256/", "isn't a host"),
        ("http://4294967296/", "isn't a host"),
        ("http://0x/", "isn't a host"),
        ("http://[::1/", "isn't a host"),
        ("http://[::1]x/", "isn't a host"),
        ("http://[fe80::1%25eth0]/", "isn't a host"),
        ("http://[v1.x]/", "isn't a host"),
        (f"http://{'a' * 64}.example/", "isn't a host"),
        (f"http://{'é.' * 4000}example/", "isn't a host"),
        ("http://💩.example/", "isn't a host"),
        ("http://a.example:0/", "port 0"),
        ("http://a.example:65536/", "port 65536"),
        ("http://a.example:" + "9" * 5000, "port 999999999"),
        ("http://a.example:８０/", "isn't a host with a port"),
        ("http://a.example/\r\nHost: b", "control character"),
        ("http://a.ex\tample/", "control character"),
        ("http://a.example/\x00", "control character"),
        ("http://a.example/\ud800", "control character"),
        ("http://a.example/" + "x" * LENGTH_LIMIT, "longer than 8192"),
    ],
)
def test_refused_with_its_reason(url, why):
    with pytest.raises(InvalidUrl, match=why):
        normalise(url)


@given(st.text(max_size=60) | st.from_regex(r"(?i)https?://[^/]{0,20}[:@\[\]]?[^/]{0,20}/?.{0,20}", fullmatch=True))
def test_any_text_is_a_url_once_and_for_all_or_refused(text):
    try:
        url = normalise(text)
    except InvalidUrl:
        return
    assert normalise(url) == url
    assert split(url).target.isascii()
    assert host_of(url)


@pytest.mark.parametrize(
    "rest, target",
    [
        ("", "/"),
        ("?q", "/?q"),
        ("/a%20b%c3%A9%2f", "/a%20b%c3%A9%2f"),
        ("/100%/a%20b%zz", "/100%25/a%20b%25zz"),
        ("/é b", "/%C3%A9%20b"),
        ('/"<>\\^`{|}', "/%22%3C%3E%5C%5E%60%7B%7C%7D"),
        ("/a/../b/./?[x]=(1)&y='*'", "/a/../b/./?[x]=(1)&y='*'"),
    ],
)
def test_the_request_line_escapes_only_what_may_not_stand_there(rest, target):
    assert split(f"http://a.example{rest}").target == target


@pytest.mark.parametrize(
    "url, host",
    [
        ("http://A.example/x", "a.example"),
        ("http://a.example.:8080/x", "a.example:8080"),
        ("https://a.example:443/x", "a.example"),
        ("http://a.example:443/x", "a.example:443"),
        ("http://[::1]:81/", "[::1]:81"),
    ],
)
def test_one_queue_for_each_host_and_port(url, host):
    assert host_of(url) == host


@pytest.mark.parametrize(
    "location, url",
    [
        ("/y?z", "http://a.example/y?z"),
        ("y", "http://a.example/d/y"),
        ("../y", "http://a.example/y"),
        ("?z", "http://a.example/d/x?z"),
        ("//B.example/y#f", "http://b.example/y"),
        ("https://b.example", "https://b.example"),
        (" /y ", "http://a.example/y"),
        ("/caf\xe9", "http://a.example/caf%E9"),
        ("/caf\xc3\xa9", "http://a.example/café"),
        ("//b\xc3\xbccher.example/", "http://xn--bcher-kva.example/"),
        ("/a%20b", "http://a.example/a%20b"),
    ],
)
def test_a_location_leads(location, url):
    assert join("http://a.example/d/x?q", location) == url


@pytest.mark.parametrize(
    "location",
    ["", " ", "ftp://b.example/", "http:", "http://", "http:y", "http://[::1/", "http://u@b.example/", "/a\x00b"],
)
def test_a_location_that_leads_nowhere(location):
    with pytest.raises(InvalidUrl):
        join("http://a.example/d/x?q", location)


@pytest.mark.parametrize(
    "url, masked",
    [
        ("http://a.example/x?token=secret#f", "http://a.example/x?…"),
        ("http://a.example/x?", "http://a.example/x?"),
        ("http://a.example/x", "http://a.example/x"),
        ("http://user:secret@a.example/x?y", "http://…@a.example/x?…"),
        ("http://user:se@cret@a.example/", "http://…@a.example/"),
        ("//user:secret@a.example/x@y", "//…@a.example/x@y"),
        ("http://a.example/\r\nINFO\u2028all well", "http://a.example/��INFO�all well"),
        ("http://a.example/" + "x" * 9999, "http://a.example/" + "x" * 482 + "…"),
    ],
)
def test_logs_show_no_secrets_and_no_line_ends(url, masked):
    assert mask(url) == masked


@pytest.mark.parametrize(
    "host, address",
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("127.0.0.1.", "127.0.0.1"),
        ("0", "0.0.0.0"),
        ("2130706433", "127.0.0.1"),
        ("0x7f.1", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("0177.0.0.01", "127.0.0.1"),
        ("::7f00:1", "::7f00:1"),
        ("a.example", None),
        ("127.0.0.1.example", None),
        ("x1", None),
    ],
)
def test_literal_addresses_in_all_spellings(host, address):
    found = literal(host)
    assert (found and str(found)) == address
