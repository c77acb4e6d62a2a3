"""A context as a IIIF manifest; test_viewers opens one in Mirador."""

import io
import itertools
import json
import sys

import iiif_prezi3
import pytest
from PIL import Image

from app.grants import Policy
from app.options import Options
from ingest.records import Status
from storage.memory import MemoryStore
from tests.app_stock import Stock

PATH = "/iiif/presentation/3/ctx/manifest"
BASE = "http://127.0.0.1:8000"
OWN = f"{BASE}/iiif/presentation/3/ctx"
LD_JSON = 'application/ld+json;profile="http://iiif.io/api/presentation/3/context.json"'
ELSEWHERE = {"REMOTE_ADDR": "192.0.2.1"}


class Counting(MemoryStore):
    """Counts the looks at it, those within others not."""

    looks, _within = 0, False

    def _look(self, at, *arguments, **more):
        within, self._within = self._within, True
        self.looks += not within
        try:
            found = at(*arguments, **more)
            return found if isinstance(found, dict | None) else list(found)
        finally:
            self._within = within

    def get(self, *arguments, **more):
        return self._look(super().get, *arguments, **more)

    def fetch(self, *arguments, **more):
        return self._look(super().fetch, *arguments, **more)

    def read(self, *arguments, **more):
        return self._look(super().read, *arguments, **more)


@pytest.fixture
def stock(tmp_path):
    return Stock(tmp_path)


def put_named(stock, *names, **more):
    return {name: stock.put_image(url=f"http://source.example/{name}", **more) for name in names}


def labels(answer):
    return [canvas["label"]["none"][0] for canvas in answer.json["items"]]


def sheets(*sizes):
    out = io.BytesIO()
    first, *others = (Image.new("RGB", size, "teal") for size in sizes)
    first.save(out, "TIFF", save_all=True, append_images=others)
    return out.getvalue()


def test_an_image_is_a_canvas(stock):
    rights = "http://creativecommons.org/licenses/by/4.0/"
    reference_id = stock.put_image(1200, 800, filename="Ansicht.jpg", rights=rights)
    answer = stock.app().get(PATH)
    where, service = f"{OWN}/canvas/{reference_id}", f"{BASE}/iiif/3/{reference_id}"
    assert answer.json == {
        "@context": "http://iiif.io/api/presentation/3/context.json",
        "id": f"{OWN}/manifest",
        "type": "Manifest",
        "label": {"none": ["ctx"]},
        "rights": rights,
        "items": [
            {
                "id": where,
                "type": "Canvas",
                "label": {"none": ["Ansicht.jpg"]},
                "width": 1200,
                "height": 800,
                "rights": rights,
                "thumbnail": [
                    {
                        "id": f"{service}/full/440,293/0/default.jpg",
                        "type": "Image",
                        "format": "image/jpeg",
                        "width": 440,
                        "height": 293,
                    }
                ],
                "items": [
                    {
                        "id": f"{where}/page",
                        "type": "AnnotationPage",
                        "items": [
                            {
                                "id": f"{where}/painting",
                                "type": "Annotation",
                                "motivation": "painting",
                                "target": where,
                                "body": {
                                    "id": f"{service}/full/max/0/default.jpg",
                                    "type": "Image",
                                    "format": "image/jpeg",
                                    "width": 1200,
                                    "height": 800,
                                    "service": [{"id": service, "type": "ImageService3", "profile": "level2"}],
                                },
                            }
                        ],
                    }
                ],
            }
        ],
    }
    assert next(iter(answer.json)) == "@context"
    iiif_prezi3.Manifest(**answer.json)


