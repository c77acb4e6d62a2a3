"""``/iiif/2`` and ``/iiif/3`` over HTTP."""

import io

import pytest
from PIL import Image

from app.options import Options
from tests.app_stock import Stock, size_of
from tests.imaging_files import photo, saved

CONTEXT = "http://iiif.io/api/image/{}/context.json"


@pytest.fixture
def stock(tmp_path):
    return Stock(tmp_path)


def put_tiff(stock, pages=3):
    images = [Image.new("RGB", (100 + 10 * page, 80), (40 * page, 0, 0)) for page in range(pages)]
    out = io.BytesIO()
    images[0].save(out, "TIFF", save_all=True, append_images=images[1:])
    return stock.put(out.getvalue(), mime="image/tiff", width=100, height=80, pages=pages)


def key_of(stock, path):
    original = stock.references.find(path.split("/")[3])[1]
    return original.original_id, original.attempt


class TestInfo:
    def test_version_2(self, stock):
        identifier = stock.put_image(3000, 2000)
        info = stock.app().get(f"/iiif/2/{identifier}/info.json").json
        level, profile = info["profile"]
        assert (info["@id"], info["@context"]) == (f"http://127.0.0.1:8000/iiif/2/{identifier}", CONTEXT.format(2))
        assert (info["width"], info["height"], level) == (3000, 2000, "http://iiif.io/api/image/2/level2.json")
        assert info["tiles"] == [{"width": 512, "height": 512, "scaleFactors": [1, 2, 4, 8]}]
        assert profile["formats"][:2] == ["jpg", "png"]
        assert {"regionSquare", "rotationArbitrary", "mirroring", "sizeByDistortedWh"} <= set(profile["supports"])
        assert "maxArea" not in profile

    def test_version_3(self, stock):
        identifier = stock.put_image(1000, 500, rights="http://creativecommons.org/licenses/by/4.0/")
        info = stock.app().get(f"/iiif/3/{identifier}/info.json").json
        assert (info["id"], info["type"], info["profile"]) == (
            f"http://127.0.0.1:8000/iiif/3/{identifier}",
            "ImageService3",
            "level2",
        )
        assert info["rights"] == "http://creativecommons.org/licenses/by/4.0/"
        assert [tuple(one.values()) for one in info["sizes"]] == [
            (116, 58),
            (140, 70),
            (440, 220),
            (800, 400),
            (1000, 500),
        ]
        assert info["preferredFormats"] == ["jpg"]
        assert info["extraQualities"] == ["color", "gray", "bitonal"]
        assert "sizeUpscaling" in info["extraFeatures"]
        assert not {"jpg", "png"} & set(info["extraFormats"])

    def test_rights_of_the_settings_are_for_images_that_name_none(self, stock):
        app = stock.app(Options(rights="http://rightsstatements.org/vocab/InC/1.0/"))
        assert app.get(f"/iiif/2/{stock.put_image()}/info.json").json["license"].endswith("InC/1.0/")
        own = stock.put_image(url="http://source.example/own.jpg", rights="http://creativecommons.org/a")
        assert app.get(f"/iiif/3/{own}/info.json").json["rights"] == "http://creativecommons.org/a"

    def test_media_types(self, stock):
        path = f"/iiif/{{}}/{stock.put_image()}/info.json"
        plain = stock.app().get(path.format(3))
        assert (plain.content_type, plain.headers["Vary"]) == ("application/json", "Accept")
        assert CONTEXT.format(3) in plain.headers["Link"]
        asked = {"Accept": "application/ld+json, */*;q=0.5"}
        assert stock.app().get(path.format(2), headers=asked).headers["Content-Type"] == "application/ld+json"
        linked = stock.app().get(path.format(3), headers=asked).headers["Content-Type"]
        assert linked == f'application/ld+json;profile="{CONTEXT.format(3)}"'

    def test_every_size_and_tile_told_is_given(self, stock):
        identifier = stock.put_image(700, 533)
        app = stock.app()
        for version in (2, 3):
            info = app.get(f"/iiif/{version}/{identifier}/info.json").json
            for size in info["sizes"]:
                wanted = f"{size['width']},{size['height']}"
                data = app.get(f"/iiif/{version}/{identifier}/full/{wanted}/0/default.jpg").body
                assert size_of(data)[1] == (size["width"], size["height"])
            for by in info["tiles"][0]["scaleFactors"]:
                for x in range(0, 700, 512 * by):
                    for y in range(0, 533, 512 * by):
                        w, h = min(512 * by, 700 - x), min(512 * by, 533 - y)
                        size = -(-w // by), -(-h // by)
                        path = f"/iiif/{version}/{identifier}/{x},{y},{w},{h}/{size[0]},{size[1]}/0/default.jpg"
                        assert size_of(app.get(path).body)[1] == size


class TestAddresses:
    def test_the_base_redirects_to_the_document(self, stock):
        identifier = stock.put_image()
        answer = stock.app().get(f"/iiif/3/{identifier}", headers={"Origin": "https://viewer.example"})
        assert (answer.status_int, answer.headers["Access-Control-Allow-Origin"]) == (303, "*")
        assert answer.headers["Location"] == f"http://127.0.0.1:8000/iiif/3/{identifier}/info.json"

    def test_the_base_is_a_setting(self, stock):
        identifier = stock.put_image()
        app = stock.app(Options(base_url="https://media.example.org/files"))
        mine = f"https://media.example.org/files/iiif/2/{identifier}"
        assert app.get(f"/iiif/2/{identifier}").headers["Location"] == f"{mine}/info.json"
        assert app.get(f"/iiif/2/{identifier}/info.json").json["@id"] == mine
        link = app.get(f"/iiif/2/{identifier}/full/50,/0/default.jpg").headers["Link"]
        assert f'<{mine}/full/50,/0/default.jpg>;rel="canonical"' in link

    def test_links(self, stock):
        identifier = stock.put_image(120, 80)
        link = stock.app().get(f"/iiif/3/{identifier}/pct:0,0,100,100/!60,60/0/default.jpg").headers["Link"]
        assert f'/iiif/3/{identifier}/full/60,40/0/default.jpg>;rel="canonical"' in link
        assert '<http://iiif.io/api/image/3/level2.json>;rel="profile"' in link


class TestImage:
    @pytest.mark.parametrize(
        ("file", "mime"),
        [
            *(("default.jpg", "image/jpeg"), ("gray.png", "image/png"), ("color.webp", "image/webp")),
            *(("bitonal.tif", "image/tiff"), ("default.gif", "image/gif"), ("default.avif", "image/avif")),
            *(("default.jp2", "image/jp2"), ("default.pdf", "application/pdf")),
        ],
    )
    def test_formats(self, stock, file, mime):
        answer = stock.app().get(f"/iiif/3/{stock.put_image()}/full/60,/90/{file}")
        assert (answer.content_type, answer.headers["X-Content-Type-Options"]) == (mime, "nosniff")

    def test_conditions_come_before_decoding(self, stock):
        app, path = stock.app(), f"/iiif/3/{stock.put_image()}/10,10,50,50/30,/0/default.png"
        answer = app.get(path)
        assert answer.headers["Cache-Control"] == "public, max-age=3600"
        assert "magazin_renditions_made_total 1.0" in app.get("/metrics").text
        stock.blobs.erase(*key_of(stock, path))
        for headers in (
            {"If-None-Match": answer.headers["ETag"]},
            {"If-Modified-Since": answer.headers["Last-Modified"]},
        ):
            assert app.get(path, headers=headers).status_int == 304

    def test_one_tag_for_all_spellings_and_another_for_other_pixels(self, stock):
        app, base = stock.app(), f"/iiif/3/{stock.put_image(120, 80)}"
        same = [f"{base}/{one}" for one in ("full/60,/0/default.jpg", "0,0,120,80/60,40/360/default.jpg")]
        assert len({app.get(path).headers["ETag"] for path in same}) == 1
        assert app.get(same[0]).headers["ETag"] != app.get(f"{base}/full/60,/0/gray.jpg").headers["ETag"]

    def test_head(self, stock):
        path = f"/iiif/2/{stock.put_image()}/square/40,/0/default.jpg"
        head, got = stock.app().head(path), stock.app().get(path)
        assert (head.body, head.headers["ETag"]) == (b"", got.headers["ETag"])
        assert head.headers["Content-Length"] == str(len(got.body))

    def test_download(self, stock):
        path = f"/iiif/2/{stock.put_image(url='http://source.example/My Photo.jpeg')}/full/40,/0/default.png"
        assert "Content-Disposition" not in stock.app().get(path).headers
        for query in ("?download", "?download=1"):
            said = stock.app().get(path + query).headers["Content-Disposition"]
            assert said.startswith('attachment; filename="My Photo.png"')

    def test_a_box_made_at_ingest_is_taken(self, stock):
        identifier = stock.put_image(1000, 500, boxes={(440, 330): b"\xff\xd8prepared"})
        assert stock.app().get(f"/iiif/3/{identifier}/full/440,/0/default.jpg").body == b"\xff\xd8prepared"
        assert stock.app().get(f"/iiif/3/{identifier}/full/440,/0/gray.jpg").body != b"\xff\xd8prepared"

    @pytest.mark.parametrize(
        ("path", "field"),
        [
            *(
                ("nothing/max/0/default.jpg", "region"),
                ("full/0,/0/default.jpg", "size"),
                ("full/max/x/default.jpg", "rotation"),
            ),
            *(("full/max/0/best.jpg", "quality and format"), ("full/max/0/default.bmp", "quality and format")),
            *(("120,0,1,1/max/0/default.jpg", "region"), ("full/121,/0/default.jpg", "size")),
            *(("full/full/0/default.jpg", "size"), (f"full/{10**100},/0/default.jpg", "size")),
            *(("full/^4001,4000/0/default.jpg", "size"), (f"{2**63},0,1,1/max/0/default.jpg", "region")),
        ],
    )
    def test_bad_requests(self, stock, path, field):
        answer = stock.app().get(f"/iiif/3/{stock.put_image(120, 80)}/{path}", status=400)
        assert (answer.json["field"], answer.headers["Access-Control-Allow-Origin"]) == (field, "*")

    def test_w_h_over_the_source_is_no_error_in_version_2(self, stock):
        identifier = stock.put_image(120, 80)
        assert size_of(stock.app().get(f"/iiif/2/{identifier}/full/!800,600/0/default.jpg").body)[1] == (120, 80)

    def test_max_over_the_limit_is_the_limit(self, stock):
        identifier = stock.put_image(1200, 800)
        stock.limits = type(stock.limits)(max_area=240_000)
        app = stock.app()
        assert app.get(f"/iiif/3/{identifier}/info.json").json["maxArea"] == 240_000
        for version in (2, 3):
            assert size_of(app.get(f"/iiif/{version}/{identifier}/full/max/0/default.jpg").body)[1] == (600, 400)
        app.get(f"/iiif/3/{identifier}/full/601,/0/default.jpg", status=400)


class TestPages:
    def test_a_page_of_its_own(self, stock):
        identifier, app = put_tiff(stock), stock.app()
        for page in (1, 3):
            info = app.get(f"/iiif/3/{identifier};page={page}/info.json").json
            assert (info["width"], info["height"]) == (90 + 10 * page, 80)
            assert info["id"].endswith(identifier if page == 1 else f"{identifier};page=3")
            answer = app.get(f"/iiif/3/{identifier}%3Bpage={page}/full/max/0/default.png")
            assert Image.open(io.BytesIO(answer.body)).getpixel((5, 5)) == (40 * (page - 1), 0, 0)

    def test_pages_that_are_not_there(self, stock):
        identifier, app = put_tiff(stock), stock.app()
        app.get(f"/iiif/3/{identifier};page=4/info.json", status=404)
        app.get(f"/iiif/3/{identifier};page=4/full/max/0/default.jpg", status=404)
        for tail in ("page=0", "page=-1", "page=x", "page=", "page=1;page=2", "", "sheet=1", "page=" + "9" * 99):
            app.get(f"/iiif/3/{identifier};{tail}/info.json", status=400)


class TestOthers:
    def test_ids(self, stock):
        app = stock.app()
        assert app.get("/iiif/3/unknown/info.json", status=404).headers["Access-Control-Allow-Origin"] == "*"
        app.get("/iiif/3/a.b/info.json", status=400)
        app.get("/iiif/4/unknown/info.json", status=404)
        app.get(f"/iiif/3/{stock.put(b'text', mime='text/plain')}/info.json", status=404)

    def test_options_are_open_to_all(self, stock):
        for path in ("/iiif/3/x", "/iiif/3/x/info.json", "/iiif/2/x/full/max/0/default.jpg"):
            answer = stock.app().options(path, headers={"Origin": "https://viewer.example"})
            assert answer.headers["Access-Control-Allow-Origin"] == "*"
            assert "GET" in answer.headers["Access-Control-Allow-Methods"]
            assert "Vary" not in answer.headers or "Origin" not in answer.headers["Vary"]

    def test_one_rendition_for_both_versions(self, stock):
        identifier = stock.put(saved(photo(300, 200), "PNG"), mime="image/png", width=300, height=200)
        app = stock.app()
        first = app.get(f"/iiif/2/{identifier}/full/90,/0/default.jpg").body
        assert app.get(f"/iiif/3/{identifier}/full/90,60/0/default.jpg").body == first
        assert "magazin_renditions_made_total 1.0" in app.get("/metrics").text
