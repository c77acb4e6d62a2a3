import socket
from ipaddress import ip_address, ip_network

import pytest

from ingest.fetch.guard import Guard
from ingest.fetch.url import BlockedUrl, InvalidUrl
from tests.source import resolver

FORBIDDEN = [
    *("127.0.0.1", "127.1", "127.0.0.1.", "127.255.255.254", "0", "0.0.0.0", "0x7f.1", "0x7f000001", "2130706433"),
    *("0177.0.0.1", "017700000001", "127。0。0。1", "１２７.0.0.1", "①②⑦.0.0.1", "127.0。0.1", "127．0．0．1"),
    *(
        "10.0.0.1",
        "10.1",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "192.168.257",
        "100.64.0.1",
        "100.127.255.255",
    ),
    *(
        "169.254.169.254",
        "0xa9fea9fe",
        "2852039166",
        "169.254.170.2",
        "168.63.129.16",
        "100.100.100.200",
        "192.0.0.192",
    ),
    *("224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "192.0.2.1", "198.51.100.1", "203.0.113.1"),
    *("198.18.0.1", "198.19.255.255", "192.88.99.1"),
    *("[::]", "[::1]", "[::7f00:1]", "[::127.0.0.1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:8.8.8.8]"),
    *("[::ffff:0:127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b::8.8.8.8]", "[64:ff9b:1::1]", "[2002:7f00:1::]"),
    *("[2002:808:808::]", "[2001::1]", "[2001:db8::1]", "[2001:20::1]", "[3fff::1]", "[fc00::1]", "[fd00:ec2::254]"),
    *(
        "[fe80::1]",
        "[febf::1]",
        "[fec0::1]",
        "[feff::1]",
        "[ff02::1]",
        "[ff0e::1]",
        "[100::1]",
        "[5f00::1]",
        "[4000::1]",
    ),
]
GLOBAL = [
    *("8.8.8.8", "1.1.1.1", "172.15.255.255", "172.32.0.1", "100.63.255.255", "100.128.0.1", "169.253.1.1"),
    *(
        "168.63.129.15",
        "168.63.129.17",
        "198.17.255.255",
        "198.20.0.1",
        "223.255.255.255",
        "126.255.255.255",
        "128.0.0.1",
    ),
    *("[2606:4700::1111]", "[2001:4860:4860::8888]", "[2003::1]", "[2a00::1]", "[3ffe::1]"),
]


def is_in_full(host):
    """Whether it is spelt as a resolver spells its answers."""
    try:
        return ip_address(host) is not None
    except ValueError:
        return False


def never(*_, **__):
    raise AssertionError("a name was looked up")


@pytest.mark.parametrize("host", FORBIDDEN)
def test_forbidden_literals_in_all_spellings_are_refused_without_a_look_up(host):
    with pytest.raises(BlockedUrl, match="from which nothing is fetched"):
        Guard(resolve=never).check_literal(f"http://{host}:8080/x")


@pytest.mark.parametrize("host", [*GLOBAL, "a.example", "localhost", "127.0.0.1.example"])
def test_global_literals_and_all_names_pass_without_a_look_up(host):
    Guard(resolve=never).check_literal(f"https://{host}/x")


def test_what_is_no_url_is_told_apart():
    with pytest.raises(InvalidUrl):
        Guard(resolve=never).check_literal("http:///x")


@pytest.mark.parametrize("address", [host.strip("[]") for host in FORBIDDEN if is_in_full(host.strip("[]"))])
def test_a_name_must_not_resolve_to_a_forbidden_address(address):
    with pytest.raises(BlockedUrl, match=r"a\.example \("):
        Guard(resolve=resolver(a_example=[address])).addresses("a.example", 80)


def test_one_forbidden_address_among_many_is_enough():
    guard = Guard(resolve=resolver(a_example=["8.8.8.8", "2606:4700::1111", "10.0.0.1"]))
    with pytest.raises(BlockedUrl, match=r"a\.example \(10\.0\.0\.1\) is in 10\.0\.0\.0/8"):
        guard.addresses("a.example", 80)


def test_addresses_keep_the_order_of_the_resolver_and_come_once():
    guard = Guard(resolve=resolver(a_example=["2606:4700::1111", "8.8.8.8", "8.8.8.8"]))
    assert guard.addresses("a.example", 80) == [
        (socket.AF_INET6, ("2606:4700::1111", 80, 0, 0)),
        (socket.AF_INET, ("8.8.8.8", 80)),
    ]


def test_a_literal_is_connected_to_without_a_look_up():
    guard = Guard([ip_network("127.0.0.0/8")], resolve=never)
    assert guard.addresses("127.1", 81) == [(socket.AF_INET, ("127.0.0.1", 81))]


def test_an_allowed_network_lets_in_its_own_addresses_and_no_disguise_of_them():
    guard = Guard([ip_network("127.0.0.0/8"), ip_network("fd00::/64")], resolve=never)
    guard.check_literal("http://127.8.9.1/")
    guard.check_literal("http://[fd00::7]/")
    for disguise in ("[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "[::1]", "10.0.0.1", "[fd00:0:0:1::]"):
        with pytest.raises(BlockedUrl):
            guard.check_literal(f"http://{disguise}/")


def test_a_name_without_addresses_is_a_failed_look_up():
    with pytest.raises(socket.gaierror):
        Guard(resolve=lambda *_, **__: []).addresses("a.example", 80)
