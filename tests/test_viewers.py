"""Two viewers in a real browser: the page of this server, with OpenSeadragon, and Mirador with a context's manifest.

The large image tells by its colours where one is: red grows to the right, green downwards, and blue alternates in
squares that only the deepest level shows.
"""

import json
import re
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import pyvips
from PIL import Image

from app.grants import signed
from app.viewerfiles import bundle
from tests import browser
from tests.tree import Tree, magazin

KEY = "a long and random key"
SIDE = 10_000
SQUARE = 16
STAGE = (0, 52, 1280, 800)  # of the window: below the bar
NEAR = 12  # of 255: the squares blur red and green a little
DEEPEST = re.compile(r"/iiif/3/[^/]+/(\d+),(\d+),512,512/512,512/0/default\.jpg")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A large image, three small ones and a document, all taken in."""
    if not bundle().links.scripts:
        browser.missing("no viewer: it isn't built (make viewer)")
    folder = tmp_path_factory.mktemp("viewers")
    large(folder / "a-large.jpg")
    for number, colour in enumerate(("crimson", "seagreen", "royalblue")):
        Image.new("RGB", (900, 600), colour).save(folder / f"b-{number}.png")
    first, *others = (Image.new("RGB", size, "goldenrod") for size in ((600, 900), (900, 600), (700, 700)))
    first.save(folder / "c-pages.tif", save_all=True, append_images=others)
    files = sorted(map(str, folder.glob("*.*")))
    status, said, errors = magazin(folder / "data", "ingest", *files, "--allow-files", "--context", "viewers")
    assert status == 0, said + errors
    return folder / "data"


@pytest.fixture(scope="module")
def served(data):
    """A server of them; its port, and ids by name."""
    with Tree(data, "--no-worker", environ={"MAGAZIN_ACCESS_OPEN_LISTS": "true"}) as tree:
        with urllib.request.urlopen(f"http://127.0.0.1:{tree.port}/binaries/viewers") as answer:
            entries = json.load(answer)
        yield tree.port, {entry["url"].rpartition("/")[2]: entry["reference_id"] for entry in entries}


def large(path):
    red = pyvips.Image.grey(SIDE, SIDE, uchar=True)
    pair = pyvips.Image.new_from_array([[68, 188], [188, 68]]).cast("uchar").zoom(SQUARE, SQUARE)
    blue = pair.replicate(SIDE // 2 // SQUARE + 1, SIDE // 2 // SQUARE + 1).crop(0, 0, SIDE, SIDE)
    image = red.bandjoin([red.rot90(), blue]).copy(interpretation="srgb")
    image.jpegsave(str(path), Q=85)


@pytest.fixture(scope="module")
def chromium():
    with browser.chromium() as found:
        yield found


def at(picture, across=0.5, down=0.5):
    """The colour around a part of the stage's width and height."""
    left, top, right, bottom = STAGE
    x, y = left + across * (right - left), top + down * (bottom - top)
    return picture.resize((1, 1), Image.Resampling.BOX, (x - 16, y - 16, x + 16, y + 16)).getpixel((0, 0))


def blues(picture):
    """The range of blue near the middle of the stage."""
    found = [
        picture.getpixel((640 + across, 430 + down))[2] for across in range(0, 120, 3) for down in range(0, 120, 3)
    ]
    return max(found) - min(found)


def whole(picture):
    """Whether all of the large image is seen: its middle in the middle, its edges at the stage's edges."""
    red, green, _ = at(picture)
    top, bottom = (at(picture, 0.3, down)[1] for down in (0.06, 0.94))
    return abs(red - 127) < NEAR and abs(green - 127) < NEAR and top < 25 and bottom > 230


def scale(picture):
    """How many pixels of the screen red takes to grow by one, over a part of the stage."""
    grown = at(picture, 0.65)[0] - at(picture, 0.35)[0]
    return 0.3 * (STAGE[2] - STAGE[0]) / max(grown, 0.1)


def deepest(picture):
    """Whether the squares are seen, from near; the level above the deepest still has them."""
    return blues(picture) > 90 and scale(picture) > 60


