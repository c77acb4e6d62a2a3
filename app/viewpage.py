"""The HTML of the viewer page, and of a problem in its place. Every value that goes into it is escaped here.

Addresses are relative, so that they are right behind any proxy.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Final
from urllib.parse import quote

from app.page import amount

CONTENT_SECURITY_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
SAFE: Final = ";=:"
"""What an identifier may have beside letters and digits."""

ICONS: Final = {
    "zoom-in": '<circle cx="10" cy="10" r="6.5"/><path d="M15 15l6 6M10 7.2v5.6M7.2 10h5.6"/>',
    "zoom-out": '<circle cx="10" cy="10" r="6.5"/><path d="M15 15l6 6M7.2 10h5.6"/>',
    "whole": '<path d="M3.5 11L12 4l8.5 7M6 9.5V20h12V9.5"/>',
    "turn": '<path d="M19.5 12a7.5 7.5 0 1 1-2.2-5.3L20 9.4M20 4v5.4h-5.4"/>',
    "full": '<path d="M4 9V4h5M15 4h5v5M20 15v5h-5M9 20H4v-5"/>',
    "previous": '<path d="M14.5 5l-7 7 7 7"/>',
    "next": '<path d="M9.5 5l7 7-7 7"/>',
}
TOOLS: Final = (
    ("zoom-in", "Zoom in", "+"),
    ("zoom-out", "Zoom out", "−"),
    ("whole", "Whole image", "0"),
    ("turn", "Turn right", "R"),
    ("full", "Full screen", "F"),
)
KEYS: Final = "Arrow keys move the image, plus and minus zoom, 0 shows the whole of it, R turns it, F fills the screen."
TURNING: Final = "Page Up and Page Down turn the pages."
UNBUILT: Final = (
    "This server was built without the viewer’s script. In a checkout, <code>make viewer</code> gets it from npm; "
    "a wheel that is built with a network has it. Then start the server anew."
)


@dataclass(frozen=True)
class Links:
    """Names of the page's files below ``/viewer/``. Without the scripts, the page shows a plain image."""

    style: str
    scripts: tuple[str, ...]


@dataclass(frozen=True)
class Shown:
    """An image as its page shows it. Width and height in pixels, size in bytes."""

    identifier: str
    """Without page and signature."""
    tail: str
    """The signature's part of the identifier, or nothing."""
    page: int
    pages: int
    name: str
    width: int
    height: int
    size: int
    original: str | None
    """Its address, relative to the page; None where not everyone may have it."""


def page(shown: Shown, links: Links) -> bytes:
    name = escape(shown.name)
    identifier = quote(shown.identifier, safe=SAFE)
    number = f";page={shown.page}" if shown.page > 1 else ""
    whole = f"{identifier}{number}{quote(shown.tail, safe=SAFE)}"
    original = f'<a href="{escape(shown.original)}">Original</a>' if shown.original else ""
    plain = f'<img class="plain" src="../iiif/2/{whole}/full/!800,600/0/default.jpg" alt="{name}">'
    if links.scripts:
        plain = f"<noscript>{plain}</noscript>"
    body = f"""<header>
<a class="home" href="../" title="All images">Magazin</a>
<div class="name"><h1 title="{name}">{name}</h1>
<p><span id="pixels">{shown.width} × {shown.height}</span> pixels · {amount(shown.size)}</p></div>
{_pages(shown) if shown.pages > 1 else ""}
<nav class="links" aria-label="This image">
{original}
<a id="info" href="../iiif/3/{whole}/info.json">info.json</a></nav>
</header>
<main>
<div id="stage" data-identifier="{identifier}" data-tail="{escape(shown.tail)}" data-page="{shown.page}"
data-pages="{shown.pages}" data-title="{name}">{plain}</div>
<div id="tools" class="tools" role="toolbar" aria-label="View" hidden>
{"".join(_button(*tool) for tool in TOOLS)}</div>
<p id="keys" hidden>{KEYS}{f" {TURNING}" if shown.pages > 1 else ""}</p>
<p id="status" role="status"></p>
{"" if links.scripts else f'<p class="unbuilt">{UNBUILT}</p>'}
</main>"""
    return _document(name, links, body)


def problem(status: int, title: str, detail: str, links: Links) -> bytes:
    """What a browser shows in place of an image."""
    heading = "There is no such image" if status == 404 else escape(title)
    body = f"""<header><a class="home" href="../" title="All images">Magazin</a></header>
<main class="note"><h1>{heading}</h1><p>{escape(detail)}</p><p><a href="../">All images</a></p></main>"""
    return _document(heading, Links(links.style, ()), body)


def _document(title: str, links: Links, body: str) -> bytes:
    scripts = "".join(f'<script defer src="../viewer/{name}"></script>\n' for name in links.scripts)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="../viewer/{links.style}">
{scripts}</head>
<body>
{body}
</body>
</html>
""".encode()


def _pages(shown: Shown) -> str:
    return f"""<nav id="pages" aria-label="Pages" hidden>{_button("previous", "Previous page", "Page Up")}
<label><input id="page" type="number" min="1" max="{shown.pages}" value="{shown.page}" aria-label="Page">
of {shown.pages}</label>{_button("next", "Next page", "Page Down")}</nav>"""


def _button(name: str, label: str, key: str) -> str:
    icon = f'<svg viewBox="0 0 24 24" aria-hidden="true">{ICONS[name]}</svg>'
    return f'<button id="{name}" type="button" aria-label="{label}" title="{label} ({key})">{icon}</button>'
