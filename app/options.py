"""What of the settings the HTTP layer needs to know."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path

from app.grants import Policy


@dataclass(frozen=True)
class Options:
    loopback_writes: bool = False
    """Writes from this machine itself need no token (``MAGAZIN_ACCESS_OPEN_WRITES=loopback``)."""
    open_lists: bool = False
    """Lists, logs, metrics and the gallery need no token (``MAGAZIN_ACCESS_OPEN_LISTS``)."""
    open_manifests: bool = False
    """Manifests need no token, whatever lists need (``MAGAZIN_ACCESS_OPEN_MANIFESTS``)."""
    canvases: int = 1000
    """Canvases of one manifest, at most."""
    base_url: str = ""
    """The address by which clients know this server, without a slash at the end. Empty: as the request has it."""
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    """Where proxies are whose word on scheme, host and prefix counts."""
    max_age: int = 3600
    """Seconds for which caches may keep an answer without asking; a part of the takedown bound."""
    policy: Policy = field(default_factory=Policy)
    """What of images is for everyone."""
    rights: str = ""
    """The URI of the rights in images whose own metadata name none."""
    waiters: int = 4
    """Requests that may wait for an outcome at once: at most half of the server's threads."""
    longest_wait: float = 60.0
    """Seconds that one of them waits at most, whatever it prefers."""
    sendfile: bool = False
    """Originals that are plain files are sent by the kernel, unverified."""
    accel_redirect: str = ""
    """The proxy's internal location, with a slash at both ends, that serves ``originals``; empty: unused."""
    originals: Path | None = None
    """The folder of the originals, where they are plain files."""
    metrics: Path | None = None
    """The folder in which all processes of one server count together; None: this process counts for itself."""
