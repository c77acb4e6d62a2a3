"""The HTML of the front page. Every value that goes into it is escaped here and nowhere else."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from typing import Final
from urllib.parse import quote

STYLE: Final = """
:root { color-scheme: light dark; --paper: #fbfaf7; --ink: #22201c; --soft: #6d675e; --line: #e2ddd3; --card: #fff;
  --accent: #8a3b12; }
@media (prefers-color-scheme: dark) { :root { --paper: #171614; --ink: #ece8e0; --soft: #a29b8f; --line: #35322d;
  --card: #201e1b; --accent: #f0a577; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
.page { max-width: 76rem; margin: 0 auto; padding: 2.5rem 1.25rem 3rem; }
h1 { font: 600 2.1rem/1.2 Georgia, 'Times New Roman', serif; margin: 0 0 .4rem; letter-spacing: .01em; }
h2 { font: 600 1.2rem/1.3 Georgia, 'Times New Roman', serif; margin: 2.6rem 0 1rem; }
p { max-width: 44rem; margin: .5rem 0; }
a { color: var(--accent); text-underline-offset: .15em; }
a:focus-visible { outline: 2px solid var(--accent); outline-offset: 3px; border-radius: 3px; }
code, pre { font: .85em/1.5 ui-monospace, Consolas, monospace; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .9rem 1.1rem;
  overflow-x: auto; max-width: 60rem; }
.grid { list-style: none; margin: 0; padding: 0; display: grid; gap: 1.1rem;
  grid-template-columns: repeat(auto-fill, minmax(13.5rem, 1fr)); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; overflow: hidden; }
.card a.view { display: block; aspect-ratio: 4 / 3; background: color-mix(in srgb, var(--line) 45%, transparent); }
.card img { width: 100%; height: 100%; object-fit: contain; display: block; }
.card div { padding: .6rem .8rem .75rem; font-size: .85rem; }
.card strong { display: block; font-weight: 600; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.card span { color: var(--soft); }
.note { color: var(--soft); }
nav { margin-top: 1.6rem; }
footer { margin-top: 3rem; padding-top: 1rem; border-top: 1px solid var(--line); color: var(--soft);
  font-size: .85rem; display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; }
"""

CONTENT_SECURITY_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "img-src 'self' data:",
        f"style-src 'sha256-{base64.b64encode(sha256(STYLE.encode()).digest()).decode()}'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)

INTRODUCTION: Final = """
<p>Magazin is the stack room of an archive: it takes in files by URL, keeps them whole, and serves the originals and
scaled images of them to viewers, web pages and command lines.</p>
"""
UNITS: Final = ("B", "kB", "MB", "GB", "TB")
EXAMPLE: Final = """
<pre># put in: answers with a reference
curl -X PUT {address}/binaries -H 'Authorization: Bearer <i>token</i>' \\
     -d context=<i>batch-1</i> -d url=<i>https://example.org/photo.jpg</i>

# take out: the original, and an image that fits a box
curl -O {address}/binary/<i>reference_id</i>
curl -o photo.jpg '{address}/binary/<i>reference_id</i>/full/!800,600/0/default.jpg'</pre>
"""


@dataclass(frozen=True)
class Picture:
    """An image as the gallery shows it. Width and height in pixels, size in bytes."""

    reference_id: str
    name: str
    width: int
    height: int
    size: int


def front(address: str, gallery: str) -> bytes:
    """The whole page; ``gallery`` is one of the fragments below."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Magazin</title>
<link rel="icon" href="data:,">
<style>{STYLE}</style>
</head>
<body>
<div class="page">
<header><h1>Magazin</h1>{INTRODUCTION}</header>
<main>
<h2>Images in store</h2>
{gallery}
<h2>From the command line</h2>
{EXAMPLE.format(address=escape(address))}
</main>
<footer><a href="/openapi.json">API</a> <a href="/health/ready">Health</a> <a href="/metrics">Metrics</a></footer>
</div>
</body>
</html>
""".encode()


def closed() -> str:
    return """<p class="note">The gallery is closed. It opens with a token, or to everyone with
<code>MAGAZIN_ACCESS_OPEN_LISTS=true</code>.</p>"""


def empty() -> str:
    return '<p class="note">There are none yet.</p>'


def grid(pictures: list[Picture], older: str | None) -> str:
    cards = "\n".join(_card(picture) for picture in pictures)
    link = f'<nav><a rel="next" href="/?before={quote(older)}">Older images</a></nav>' if older else ""
    return f'<ul class="grid">\n{cards}\n</ul>\n{link}'


def _card(picture: Picture) -> str:
    original = escape(f"/binary/{quote(picture.reference_id)}")
    view = escape(f"/view/{quote(picture.reference_id)}")
    name = escape(picture.name)
    return (
        f'<li class="card"><a class="view" href="{view}">'
        f'<img src="{original}/full/!440,330/0/default.jpg" alt="{name}" loading="lazy"></a>'
        f'<div><strong title="{name}">{name}</strong>'
        f"<span>{picture.width} × {picture.height} · {amount(picture.size)}</span><br>"
        f'<a href="{original}">original</a> · <a href="{original}/info.json">info.json</a></div></li>'
    )


def amount(size: int) -> str:
    power = min(max(0, len(str(size)) - 1) // 3, len(UNITS) - 1)
    return f"{size} B" if power == 0 else f"{size / 1000**power:.1f} {UNITS[power]}"