@pytest.fixture
def opened(served, chromium):
    """The large image in its page, the whole of it seen."""
    port, ids = served
    with browser.Window(chromium) as window:
        window.page.goto(f"http://127.0.0.1:{port}/view/{ids['a-large.jpg']}")
        window.until(whole, "the whole image")
        yield window


def test_openseadragon_goes_to_the_deepest_level_and_back(opened):
    assert opened.page.title() == "a-large.jpg"
    opened.keep("openseadragon-whole")
    assert not any(map(DEEPEST.fullmatch, opened.images()))
    for _ in range(12):
        opened.page.keyboard.press("+")
    deep = opened.until(deepest, "the squares of the deepest level")
    opened.keep("openseadragon-deepest")
    red, green, _ = at(deep)
    assert abs(red - 127) < NEAR and abs(green - 127) < NEAR  # the middle is still the middle
    opened.until(lambda _: any(map(DEEPEST.fullmatch, opened.images())), "tiles of the deepest level")
    for match in filter(None, map(DEEPEST.fullmatch, opened.images())):
        assert all(4000 <= int(place) <= 6000 and int(place) % 512 == 0 for place in match.groups())
    opened.page.keyboard.press("0")
    opened.until(lambda picture: whole(picture) and blues(picture) < 50, "the whole image again")
    opened.check()


def test_keys_and_buttons(opened):
    page = opened.page
    page.get_by_role("button", name="Zoom in").click()
    page.get_by_role("button", name="Zoom in").click()
    near = opened.until(lambda picture: 6 < scale(picture) < 10, "the image, larger")
    page.keyboard.press("Tab")
    page.locator(".openseadragon-canvas").first.focus()
    for key, band, grows in (("ArrowRight", 0, 1), ("ArrowDown", 1, 1), ("ArrowLeft", 0, -1), ("ArrowUp", 1, -1)):
        before = at(near)[band]
        page.keyboard.down(key)
        near = opened.until(lambda picture, b=before, n=band, g=grows: g * (at(picture)[n] - b) > 8, f"a move by {key}")
        page.keyboard.up(key)
    page.get_by_role("button", name="Zoom out").click()
    page.get_by_role("button", name="Whole image").click()
    opened.until(whole, "the whole image again")
    page.keyboard.press("r")
    opened.until(lambda picture: at(picture, 0.35)[1] > 150 > 100 > at(picture, 0.65)[1], "the image turned right")
    opened.check()


def test_the_screen_is_filled(opened):
    opened.page.get_by_role("button", name="Full screen").click()
    opened.page.wait_for_function("document.fullscreenElement !== null")
    opened.page.locator("header").wait_for(state="hidden")
    opened.page.keyboard.press("f")
    opened.page.locator("header").wait_for(state="visible")
    opened.check()


def test_touch(served, chromium):
    port, ids = served
    with browser.Window(chromium, has_touch=True) as window:
        window.page.goto(f"http://127.0.0.1:{port}/view/{ids['a-large.jpg']}")
        first = window.until(whole, "the whole image")
        touch = Touch(window)
        touch.move([(600, 430), (680, 430)], [(440, 430), (840, 430)])
        near = window.until(lambda picture: scale(picture) > 2.5 * scale(first), "the image, larger by a pinch")
        touch.move([(640, 430)], [(340, 280)])
        window.until(
            lambda picture: all(at(picture)[band] > at(near)[band] + 8 for band in (0, 1)), "the image, dragged"
        )
        window.keep("openseadragon-touched")
        window.check()


class Touch:
    """Fingers that go from where they are put to where they are lifted."""

    STEPS = 10

    def __init__(self, window):
        self.session = window.context.new_cdp_session(window.page)

    def send(self, kind, points):
        points = [{"x": x, "y": y, "id": finger} for finger, (x, y) in enumerate(points)]
        self.session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    def move(self, start, end):
        self.send("touchStart", start)
        for step in range(1, self.STEPS + 1):
            part = step / self.STEPS
            between = zip(start, end, strict=True)
            self.send("touchMove", [(a + part * (c - a), b + part * (d - b)) for (a, b), (c, d) in between])
        self.send("touchEnd", [])


