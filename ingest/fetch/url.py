"""URLs of sources: what is accepted, which two are one, and how they are written to a server and into a log.

Two URLs are one when they differ in the case of scheme and host, a default port, a fragment or the spelling of a host
in Unicode; the rest counts byte for byte. ``urllib.parse`` won't do here: it drops tabs, line ends and an empty query.
"""

from __future__ import annotations

import re
import socket
from ipaddress import IPv4Address, IPv6Address
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import quote, quote_from_bytes, urljoin

import idna

Address: TypeAlias = IPv4Address | IPv6Address

LENGTH_LIMIT: Final = 8192  # characters; common servers refuse request lines beyond 8 KiB
_PORTS: Final = {"http": 80, "https": 443}
_SHAPE: Final = re.compile(r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):)?(?://(?P<authority>[^/?#]*))?(?P<rest>[^#]*)")
_AUTHORITY: Final = re.compile(r"(?P<host>\[[^\]]*\]|[^:]*)(?::(?P<port>[0-9]*))?")
_NAME: Final = re.compile(r"(?:[a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}\.?")
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_UNSENDABLE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})|[^A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]")
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class InvalidUrl(ValueError):
    """Not a URL that can be fetched; the message says why."""


class BlockedUrl(ValueError):
    """A URL that leads where nothing may be fetched from; the message says where."""


class Parts(NamedTuple):
    """``host`` is lower-case ASCII, an IPv6 address without its brackets; ``rest`` is path and query as they came."""

    scheme: str
    host: str
    port: int
    rest: str

    @property
    def netloc(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def target(self) -> str:
        """Path and query as the request line carries them: only what may not stand there is percent-escaped."""
        rest = self.rest if self.rest.startswith("/") else f"/{self.rest}"
        return _UNSENDABLE.sub(lambda found: quote(found[0], safe=""), rest)


def split(url: str) -> Parts:
    """Raises InvalidUrl."""
    text = url.strip()
    if not text:
        raise InvalidUrl("the URL is empty")
    if len(text) > LENGTH_LIMIT:
        raise InvalidUrl(f"the URL is longer than {LENGTH_LIMIT} characters")
    if _UNPRINTABLE.search(text):
        raise InvalidUrl("the URL contains a control character")
    shape = _SHAPE.match(text)
    assert shape is not None  # every group is optional
    scheme = (shape["scheme"] or "").lower()
    if not scheme:
        raise InvalidUrl("the URL has no scheme: it should begin with http:// or https://")
    if scheme not in _PORTS:
        raise InvalidUrl(f"the scheme {scheme[:40]} isn't fetched, only http and https")
    authority = shape["authority"] or ""
    if "@" in authority:
        raise InvalidUrl("the URL carries user information before its host, which isn't accepted")
    found = _AUTHORITY.fullmatch(authority)
    if found is None:
        raise InvalidUrl(f"{authority[:80]!r} isn't a host with a port")
    port = int(found["port"][:9]) if found["port"] else _PORTS[scheme]
    if not 0 < port < 65536:
        raise InvalidUrl(f"the port {found['port'][:9]} isn't between 1 and 65535")
    return Parts(scheme, _host(found["host"]), port, shape["rest"])


def normalise(url: str) -> str:
    """The one spelling by which a URL is known. Raises InvalidUrl for what can't be fetched.

    Refuses schemes other than http and https, a missing or malformed host, user information and control characters.
    Outer white space is cut. Percent-escapes stay as they are.
    """
    parts = split(url)
    return f"{parts.scheme}://{parts.netloc}{parts.rest}"


def host_of(url: str) -> str:
    """The host in lower case, with ``:port`` where it isn't the scheme's own: what one queue serves. InvalidUrl."""
    parts = split(url)
    return parts._replace(host=parts.host.rstrip(".")).netloc


def join(base: str, location: str) -> str:
    """Where a Location header leads, normalised. Raises InvalidUrl.

    ``location`` is as http.client gives it, each byte a character. Servers send UTF-8 and Latin-1 there; what isn't
    UTF-8 is passed on as the bytes that it is, in percent-escapes.
    """
    try:
        raw = location.encode("latin-1")
    except UnicodeEncodeError:
        raw = location.encode("utf-8", "surrogatepass")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = re.sub(rb"[\x80-\xff]+", lambda found: quote_from_bytes(found[0]).encode(), raw).decode("ascii")
    text = text.strip()
    if not text or _UNPRINTABLE.search(text) or re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", text):
        return normalise(text)
    try:
        joined = urljoin(base, text)
    except ValueError as error:  # about brackets
        raise InvalidUrl(f"the URL can't be parsed: {error}") from error
    return normalise(joined)


def mask(url: str) -> str:
    """For logs and reasons: query and user information masked, control characters gone, of bounded length."""
    text = _UNPRINTABLE.sub("�", url.strip()[: 2 * LENGTH_LIMIT])
    text = re.sub(r"^((?:[A-Za-z][A-Za-z0-9+.-]*:)?//)[^/?#]*@", r"\1…@", text.partition("#")[0])
    path, mark, query = text.partition("?")
    return (path if len(path) <= 500 else f"{path[:499]}…") + (mark + "…" if query else mark)


def literal(host: str) -> Address | None:
    """The address that a host spells out, in any spelling that the C library takes (127.1, 0x7f.1, 2130706433, a dot
    at the end), or None for a name. Never looks a name up."""
    text = host.rstrip(".")
    if ":" in text:
        return IPv6Address(text)
    if not _NUMBER.fullmatch(text.rpartition(".")[2]):
        return None
    return IPv4Address(socket.inet_aton(text))


def _host(text: str) -> str:
    if not text or text == ".":
        raise InvalidUrl("the URL has no host")
    try:
        if text.startswith("["):
            if "%" in text:
                raise ValueError("a zone means something on this machine only")
            return str(IPv6Address(text[1:-1]))
        if len(text) > 254:
            raise ValueError("too long for a host name")
        if not text.isascii():
            text = idna.encode(text, uts46=True).decode("ascii")
        text = text.lower()
        if not _NAME.fullmatch(text):
            raise ValueError("not a host name")
        literal(text)
    except (ValueError, OSError) as error:  # OSError: the last label is a number, yet the whole is no address
        raise InvalidUrl(f"{text[:80]!r} isn't a host name or an address") from error
    return text