def test_what_it_names_is_there_and_of_that_size(stock):
    stock.put_image(1200, 800)
    stock.put_image(30, 50, url="http://source.example/small.jpg")  # smaller than a thumbnail
    app = stock.app()
    for canvas in app.get(PATH).json["items"]:
        body = canvas["items"][0]["items"][0]["body"]
        for image in (body, canvas["thumbnail"][0]):
            with Image.open(io.BytesIO(app.get(image["id"].removeprefix(BASE)).body)) as found:
                assert found.size == (image["width"], image["height"])
        info = app.get(body["service"][0]["id"].removeprefix(BASE) + "/info.json").json
        assert (info["width"], info["height"]) == (canvas["width"], canvas["height"])
        assert (info["id"], info["type"], info["profile"]) == tuple(body["service"][0].values())


def test_the_order_is_that_of_the_addresses_with_numbers_as_numbers(stock):
    names = ["a/scan-9.jpg", "a/scan-10.jpg", "a/scan-010b.jpg", "A/scan-11.jpg", "b/scan-1.jpg", "b/scan%2d2.jpg", "c"]
    put_named(stock, *reversed(names))
    answer = stock.app().get(PATH)
    assert labels(answer) == [name.rpartition("/")[2] for name in names]
    digits = "9" * 5000  # more than Python makes an int of
    put_named(stock, f"d{digits}1", f"d{digits}0")
    assert labels(stock.app().get(PATH))[-2:] == [f"d{digits}0", f"d{digits}1"]


def test_pages_are_canvases(stock):
    data = sheets((60, 40), (50, 80), (70, 30))
    reference_id = stock.put(data, url="http://source.example/book.tif", width=60, height=40, pages=3)
    stock.put_image(url="http://source.example/cover.jpg")
    answer = stock.app().get(PATH)
    assert labels(answer) == ["book.tif, 1", "book.tif, 2", "book.tif, 3", "cover.jpg"]
    assert [(one["width"], one["height"]) for one in answer.json["items"]] == [(60, 40), (50, 80), (70, 30), (120, 80)]
    second = answer.json["items"][1]
    assert second["id"] == f"{OWN}/canvas/{reference_id};page=2"
    service = second["items"][0]["items"][0]["body"]["service"][0]["id"]
    assert service == f"{BASE}/iiif/3/{reference_id};page=2"
    stock.app().get(second["thumbnail"][0]["id"].removeprefix(BASE), status=200)


def test_pages_that_cant_be_told_are_left_out(stock):
    stock.put(b"II*\0 not really", width=60, height=40, pages=3)
    assert [(one["width"], one["height"]) for one in stock.app().get(PATH).json["items"]] == [(60, 40)]


def test_only_images_that_are_here(stock):
    stock.put(b"text", url="http://source.example/1", mime="text/plain")
    stock.attach("http://source.example/2")
    _, original = stock.attach("http://source.example/3")
    stock.change(original, status=Status.ERROR)
    stock.put_image(url="http://source.example/4", context="another")
    taken = stock.put_image(url="http://source.example/5")
    app = stock.app()
    assert labels(app.get(PATH)) == ["5"]
    stock.references.detach(taken)
    answer = app.get(PATH, status=404)
    assert answer.content_type == "application/problem+json"
    assert answer.headers["Cache-Control"] == "no-store"  # they may be here in a moment
    app.get("/iiif/presentation/3/unknown/manifest", status=404)
    app.get("/iiif/presentation/3/a b/manifest", status=400)


def test_sources_are_not_named(stock):
    url = "http://user-secrets.example/path/Ansicht.jpg?token=secret"
    stock.put_image(url=url, filename="Ansicht.jpg")
    text = stock.app().get(PATH).text
    assert "user-secrets" not in text and "secret" not in text


def test_names_may_be_anything(stock):
    name = 'a "quoted" \u202e <b>2026-01-01T00:00:00+00:00'
    stock.put_image(filename=name)
    assert labels(stock.app().get(PATH)) == [name]


def test_rights_are_addresses(stock):
    put_named(stock, "1", rights="http://rightsstatements.org/vocab/InC/1.0/")
    put_named(stock, "2")
    for rights, shown in [("http://creativecommons.org/licenses/by/4.0/",) * 2, ("all reserved", None), ("", None)]:
        answer = stock.app(Options(open_lists=True, rights=rights)).get(PATH).json
        assert answer["items"][0]["rights"] == "http://rightsstatements.org/vocab/InC/1.0/"
        assert answer["items"][1].get("rights") == shown
        assert "rights" not in answer  # they differ


