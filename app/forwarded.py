"""What a trusted proxy says of the request it had: scheme, host and prefix, by Forwarded (RFC 7239) or X-Forwarded-*.

It goes into the environment, so that whatever makes an absolute address has it right. Nobody else is believed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import Any, Final

from falcon import Request, Response

from app.address import HOST

Network = IPv4Network | IPv6Network
PAIR: Final = re.compile(r'\s*([A-Za-z]+)=(?:"([^"\\]*)"|([^\s";,]*))\s*')
PREFIX: Final = re.compile(r"(?:/[A-Za-z0-9._~-]{1,64}){1,8}")


class Forwarded:
    """Middleware. ``trusted``: where proxies are."""

    def __init__(self, trusted: Sequence[Network]) -> None:
        self._trusted = trusted

    def process_request(self, req: Request, resp: Response) -> None:
        if self._is_trusted(req.env.get("REMOTE_ADDR", "")):
            apply(req.env)

    def _is_trusted(self, peer: str) -> bool:
        try:
            address = ip_address(peer)
        except ValueError:
            return False
        return any(address in network for network in self._trusted)


def apply(env: dict[str, Any]) -> None:
    """Take over what the nearest proxy said: the last element of each list. What is malformed is left alone."""
    said = {
        "proto": env.get("HTTP_X_FORWARDED_PROTO", ""),
        "host": env.get("HTTP_X_FORWARDED_HOST", ""),
        "prefix": env.get("HTTP_X_FORWARDED_PREFIX", ""),
    }
    said = {name: text.rpartition(",")[2].strip() for name, text in said.items()}
    for pair in env.get("HTTP_FORWARDED", "").rpartition(",")[2].split(";"):
        if match := PAIR.fullmatch(pair):
            said[match[1].lower()] = match[2] if match[2] is not None else match[3]
    if said["proto"].lower() in ("http", "https"):
        env["wsgi.url_scheme"] = said["proto"].lower()
    if HOST.fullmatch(said["host"]):
        env["HTTP_HOST"] = said["host"]
    prefix = said["prefix"].rstrip("/")
    if PREFIX.fullmatch(prefix):
        env["SCRIPT_NAME"] = prefix
