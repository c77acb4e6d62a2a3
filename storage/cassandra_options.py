"""What the plugin is told: where the cluster is, what its keyspace is called and how it is copied."""

from __future__ import annotations

import ipaddress
import re
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

PORT = 9042
CONSISTENCIES = ("LOCAL_QUORUM", "QUORUM", "ALL")


@dataclass(frozen=True)
class Options:
    """``contact_points`` are (host, port). ``consistency`` is for parts, see :mod:`storage.cassandra`.
    ``request_timeout``: seconds for one request, with its repetitions at other nodes."""

    contact_points: tuple[tuple[str, int], ...] = (("127.0.0.1", PORT),)
    keyspace: str = "binaries"
    replication: Mapping[str, str] = field(default_factory=lambda: replication("1"))
    consistency: str = "LOCAL_QUORUM"
    data_center: str = ""
    username: str = ""
    password: str = ""
    tls: ssl.SSLContext | None = None
    request_timeout: float = 6.0

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Self:
        """From settings by name. Raises ValueError, with a message for who wrote them."""
        keyspace = str(given.get("keyspace") or "binaries")
        if not re.fullmatch(r"[a-z][a-z0-9_]{0,47}", keyspace):
            raise ValueError(f"keyspace: {keyspace!r}; at most 48 of a–z, 0–9 and _, a letter first")
        consistency = str(given.get("consistency") or "LOCAL_QUORUM")
        if consistency not in CONSISTENCIES:
            raise ValueError(f"consistency: {consistency!r}; known are {', '.join(CONSISTENCIES)}")
        return cls(
            tuple(address(text) for text in _listed(given.get("contact_points") or "127.0.0.1")),
            keyspace,
            replication(str(given.get("replication") or "1")),
            consistency,
            str(given.get("data_center") or ""),
            str(given.get("username") or ""),
            str(given.get("password") or ""),
            _tls(given) if given.get("tls") else None,
            float(given.get("request_timeout") or 6.0),
        )


def address(text: str) -> tuple[str, int]:
    """``host``, ``host:port``, ``[::1]:port`` or a bare IPv6 address."""
    match = re.fullmatch(r"(?:\[([^\]]+)\]|([\w.-]+))(?::(\d{1,5}))?", text)
    six, host, port = match.groups() if match else (text, None, None)
    try:
        found = host or str(ipaddress.IPv6Address(six or "")), int(port or PORT)
    except ValueError:
        found = "", 0
    if not 0 < found[1] < 65536:
        raise ValueError(f"contact_points: {text!r}; wanted is host or host:port")
    return found


def replication(text: str) -> dict[str, str]:
    """What the keyspace is made with: ``3`` copies in each data centre that there is then, or ``dc1:3,dc2:2``."""
    wanted = f"replication: {text!r}; wanted is a number, or data centre:number pairs such as dc1:3,dc2:3"
    if text.strip().isdecimal():
        pairs = [("replication_factor", text.strip())]
    else:
        pairs = [(name.strip(), copies.strip()) for name, _, copies in (one.rpartition(":") for one in text.split(","))]
    if any(not re.fullmatch(r"[\w.-]+", name) or not re.fullmatch(r"[1-9]\d?", copies) for name, copies in pairs):
        raise ValueError(wanted)
    return {"class": "NetworkTopologyStrategy", **dict(pairs)}


def _listed(given: str | Sequence[str]) -> list[str]:
    parts = given.split(",") if isinstance(given, str) else given
    return [part.strip() for part in parts if part.strip()]


def _tls(given: Mapping[str, Any]) -> ssl.SSLContext:
    names = ("tls_ca", "tls_certificate", "tls_key")
    authorities, certificate, key = (str(given.get(name) or "") or None for name in names)
    try:
        context = ssl.create_default_context(cafile=authorities)
        context.check_hostname = bool(given.get("tls_verify_host", True))
        if certificate:
            context.load_cert_chain(certificate, key)
    except OSError as error:  # which ssl.SSLError is too
        files = ", ".join(f"{name} {given[name]}" for name in names if given.get(name))
        raise ValueError(f"{files}: {error}") from error
    return context
