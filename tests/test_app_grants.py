"""What everyone sees of an image, and what a signature opens."""

import io

import pytest
from PIL import Image

from app.grants import Policy, signed
from app.options import Options
from imaging.watermark import Mark
from tests.app_stock import START, Stock, size_of
from tests.imaging_files import opened, saved

KEY = "a long and random key"
LATER = START // 1_000_000 + 100
RED = saved(Image.new("RGBA", (60, 60), (255, 0, 0, 255)), "PNG")


@pytest.fixture
def stock(tmp_path):
    return Stock(tmp_path)


def app(stock, **policy):
    return stock.app(Options(policy=Policy(**{"key": KEY, **policy})))


class TestSignature:
    def test_it_opens_what_is_bounded_until_it_runs_out(self, stock):
        identifier = stock.put_image(2000, 1000)
        bounded = app(stock, public_width=500)
        opener = signed(KEY, identifier, LATER).text
        info = bounded.get(f"/iiif/3/{opener}/info.json")
        assert info.json["id"].endswith(f"/iiif/3/{opener}")
        assert "maxWidth" not in info.json
        assert int(info.headers["Cache-Control"].rpartition("=")[2]) <= 100
        answer = bounded.get(f"/iiif/3/{opener}/full/max/0/default.jpg")
        assert size_of(answer.body)[1] == (2000, 1000)
        assert f"/iiif/3/{opener}/full/max/0/default.jpg>" in answer.headers["Link"]
        past = signed(KEY, identifier, START // 1_000_000).text
        assert bounded.get(f"/iiif/3/{past}/info.json", status=403).json["field"] == "until"

    def test_nothing_else_does(self, stock):
        identifier, other = stock.put_image(), stock.put_image(url="http://source.example/other.jpg")
        mine = signed(KEY, identifier, LATER)
        forged = [
            signed("another key", identifier, LATER).text,
            mine.text.replace(f"until={LATER}", f"until={LATER + 1}"),
            mine.text.replace(identifier, other),
            mine.text[:-1] + ("0" if mine.text[-1] != "0" else "1"),
        ]
        for one in forged:
            for path in ("info.json", "full/max/0/default.jpg"):
                assert app(stock).get(f"/iiif/3/{one}/{path}", status=403).json["field"] == "signature"
        app(stock, key="").get(f"/iiif/3/{signed('', identifier, LATER).text}/info.json", status=403)
        for cut in (f"{identifier};until={LATER}", f"{identifier};signature={'0' * 64}", mine.text[:-1], mine.text * 2):
            app(stock).get(f"/iiif/3/{cut}/info.json", status=400)

    def test_it_is_good_for_every_page(self, stock):
        out = io.BytesIO()
        Image.new("L", (40, 30)).save(out, "TIFF", save_all=True, append_images=[Image.new("L", (50, 30))])
        identifier = stock.put(out.getvalue(), mime="image/tiff", width=40, height=30, pages=2)
        name = signed(KEY, identifier, LATER).text.replace(";until", ";page=2;until")
        assert app(stock, public_width=10).get(f"/iiif/3/{name}/info.json").json["width"] == 50


class TestPublicWidth:
    def test_no_rendition_is_finer_than_what_is_public(self, stock):
        identifier = stock.put_image(4000, 2000)
        bounded = app(stock, public_width=1000)
        info = bounded.get(f"/iiif/3/{identifier}/info.json").json
        assert (info["width"], info["maxWidth"], info["maxHeight"]) == (4000, 1000, 1000)
        base = f"/iiif/3/{identifier}"
        for path, size in (
            ("full/max", (1000, 500)),
            ("full/^max", (1000, 500)),
            ("full/1000,", (1000, 500)),
            ("0,0,2048,2000/512,500", (512, 500)),
            ("2048,0,1952,2000/488,500", (488, 500)),
            ("0,0,400,400/max", (100, 100)),
        ):
            assert size_of(bounded.get(f"{base}/{path}/0/default.jpg").body)[1] == size
        for path in ("full/1001,", "0,0,512,512/512,", "0,0,400,400/101,", "0,0,10,10/^300,", "pct:0,0,50,50/501,"):
            bounded.get(f"{base}/{path}/0/default.jpg", status=400)

    @pytest.mark.parametrize("version", [2, 3])
    def test_viewers_are_told_of_sizes_and_of_no_tiles(self, stock, version):
        """Told of tiles of some scales, or of sizes by width, they ask for tiles of the full size."""
        identifier = stock.put_image(3001, 900)
        bounded, base = app(stock, public_width=751), f"/iiif/{version}/{identifier}"
        answer = bounded.get(f"{base}/info.json")
        profile = f"http://iiif.io/api/image/{version}/level0.json"
        told = answer.json["profile"]
        assert "tiles" not in answer.json
        assert (told[0] if version == 2 else told) == (profile if version == 2 else "level0")
        assert "size" not in str(told[1]["supports"] if version == 2 else answer.json["extraFeatures"])
        assert f'<{profile}>;rel="profile"' in answer.headers["Link"]
        assert [size["width"] for size in answer.json["sizes"]] == [116, 140, 440, 751]
        for size in answer.json["sizes"]:
            path = f"{base}/full/{size['width']},{size['height'] if version == 3 else ''}/0/default.jpg"
            image = bounded.get(path)
            assert size_of(image.body)[1] == (size["width"], size["height"])
            assert f'<{profile}>;rel="profile"' in image.headers["Link"]
        opener = signed(KEY, identifier, LATER).text
        assert bounded.get(f"/iiif/3/{opener}/info.json").json["profile"] == "level2"
        assert app(stock, public_width=3001).get(f"/iiif/3/{identifier}/info.json").json["tiles"]

    def test_the_original_and_the_older_form_are_no_way_around(self, stock):
        identifier = stock.put_image(4000, 2000)
        bounded = app(stock, public_width=1000)
        bounded.get(f"/binary/{identifier}", status=403)
        bounded.head(f"/binary/{identifier}.jpg", status=403)
        bounded.get(f"/binary/{identifier}/full/max/0/default.jpg", status=403)
        bounded.get(f"/binary/{identifier}/full/!800,600/0/default.jpg", status=200)
        text = stock.put(b"text", url="http://source.example/text", mime="text/plain")
        bounded.get(f"/binary/{text}", status=200)
        small = stock.put_image(100, 50, url="http://source.example/small.jpg")
        bounded.get(f"/binary/{small}", status=200)
        assert size_of(bounded.get(f"/iiif/3/{small}/full/^200,/0/default.jpg").body)[1] == (200, 100)


class TestWatermark:
    def marked(self, stock):
        return app(stock, marks={"shop": Mark(RED)})

    def corner(self, data):
        image = opened(data).convert("RGB")
        wide, high = image.size
        red, green, blue = image.getpixel((wide - wide // 40 - 4, high - high // 40 - 4))
        return red > 200 and green < 60 and blue < 60

    def test_it_is_on_every_rendition_of_its_context(self, stock):
        data = saved(Image.new("RGB", (800, 600), (0, 0, 255)), "PNG")
        fields = {"mime": "image/png", "width": 800, "height": 600, "pages": 1}
        shop = stock.put(data, context="shop", boxes={(440, 330): b"\xff\xd8unmarked"}, **fields)
        free = stock.put(data, context="free", **fields)
        marked = self.marked(stock)
        for path in ("full/max/0/default.jpg", "full/440,/0/default.jpg", "9,9,300,200/max/90/default.png"):
            assert self.corner(marked.get(f"/iiif/3/{shop}/{path}").body), path
            assert not self.corner(marked.get(f"/iiif/3/{free}/{path}").body), path
        assert opened(marked.get(f"/iiif/3/{shop}/full/max/0/gray.jpg").body).mode == "L"
        marked.get(f"/binary/{shop}", status=403)
        marked.get(f"/binary/{shop}/full/440,/0/default.jpg", status=403)

    def test_a_signature_lifts_it_and_the_tags_differ(self, stock):
        shop, marked = stock.put_image(800, 600, context="shop"), self.marked(stock)
        opener = signed(KEY, shop, LATER).text
        plain = marked.get(f"/iiif/3/{opener}/full/300,/0/default.jpg")
        shown = marked.get(f"/iiif/3/{shop}/full/300,/0/default.jpg")
        assert plain.headers["ETag"] != shown.headers["ETag"]
        assert plain.body != shown.body

    def test_a_file_that_is_no_image(self, tmp_path):
        (tmp_path / "mark.png").write_bytes(b"no image")
        with pytest.raises(ValueError, match="no image"):
            Mark.of(tmp_path / "mark.png")
