"""How the values of settings are written, in TOML and in an environment variable, and what they mean."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class Kind:
    """``read`` takes what TOML gives, or the text of a variable, and raises ValueError, TypeError or KeyError;
    ``write`` gives the TOML literal that reads back as the value; ``wanted`` says to a person what is wanted."""

    wanted: str
    read: Callable[[Any], Any]
    write: Callable[[Any], str]


@dataclass(frozen=True)
class Address:
    """Where to listen. Port 0 is any free one."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def loopback(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


SIZES = {"": 1, "b": 1} | {
    f"{letter}{suffix}": base ** (power + 1)
    for power, letter in enumerate("kmgt")
    for suffix, base in (("", 1000), ("b", 1000), ("ib", 1024))
}
SPANS = {"": 1.0, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
LARGEST = 2**62  # bytes; what stores and file systems count in
LONGEST = 100 * 365 * 86400.0  # seconds; what clocks in microseconds can be moved by
SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)\s*")


def _text(raw: Any) -> str:
    if not isinstance(raw, str):
        raise TypeError
    return raw


def _int(raw: Any) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int | str):
        raise TypeError
    return int(raw.replace("_", "")) if isinstance(raw, str) else raw


def _fraction(raw: Any) -> float:
    if isinstance(raw, bool) or not isinstance(raw, int | float | str):
        raise TypeError
    value = float(raw)
    if not 0 <= value <= 1:
        raise ValueError
    return value


def _switch(raw: Any) -> bool:
    if isinstance(raw, bool):
        return raw
    return {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}[
        _text(raw).strip().lower()
    ]


def _size(raw: Any) -> int:
    if isinstance(raw, int) and not isinstance(raw, bool):
        raw = str(raw)
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", _text(raw).strip().lower().replace("_", ""))
    if match is None:
        raise ValueError
    size = int(float(match[1]) * SIZES[match[2]]) if "." in match[1] else int(match[1]) * SIZES[match[2]]
    if size > LARGEST:
        raise ValueError
    return size


def _write_size(value: int) -> str:
    for unit in ("TiB", "TB", "GiB", "GB", "MiB", "MB", "KiB"):
        if value and value % SIZES[unit.lower()] == 0:
            return json.dumps(f"{value // SIZES[unit.lower()]} {unit}")
    return str(value)


def _span(raw: Any) -> float:
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        raw = str(raw)
    text = _text(raw).strip().lower()
    found = list(SPAN.finditer(text))
    if not found or "".join(match[0] for match in found) != text:
        raise ValueError
    seconds = sum(float(match[1]) * SPANS[match[2]] for match in found)
    if seconds > LONGEST:
        raise ValueError
    return seconds


def _write_span(value: float) -> str:
    for unit in ("h", "m"):
        if value and value % SPANS[unit] == 0:
            return json.dumps(f"{value / SPANS[unit]:g}{unit}")
    return json.dumps(f"{value:g}s")


def _address(raw: Any) -> Address:
    host, colon, port = _text(raw).strip().rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError
    if host.startswith("[") and host.endswith("]"):
        host = str(ipaddress.IPv6Address(host[1:-1]))
    elif ":" in host:
        raise ValueError
    return Address(host or "0.0.0.0", int(port))


def _colour(raw: Any) -> tuple[int, ...]:
    match = re.fullmatch(r"#([0-9a-f]{6})", _text(raw).strip().lower())
    if match is None:
        raise ValueError
    return tuple(bytes.fromhex(match[1]))


def _write_text(value: Any) -> str:
    return json.dumps(str(value), ensure_ascii=False)


def _pairs(raw: Any) -> tuple[tuple[str, Any], ...]:
    if isinstance(raw, Mapping):
        return tuple(sorted(raw.items()))
    pairs = [part.partition("=") for part in _text(raw).split(",") if part.strip()]
    if any(not equals for _, equals, _ in pairs):
        raise ValueError
    return tuple(sorted((key.strip(), value.strip()) for key, _, value in pairs))


def _write_pairs(value: tuple[tuple[str, Any], ...]) -> str:
    return "{" + ", ".join(f" {key} = {json.dumps(one)}" for key, one in value).lstrip() + "}"


TEXT = Kind("a text", _text, _write_text)
SWITCH = Kind("true or false", _switch, lambda value: "true" if value else "false")
SIZE = Kind('a size such as "2 GiB", "50 MB" or a number of bytes', _size, _write_size)
SPAN_OF_TIME = Kind('a duration such as "30s", "15m", "24h" or a number of seconds', _span, _write_span)
FRACTION = Kind("a number from 0 to 1", _fraction, lambda value: f"{value:g}")
ADDRESS = Kind('HOST:PORT, such as "127.0.0.1:8000" or "[::1]:0"', _address, _write_text)
NETWORK = Kind('a network such as "10.0.0.0/8"', lambda raw: ipaddress.ip_network(_text(raw).strip()), _write_text)
COLOUR = Kind('a colour such as "#ffffff"', _colour, lambda value: json.dumps(f"#{bytes(value).hex()}"))
PAIRS = Kind('a table, or "key=value,key=value"', _pairs, _write_pairs)


def number(least: int, most: int | None = None) -> Kind:
    def read(raw: Any) -> int:
        value = _int(raw)
        if value < least or (most is not None and value > most):
            raise ValueError
        return value

    return Kind(
        f"a whole number from {least}" + (f" to {most}" if most is not None else " on"),
        read,
        lambda value: f"{value:_}",
    )


def size(least: int, most: int) -> Kind:
    def read(raw: Any) -> int:
        value = _size(raw)
        if not least <= value <= most:
            raise ValueError
        return value

    between = " to ".join(json.loads(_write_size(bound)) for bound in (least, most))
    return Kind(f"a size from {between}", read, _write_size)


def choice(*words: str) -> Kind:
    def read(raw: Any) -> str:
        if _text(raw) not in words:
            raise ValueError
        return str(raw)

    return Kind(" or ".join(f'"{word}"' if word else 'nothing ("")' for word in words), read, _write_text)


def listed(kind: Kind, *, least: int = 0) -> Kind:
    """A list in TOML, comma-separated in a variable; a tuple here."""

    def read(raw: Any) -> tuple[Any, ...]:
        parts = [part for part in raw.split(",") if part.strip()] if isinstance(raw, str) else raw
        if not isinstance(parts, list) or len(parts) < least:
            raise ValueError
        return tuple(kind.read(part.strip() if isinstance(part, str) else part) for part in parts)

    def write(value: tuple[Any, ...]) -> str:
        return "[" + ", ".join(kind.write(one) for one in value) + "]"

    return Kind(f"a list, each {kind.wanted} (comma-separated in a variable)", read, write)


def automatic(kind: Kind) -> Kind:
    """``"auto"`` is None here: chosen where it is used."""

    def read(raw: Any) -> Any:
        return None if raw == "auto" else kind.read(raw)

    return Kind(f'"auto" or {kind.wanted}', read, lambda value: '"auto"' if value is None else kind.write(value))
