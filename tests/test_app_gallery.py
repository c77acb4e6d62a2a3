import base64
import re
from hashlib import sha256

import pytest

from app.options import Options
from app.page import Picture, grid
from tests.app_stock import START, Stock


@pytest.fixture
def stock(tmp_path):
    return Stock(tmp_path)


def test_images_in_store(stock):
    reference_id = stock.put_image(120, 80, filename="Ansicht.jpg")
    stock.put(b"text", url="http://source.example/text", mime="text/plain")
    answer = stock.app().get("/")
    assert answer.content_type == "text/html"
    assert answer.html.find("h1").text == "Magazin"
    [image] = answer.html.find_all("img")
    assert image["src"] == f"/binary/{reference_id}/full/!440,330/0/default.jpg"
    assert image["alt"] == "Ansicht.jpg"
    for link in answer.html.find_all("a"):
        stock.app().get(link["href"], status=200)
    stock.app().get(image["src"], status=200)


def test_hostile_names_are_text(stock):
    name = "\"><script>alert(1)</script><img src=x onerror='x'>.jpg"
    stock.put_image(filename=name)
    answer = stock.app().get("/")
    assert answer.html.find("script") is None
    assert len(answer.html.find_all("img")) == 1
    assert answer.html.find("strong").text == name


def test_the_policy_allows_this_style_and_no_script(stock):
    answer = stock.app().get("/")
    policy = dict(part.split(" ", 1) for part in answer.headers["Content-Security-Policy"].split("; "))
    style = re.search(r"<style>(.*?)</style>", answer.text, re.DOTALL)[1]
    digest = base64.b64encode(sha256(style.encode()).digest()).decode()
    assert policy == {
        "default-src": "'none'",
        "img-src": "'self' data:",
        "style-src": f"'sha256-{digest}'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    assert 'style="' not in answer.text and "http-equiv" not in answer.text
    assert not re.search(r'(src|href)="(https?:)?//', answer.text)  # nothing from elsewhere
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_pages_newest_first(stock):
    for number in range(50):
        stock.put_image(url=f"http://source.example/{number}.jpg", created=START + number * 90_000_000)
    app, names, path = stock.app(), [], "/"
    while path:
        page = app.get(path).html
        names.append([image["alt"] for image in page.find_all("img")])
        older = page.find("a", rel="next")
        path = older["href"] if older else None
    assert [len(page) for page in names] == [48, 2]
    assert [name for page in names for name in page] == [f"{number}.jpg" for number in reversed(range(50))]


def test_bad_cursors(stock):
    for before in ("x", "1", "1.", "1.a_b", "9" * 19 + ".a", "1.a&before=2.b"):
        assert stock.app().get(f"/?before={before}", status=400).json["field"] == "before"


def test_none_yet_and_closed(stock):
    assert "There are none yet." in stock.app().get("/").text
    stock.put_image()
    closed = stock.app(Options()).get("/")
    assert "The gallery is closed." in closed.text and closed.html.find("img") is None
    elsewhere = {"REMOTE_ADDR": "192.0.2.1"}
    assert stock.app(Options(open_lists=True)).get("/", extra_environ=elsewhere).html.find("img")
    assert stock.app().get("/", extra_environ=elsewhere).html.find("img") is None
    page = stock.app().get("/", headers={"Sec-Fetch-Site": "cross-site"})
    assert page.html.find("img") is None


def test_the_example_has_the_address(stock):
    assert "curl -X PUT http://127.0.0.1:8000/binaries" in stock.app().get("/").html.find("pre").text
    fixed = stock.app(Options(base_url="https://media.example.org"))
    assert "https://media.example.org/binaries" in fixed.get("/").html.find("pre").text


@pytest.mark.parametrize(
    ("size", "shown"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (4_650_000, "4.7 MB"), (5 * 10**16, "50000.0 TB")]
)
def test_amounts(size, shown):
    assert f" · {shown}</span>" in grid([Picture("id", "name", 1, 1, size)], None)