class TestWhoMayReadIt:
    def test_whoever_may_read_lists(self, stock):
        stock.put_image()
        closed = stock.app(Options())
        assert closed.get(PATH, status=403).headers["WWW-Authenticate"]
        token = {"Authorization": f"Bearer {stock.tokens.issue('test')}"}
        answer = closed.get(PATH, headers=token)
        assert answer.headers["Cache-Control"] == "private, no-cache"
        closed.get(PATH, headers={"Authorization": "Bearer mgz_0_0"}, status=401)

    @pytest.mark.parametrize("options", [Options(open_lists=True), Options(open_manifests=True)])
    def test_everyone_where_it_is_open(self, stock, options):
        stock.put_image()
        app = stock.app(options)
        answer = app.get(PATH, extra_environ=ELSEWHERE, headers={"Origin": "https://viewer.example"})
        assert answer.headers["Cache-Control"] == "public, no-cache"
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        app.get("/binaries/ctx", extra_environ=ELSEWHERE, status=200 if options.open_lists else 403)

    def test_no_page_reads_it_through_a_browser_on_this_machine(self, stock):
        stock.put_image()
        app = stock.app()  # loopback needs no token
        app.get(PATH, status=200)
        app.get(PATH, headers={"Origin": "https://elsewhere.example"}, status=403)

    def test_it_tells_of_images_what_everyone_may_see(self, stock):
        stock.put_image(1000, 500)
        canvas = stock.app(Options(open_lists=True, policy=Policy(public_width=200))).get(PATH).json["items"][0]
        assert (canvas["width"], canvas["height"]) == (1000, 500)
        body = canvas["items"][0]["items"][0]["body"]
        assert (body["width"], body["height"]) == (200, 100)
        assert canvas["thumbnail"][0]["width"] == 200
        assert body["service"][0]["profile"] == "level0"


class TestHttp:
    def test_media_types(self, stock):
        stock.put_image()
        app = stock.app()
        for accept, kind in [
            (None, LD_JSON),
            ("*/*", LD_JSON),
            (LD_JSON, LD_JSON),
            ("application/json, application/ld+json", LD_JSON),
            ("application/json", "application/json"),
            ("text/html", LD_JSON),
        ]:
            answer = app.get(PATH, headers={"Accept": accept} if accept else {})
            assert answer.headers["Content-Type"] == kind, accept
            assert answer.headers["Vary"] == "Accept"

    def test_a_copy_is_right_until_the_context_changes(self, stock):
        put_named(stock, "1")
        app = stock.app()
        answer = app.get(PATH)
        held = {"If-None-Match": answer.headers["ETag"]}
        unchanged = app.get(PATH, headers=held, status=304)
        assert unchanged.body == b"" and unchanged.headers["ETag"] == answer.headers["ETag"]
        assert unchanged.headers["Cache-Control"] == "private, no-cache"
        app.get(PATH, headers={"If-None-Match": '"other"', "If-Modified-Since": "Fri, 01 Jan 2100 00:00:00 GMT"})
        put_named(stock, "2")
        assert len(app.get(PATH, headers=held, status=200).json["items"]) == 2

    def test_head_and_options(self, stock):
        stock.put_image()
        app = stock.app()
        head = app.head(PATH)
        assert head.body == b"" and int(head.headers["Content-Length"]) == len(app.get(PATH).body)
        answer = app.options(PATH, headers={"Origin": "https://viewer.example", "Access-Control-Request-Method": "GET"})
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert answer.headers["Access-Control-Allow-Methods"] == "GET, HEAD, OPTIONS"
        assert app.put(PATH, status=405).headers["Access-Control-Allow-Origin"] == "*"

    def test_addresses_are_those_of_the_proxy(self, stock):
        stock.put_image()
        answer = stock.app(Options(open_lists=True, base_url="https://media.example.org/m")).get(PATH)
        assert "127.0.0.1" not in answer.text
        assert answer.json["id"] == "https://media.example.org/m/iiif/presentation/3/ctx/manifest"

    def test_without_the_library_it_says_what_to_install(self, stock, monkeypatch):
        stock.put_image()
        monkeypatch.setitem(sys.modules, "iiif_prezi3", None)
        answer = stock.app().get(PATH, status=501)
        assert "pip install 'magazin[images]'" in answer.json["detail"]
        stock.app(Options()).get(PATH, status=403)


