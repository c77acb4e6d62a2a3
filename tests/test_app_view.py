"""The viewer page as HTML; test_viewers looks at it in a browser."""

import io
import re

import pytest
from PIL import Image

from app.grants import Policy, signed
from app.options import Options
from app.viewerfiles import FOLDER, bundle
from imaging.watermark import Mark
from tests.app_stock import START, Stock, jpeg

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
UNBUILT = "make viewer"


@pytest.fixture
def stock(tmp_path):
    return Stock(tmp_path)


@pytest.fixture
def viewer(tmp_path):
    return built(tmp_path / "viewer", "// npm's")


def built(folder, library):
    """The files of the page, with something in place of OpenSeadragon."""
    (folder / "dist").mkdir(parents=True)
    for name in ("viewer.css", "viewer.js"):
        (folder / name).write_bytes((FOLDER / name).read_bytes())
    (folder / "dist" / "openseadragon.js").write_text(library)
    return bundle(folder)


def stage(answer):
    return answer.html.find(id="stage")


def test_an_image(stock, viewer):
    reference_id = stock.put_image(1200, 800, filename="Ansicht.jpg")
    app = stock.app(viewer=viewer)
    answer = app.get(f"/view/{reference_id}", headers=BROWSER)
    assert answer.content_type == "text/html"
    assert answer.html.find("h1").text == answer.html.find("title").text == "Ansicht.jpg"
    assert "1200 × 800 pixels" in re.sub("<.*?>", "", answer.text)
    data = {name: value for name, value in stage(answer).attrs.items() if name.startswith("data-")}
    assert data == {
        "data-identifier": reference_id,
        "data-tail": "",
        "data-page": "1",
        "data-pages": "1",
        "data-title": "Ansicht.jpg",
    }
    assert answer.html.find(id="pages") is None
    assert UNBUILT not in answer.text
    addresses = [one["href"] for one in answer.html.find_all(["a", "link"])]
    addresses += [one["src"] for one in answer.html.find_all(["script", "img"])]
    assert all(one.startswith("../") for one in addresses if one != "data:,")  # right behind a proxy with a prefix
    for address in set(addresses) - {"data:,"}:
        app.get(f"/view/{address}".replace("/view/..", ""), status=200)


def test_no_script_and_no_style_is_inline_and_nothing_comes_from_elsewhere(stock, viewer):
    answer = stock.app(viewer=viewer).get(f"/view/{stock.put_image()}")
    policy = dict(part.split(" ", 1) for part in answer.headers["Content-Security-Policy"].split("; "))
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data:",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert all(script["src"] and not script.text for script in answer.html.find_all("script"))
    assert answer.html.find("style") is None and 'style="' not in answer.text
    assert not re.search(r"\son\w+=", answer.text)


def test_hostile_names_are_text(stock, viewer):
    name = "\"><script>alert(1)</script><img src=x onerror='x'>.jpg"
    answer = stock.app(viewer=viewer).get(f"/view/{stock.put_image(filename=name)}")
    assert len(answer.html.find_all("script")) == len(viewer.links.scripts)
    assert len(answer.html.find_all("img")) == 1
    assert answer.html.find("h1").text == stage(answer)["data-title"] == answer.html.find("img")["alt"] == name


def test_every_control_has_a_name(stock, viewer):
    answer = stock.app(viewer=viewer).get(f"/view/{stock.put(jpeg(30, 20), width=30, height=20, pages=3)}")
    controls = answer.html.find_all(["button", "input"])
    assert len(controls) == 8
    assert all(one["aria-label"] for one in controls)
    assert answer.html.find("html")["lang"] == "en"


def test_pages(stock, viewer):
    out = io.BytesIO()
    sheets = [Image.new("RGB", (50 + 10 * number, 40), "red") for number in range(3)]
    sheets[0].save(out, "TIFF", save_all=True, append_images=sheets[1:])
    reference_id = stock.put(out.getvalue(), width=50, height=40, pages=3)
    app = stock.app(viewer=viewer)
    third = app.get(f"/view/{reference_id};page=3")
    assert (stage(third)["data-page"], stage(third)["data-pages"]) == ("3", "3")
    assert "70 × 40 pixels" in re.sub("<.*?>", "", third.text)
    assert third.html.find(id="page")["value"] == "3"
    assert third.html.find(id="info")["href"] == f"../iiif/3/{reference_id};page=3/info.json"
    assert app.get(f"/view/{reference_id};page=4", status=404).json["status"] == 404


