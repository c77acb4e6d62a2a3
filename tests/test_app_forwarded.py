"""Proxies that are trusted, and everybody else."""

from ipaddress import ip_network

import pytest

from app.options import Options
from tests.app_stock import Stock

NEAR = {"REMOTE_ADDR": "10.1.2.3"}


@pytest.fixture
def asked(tmp_path):
    stock = Stock(tmp_path)
    identifier = stock.put_image()
    app = stock.app(Options(trusted_proxies=(ip_network("10.0.0.0/8"), ip_network("fd00::/8"))))

    def ask(headers, **environ):
        where = app.get(f"/iiif/3/{identifier}", headers=headers, extra_environ=NEAR | environ).headers["Location"]
        return where.removesuffix(f"/iiif/3/{identifier}/info.json")

    return ask


@pytest.mark.parametrize(
    ("headers", "base"),
    [
        ({"X-Forwarded-Proto": "https", "X-Forwarded-Host": "media.example"}, "https://media.example"),
        ({"X-Forwarded-Host": "evil.example, media.example:444"}, "http://media.example:444"),
        ({"X-Forwarded-Prefix": "/files/"}, "http://127.0.0.1:8000/files"),
        ({"Forwarded": 'for=1.2.3.4;host="media.example";proto=HTTPS'}, "https://media.example"),
        ({"Forwarded": "host=evil.example, for=1.2.3.4; host=media.example"}, "http://media.example"),
        ({"Forwarded": 'host="[fd00::1]:81"'}, "http://[fd00::1]:81"),
        ({"Forwarded": "host=media.example", "X-Forwarded-Host": "other.example"}, "http://media.example"),
        ({"X-Forwarded-Host": "a/b", "X-Forwarded-Proto": "ftp", "X-Forwarded-Prefix": "//x"}, "http://127.0.0.1:8000"),
        ({"X-Forwarded-Host": "<script>", "Forwarded": ";;;=,"}, "http://127.0.0.1:8000"),
        ({}, "http://127.0.0.1:8000"),
    ],
)
def test_a_trusted_proxy_is_believed(asked, headers, base):
    assert asked(headers) == base


def test_it_may_be_on_another_protocol(asked):
    assert asked({"X-Forwarded-Host": "media.example"}, REMOTE_ADDR="fd00::7") == "http://media.example"


@pytest.mark.parametrize("peer", ["127.0.0.1", "192.0.2.1", "::1", "", "unix:", "10.1.2.3.4"])
def test_nobody_else_is(asked, peer):
    for headers in ({"X-Forwarded-Host": "evil.example"}, {"Forwarded": "host=evil.example"}):
        assert asked(headers, REMOTE_ADDR=peer) == "http://127.0.0.1:8000"