class TestLargeContexts:
    def parts(self, app, path=PATH):
        """Every part, by the links from one to the next."""
        while path:
            answer = app.get(path, status="*")
            yield answer
            path = answer.headers.get("Link", "<").partition(">")[0].partition("<")[2]

    def test_they_come_in_parts_that_lack_nothing(self, stock):
        names = [str(number) for number in range(23)]
        put_named(stock, *names)
        for name in ("x", "y"):
            stock.put(b"text", url=f"http://source.example/{name}")
        app = stock.app(Options(open_lists=True, canvases=10))
        parts = list(self.parts(app))
        assert [len(part.json["items"]) for part in parts] == [10, 10, 3]
        assert sorted((label for part in parts for label in labels(part)), key=int) == names
        assert all(labels(part) == sorted(labels(part), key=int) for part in parts)
        for part, following in itertools.pairwise(parts):
            assert following.json["id"] in part.json["summary"]["en"][0]
        assert "The last part." in parts[-1].json["summary"]["en"][0]
        assert "summary" not in stock.app().get(PATH).json

    def test_a_document_is_not_torn_and_a_long_one_is_cut(self, stock):
        stock.put(sheets(*[(30, 20)] * 5), url="http://source.example/long.tif", width=30, height=20, pages=5)
        for name in ("a.tif", "b.tif"):
            data = sheets((30, 20), (30, 20))
            stock.put(data, url=f"http://source.example/{name}", width=30, height=20, pages=2)
        parts = list(self.parts(stock.app(Options(open_lists=True, canvases=3))))
        names = [[label.partition(",")[0] for label in labels(part)] for part in parts]
        assert sorted(names) == [["a.tif"] * 2, ["b.tif"] * 2, ["long.tif"] * 3]

    def test_a_part_looks_at_ten_references_for_each_canvas(self, stock):
        for number in range(45):
            stock.attach(f"http://source.example/{number}")
        stock.put_image(url="http://source.example/image")
        parts = list(self.parts(stock.app(Options(open_lists=True, canvases=2))))
        assert [part.status_int for part in parts].count(200) == 1
        assert len(parts) == 3  # of 46 references

    def test_a_larger_context_costs_no_more_looks_at_the_store(self, tmp_path):
        counts = []
        for images in (3, 60):
            store = Counting(strict=True)
            stock = Stock(tmp_path / str(images), store)
            put_named(stock, *map(str, range(images)))
            app, store.looks = stock.app(), 0
            assert len(app.get(PATH).json["items"]) == images
            counts.append(store.looks)
        assert counts[1] <= counts[0] + 20  # the index has sixteen partitions, each looked up when it has rows

    @pytest.mark.parametrize("after", ["", "a_b", "a.b", "x" * 65, "a&after=b"])
    def test_cursors_that_were_never_handed_out(self, stock, after):
        stock.put_image()
        assert stock.app().get(f"{PATH}?after={after}", status=400).json["field"] == "after"


def test_the_manifest_of_a_thousand_is_made_once(stock):
    """What is sent is kept under what it is made of: the schema's check takes most of a second."""
    put_named(stock, *map(str, range(30)))
    app = stock.app()
    first = json.loads(app.get(PATH).body)
    assert app.get(PATH).json == first
    elsewhere = stock.app(Options(open_lists=True, base_url="https://media.example.org")).get(PATH).json
    assert elsewhere["id"].startswith("https://media.example.org/")