def test_images_in_buckets(stock, viewer):
    app = stock.app(viewer=viewer)
    file_id = app.put("/files/fs/a/photo.jpg", jpeg(120, 80), status=201).json["id"]
    answer = app.get(f"/view/files:fs:{file_id}")
    assert stage(answer)["data-identifier"] == f"files:fs:{file_id}"
    original = answer.html.find("a", string="Original")["href"]
    app.get(original.removeprefix(".."), status=200)
    app.get(answer.html.find("img")["src"].removeprefix(".."), status=200)
    app.get("/view/files:fs:unknown", status=404)


@pytest.mark.parametrize(("path", "status"), [("unknown", 404), ("unknown;page=0", 400), ("files:fs:none", 404)])
def test_what_isnt_there_is_html_for_a_browser_and_a_problem_for_others(stock, path, status):
    app = stock.app()
    page = app.get(f"/view/{path}", headers=BROWSER, status=status)
    assert page.content_type == "text/html" and page.html.find("h1").text
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert page.html.find("script") is None
    for accept in ({}, {"Accept": "*/*"}, {"Accept": "application/json"}):
        assert app.get(f"/view/{path}", headers=accept, status=status).content_type == "application/problem+json"
    assert page.headers["Vary"] == "Accept"


def test_what_isnt_here_yet(stock):
    reference, _ = stock.attach()
    page = stock.app().get(f"/view/{reference.reference_id}", headers=BROWSER, status=503)
    assert "not here yet" in page.text and page.headers["Retry-After"]
    assert page.headers["Cache-Control"] == "no-store"


def test_what_is_no_image(stock):
    reference_id = stock.put(b"text", mime="text/plain")
    assert "There is no such image" in stock.app().get(f"/view/{reference_id}", headers=BROWSER, status=404).text


def test_a_copy_is_asked_for_and_kept_while_it_is_right(stock, viewer, tmp_path):
    reference_id, app = stock.put_image(), stock.app(viewer=viewer)
    answer = app.get(f"/view/{reference_id}")
    assert answer.headers["Cache-Control"] == "no-cache"
    held = {"If-None-Match": answer.headers["ETag"]}
    assert app.get(f"/view/{reference_id}", headers=held, status=304).body == b""
    upgraded = built(tmp_path / "upgraded", "// newer")  # so that its scripts have other names
    stock.app(viewer=upgraded).get(f"/view/{reference_id}", headers=held, status=200)
    assert app.head(f"/view/{reference_id}").body == b""


def test_without_the_scripts_it_shows_the_image_and_says_how_to_get_them(stock, tmp_path):
    folder = tmp_path / "viewer"
    folder.mkdir()
    (folder / "viewer.css").write_text("")
    app = stock.app(viewer=bundle(folder))
    answer = app.get(f"/view/{stock.put_image()}")
    assert UNBUILT in answer.html.find(class_="unbuilt").text
    assert answer.html.find("script") is None
    app.get(answer.html.find("img")["src"].removeprefix(".."), status=200)


class TestWhatNotEveryoneSees:
    KEY = "a long and random key"

    def test_a_signed_address_is_carried_on(self, stock, viewer):
        reference_id = stock.put_image()
        until = START // 1_000_000 + 3600
        name = signed(self.KEY, reference_id, until)
        app = stock.app(Options(policy=Policy(key=self.KEY, public_width=50)), viewer=viewer)
        answer = app.get(f"/view/{name.text}")
        assert stage(answer)["data-identifier"] == reference_id
        assert stage(answer)["data-tail"] == name.text.removeprefix(reference_id)
        info = answer.html.find(id="info")["href"]
        assert app.get(info.removeprefix("..")).json["width"] == 120
        assert answer.html.find("a", string="Original") is None  # which is a 403 to everybody
        wrong = name.text[:-1] + ("0" if name.text[-1] != "0" else "1")
        assert "signature" in app.get(f"/view/{wrong}", headers=BROWSER, status=403).text

    def test_the_original_is_linked_where_everyone_may_have_it(self, stock, viewer):
        reference_id = stock.put_image()
        marked = Policy(marks={"ctx": Mark(jpeg(8, 8))})
        for policy, linked in [
            (Policy(public_width=120), True),
            (Policy(public_width=119), False),
            (marked, False),
        ]:
            app = stock.app(Options(policy=policy), viewer=viewer)
            link = app.get(f"/view/{reference_id}").html.find("a", string="Original")
            assert (link is not None) is linked
            app.get(f"/binary/{reference_id}", status=200 if linked else 403)
