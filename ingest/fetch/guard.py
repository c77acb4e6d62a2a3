"""Where a fetch may go: to global addresses, and to those that the settings allow.

``ipaddress.is_global`` isn't asked: Python 3.11's passes 64:ff9b::/96, fec0::/10, multicast and the address at which
a cloud answers its own machines. The list follows IANA's registries of special-purpose addresses (RFC 6890).
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any, Final, NamedTuple, TypeAlias

from ingest.fetch.url import Address, BlockedUrl, literal, split

Network: TypeAlias = IPv4Network | IPv6Network
Resolve: TypeAlias = Callable[..., Sequence[tuple[Any, ...]]]
"""Called as ``socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)``, with its answer and its errors."""

FORBIDDEN: Final[dict[Network, str]] = {
    ip_network(network): what
    for network, what in (
        ("0.0.0.0/8", "this machine"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "shared"),
        ("127.0.0.0/8", "loopback"),
        ("168.63.129.16/32", "cloud metadata"),
        ("169.254.0.0/16", "link-local, cloud metadata"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "protocol assignments"),
        ("192.0.2.0/24", "documentation"),
        ("192.88.99.0/24", "6to4 relays"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "benchmarks"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved, broadcast"),
        ("::/128", "this machine"),
        ("::1/128", "loopback"),
        ("::/96", "an IPv4 address in disguise"),
        ("::ffff:0:0/96", "a mapped IPv4 address"),
        ("::ffff:0:0:0/96", "a translated IPv4 address"),
        ("64:ff9b::/96", "a translated IPv4 address"),
        ("64:ff9b:1::/48", "a translated IPv4 address"),
        ("2002::/16", "a tunnelled IPv4 address"),
        ("2001::/23", "tunnels, protocol assignments"),
        ("2001:db8::/32", "documentation"),
        ("3fff::/20", "documentation"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local"),
        ("ff00::/8", "multicast"),
        # what is left is not handed out: global unicast is 2000::/3 (RFC 4291 2.4)
        ("::/3", "reserved"),
        ("4000::/2", "reserved"),
        ("8000::/1", "reserved"),
    )
}


class Endpoint(NamedTuple):
    """An address that may be connected to, as the socket module takes it."""

    family: socket.AddressFamily
    sockaddr: tuple[Any, ...]


class Guard:
    """The gate that every hop of a fetch passes. ``allow`` are networks that are let through though forbidden.

    A translated or mapped address is never let through for the IPv4 network that it stands for.
    """

    def __init__(self, allow: Sequence[Network] = (), resolve: Resolve = socket.getaddrinfo) -> None:
        self._allow, self._resolve = tuple(allow), resolve

    def check_literal(self, url: str) -> None:
        """Raises BlockedUrl when the URL's host spells out a forbidden address, in any spelling, and InvalidUrl when
        it isn't a URL at all. Never looks a name up."""
        host = split(url).host
        address = literal(host)
        if address is not None:
            self._check(host, address)

    def addresses(self, host: str, port: int) -> list[Endpoint]:
        """All addresses of a host, in the resolver's order, each once.

        Raises BlockedUrl when any of them is forbidden, OSError (socket.gaierror) when the name can't be resolved.
        """
        address = literal(host)
        if address is not None:
            self._check(host, address)
            family = socket.AF_INET if isinstance(address, IPv4Address) else socket.AF_INET6
            return [Endpoint(family, (str(address), port))]
        found: dict[Endpoint, None] = {}
        for family, _, _, _, sockaddr in self._resolve(host, port, type=socket.SOCK_STREAM):
            self._check(host, ip_address(sockaddr[0]))
            found[Endpoint(family, tuple(sockaddr))] = None
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "the name has no address")
        return list(found)

    def _check(self, host: str, address: Address) -> None:
        if any(address in network for network in self._allow):
            return
        for network, what in FORBIDDEN.items():
            if address in network:
                named = host if str(address) == host.rstrip(".") else f"{host} ({address})"
                raise BlockedUrl(f"{named} is in {network} ({what}), from which nothing is fetched")