def test_pages_are_turned(served, chromium):
    port, ids = served
    with browser.Window(chromium) as window:
        page, identifier = window.page, ids["c-pages.tif"]
        page.goto(f"http://127.0.0.1:{port}/view/{identifier}")
        gold = Image.new("RGB", (1, 1), "goldenrod").getpixel((0, 0))

        def shown(picture):
            return all(abs(one - other) < 8 for one, other in zip(at(picture), gold, strict=True))

        window.until(shown, "page 1")
        page.keyboard.press("PageDown")
        page.get_by_text("900 × 600").wait_for()
        assert page.url.endswith(f"/view/{identifier};page=2")
        page.get_by_role("button", name="Next page").click()
        page.get_by_text("700 × 700").wait_for()
        assert page.get_by_role("button", name="Next page").is_disabled()
        page.get_by_label("Page", exact=True).fill("1")
        page.get_by_label("Page", exact=True).press("Enter")
        page.get_by_text("600 × 900").wait_for()
        assert page.url.endswith(f"/view/{identifier}")
        window.until(shown, "page 1 again")
        window.keep("openseadragon-pages")
        assert {path.split("/")[3].partition(";")[2] for path in window.images()} == {"", "page=2", "page=3"}
        window.check()


def test_a_phone(served, chromium):
    port, ids = served
    options = {"has_touch": True, "is_mobile": True}
    with browser.Window(chromium, **options) as window:
        window.page.set_viewport_size({"width": 390, "height": 760})
        window.page.goto(f"http://127.0.0.1:{port}/view/{ids['c-pages.tif']}")
        window.page.get_by_role("button", name="Next page").tap()
        window.page.get_by_text("900 × 600").wait_for(state="attached")
        assert window.page.evaluate("document.documentElement.scrollWidth") == 390
        window.keep("openseadragon-phone")
        window.check()


def test_the_gallery_leads_to_the_page_and_back(served, chromium):
    port, ids = served
    with browser.Window(chromium) as window:
        window.page.goto(f"http://127.0.0.1:{port}/")
        window.page.get_by_role("img", name="a-large.jpg").click()
        window.until(whole, "the large image")
        assert window.page.url.endswith(f"/view/{ids['a-large.jpg']}")
        window.page.get_by_role("link", name="Magazin").click()
        window.page.get_by_role("heading", name="Images in store").wait_for()
        window.keep("gallery")
        window.check()


def test_an_unknown_image_is_a_page(served, chromium):
    with browser.Window(chromium) as window:
        window.page.goto(f"http://127.0.0.1:{served[0]}/view/unknown")
        window.page.get_by_role("heading", name="There is no such image").wait_for()
        window.keep("unknown")
        assert [status for status, _ in window.answers] == [404, 200]


@pytest.fixture(scope="module")
def bounded(data):
    """The port of a server that shows everyone no more than 1,000 pixels of an image, and any context to everyone."""
    environ = {
        "MAGAZIN_ACCESS_PUBLIC_WIDTH": "1000",
        "MAGAZIN_ACCESS_SIGNING_KEY": KEY,
        "MAGAZIN_ACCESS_OPEN_MANIFESTS": "true",
    }
    with Tree(data, "--no-worker", environ=environ) as tree:
        yield tree.port


def test_what_is_not_for_everyone(bounded, served, chromium):
    """All of it is seen, and no viewer is told of what it doesn't get; a signed address opens it."""
    identifier = served[1]["a-large.jpg"]
    with browser.Window(chromium) as window:
        window.page.goto(f"http://127.0.0.1:{bounded}/view/{identifier}")
        window.until(whole, "the whole image")
        assert window.page.get_by_role("link", name="Original").count() == 0
        for _ in range(12):
            window.page.keyboard.press("+")
        window.until(lambda picture: scale(picture) > 12, "the image, as large as it is for everyone")
        assert {path.split("/")[4] for path in window.images()} == {"full"}
        window.check()
    opener = signed(KEY, identifier, int(time.time()) + 3600).text
    with browser.Window(chromium) as window:
        window.page.goto(f"http://127.0.0.1:{bounded}/view/{opener}")
        window.until(whole, "the whole image")
        for _ in range(12):
            window.page.keyboard.press("+")
        window.until(deepest, "the squares of the deepest level")
        window.until(lambda _: any(map(DEEPEST.fullmatch, window.images())), "tiles of the deepest level")
        window.check()


PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Mirador</title><link rel="icon" href="data:,">
<div id="mirador"></div><script src="/mirador.js"></script><script>
Mirador.viewer({id: "mirador", windows: [{manifestId: MANIFEST, thumbnailNavigationPosition: "far-bottom"}],
  window: {allowClose: false, defaultSideBarPanel: "canvas", sideBarOpen: true},
  workspaceControlPanel: {enabled: false}});
</script></html>"""


@pytest.fixture(scope="module")
def museum():
    """The address of another server, whose pages show Mirador with the context's manifest at the port they are named
    after."""
    script = browser.mirador()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path == "/mirador.js":
                kind, body = "text/javascript; charset=utf-8", script
            else:
                manifest = f"http://127.0.0.1:{self.path[1:]}/iiif/presentation/3/viewers/manifest"
                kind, body = "text/html; charset=utf-8", PAGE.replace("MANIFEST", json.dumps(manifest)).encode()
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_mirador_opens_the_context(museum, served, chromium):
    ids = served[1]
    with browser.Window(chromium) as window:
        page = window.page
        page.goto(f"{museum}/{served[0]}")
        thumbnails = page.locator(".mirador-thumbnail-nav-canvas img")
        page.wait_for_function(
            """() => [...document.querySelectorAll(".mirador-thumbnail-nav-canvas img")]
                .filter((image) => image.complete && image.naturalWidth > 1).length >= 5"""
        )
        assert thumbnails.count() >= 5
        names = ["a-large.jpg", "b-0.png", "b-1.png", "b-2.png", *(f"c-pages.tif, {page}" for page in (1, 2, 3))]
        for name in names:
            assert page.get_by_text(name, exact=True).count()
        page.get_by_role("button", name="Reset zoom").click()  # it may have begun while its own layout was narrower
        window.keep("mirador")
        page.get_by_text("b-1.png", exact=True).first.click()
        page.get_by_role("button", name="Reset zoom").click()
        green = Image.new("RGB", (1, 1), "seagreen").getpixel((0, 0))
        window.until(lambda picture: share(picture, green) > 0.1, "the second small image")
        window.keep("mirador-second")
        asked = {path.split("/")[3] for path in window.images()}
        assert {ids["a-large.jpg"], ids["b-1.png"], f"{ids['c-pages.tif']};page=2"} <= asked
        window.check(known="was removed in React 19")


def test_mirador_where_not_everything_is_for_everyone(museum, bounded, chromium):
    with browser.Window(chromium) as window:
        window.page.goto(f"{museum}/{bounded}")
        window.until(  # a click on "Zoom in" before there is an image spoils what Mirador knows of the zoom
            lambda picture: all(abs(band - 127) < 40 for band in picture.getpixel((780, 320))[:2]), "the large image"
        )
        window.page.get_by_role("button", name="Reset zoom").click()
        for _ in range(4):
            window.page.get_by_role("button", name="Zoom in").click()
        window.until(
            lambda _: any("/full/1000,1000/" in path for path in window.images()),
            "the image, as large as it is for everyone",
        )
        window.keep("mirador-bounded")
        assert {path.split("/")[4] for path in window.images()} == {"full"}
        window.check(known="was removed in React 19")


def share(picture, colour):
    """The part of the picture that has about this colour."""
    small = picture.resize((128, 80), Image.Resampling.NEAREST)
    near = sum(all(abs(one - other) < 8 for one, other in zip(seen, colour, strict=True)) for seen in small.getdata())
    return near / (128 * 80)
