import pytest

from app.options import Options
from imaging.request import parse
from storage.schema import SCALED
from tests.app_stock import Stock, jpeg, size_of


@pytest.fixture
def stock(tmp_path):
    return Stock(tmp_path)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ("!60,60", (60, 40)),
        ("%2160%2C60", (60, 40)),
        ("!800,600", (120, 80)),  # never enlarged
        ("60,", (60, 40)),
        (",20", (30, 20)),
        ("30,30", (30, 30)),
        ("pct:50", (60, 40)),
        ("max", (120, 80)),
        ("full", (120, 80)),
    ],
)
def test_sizes(stock, size, expected):
    app, reference_id = stock.app(), stock.put_image(120, 80)
    for path in (f"full/{size}/default.jpg", f"full/{size}/0/default.jpg"):
        answer = app.get(f"/binary/{reference_id}/{path}")
        assert size_of(answer.body) == ("JPEG", expected)
        assert answer.content_type == "image/jpeg"
        assert answer.headers["Access-Control-Allow-Origin"] == "*"


MALFORMED = ["", "-1,", "!60", "60", "^max", "a,b", "max,", ",", "!,", "!6%D9%A3,6", "60%2C60%2C60", "9" * 1900]
IMPOSSIBLE = ["121,", ",81", "121,80", "!0,60", "0,", "pct:0", "pct:101"]
HUGE = [f"{2**31},", f"{2**63},1", f"!{10**100},1", f"pct:{10**100}"]


@pytest.mark.parametrize("size", [*MALFORMED, *IMPOSSIBLE, *HUGE])
def test_bad_sizes_get_400_with_the_field(stock, size):
    app, reference_id = stock.app(), stock.put_image(120, 80)
    answer = app.get(f"/binary/{reference_id}/full/{size}/0/default.jpg", status=400)
    assert answer.json["field"] == "size"
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert answer.content_type == "application/problem+json"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("square/60,/0/default.jpg", 501),
        ("0,0,10,10/60,/0/default.jpg", 501),
        ("pct:0,0,50.5,50/60,/0/default.jpg", 501),
        ("full/60,/90/default.jpg", 501),
        ("full/60,/!0/default.jpg", 501),
        ("full/60,/22.5/default.jpg", 501),
        ("full/60,/0/gray.jpg", 501),
        ("full/60,/0/default.png", 501),
        ("full/60,/0/default.webp", 501),
        ("everything/60,/0/default.jpg", 400),
        ("0,0,10/60,/0/default.jpg", 400),
        (f"0,0,{10**100},1/60,/0/default.jpg", 400),
        ("full/60,/361/default.jpg", 400),
        ("full/60,/-90/default.jpg", 400),
        ("full/60,/0/sepia.jpg", 400),
        ("full/60,/0/default.exe", 400),
        ("full/60,/0/default", 400),
        ("full/60,/0/default.jpg/more", 404),
        ("full/60,/0", 404),
        ("full", 404),
    ],
)
def test_what_else_iiif_knows_is_501_and_the_rest_400(stock, path, status):
    stock.app().get(f"/binary/{stock.put_image()}/{path}", status=status)


def test_the_boxes_of_ingest_are_given_as_they_are(stock):
    prepared = jpeg(116, 77, (1, 2, 3))
    app, reference_id = stock.app(), stock.put_image(120, 80, boxes={(116, 87): prepared})
    for size in ("!116,87", "116,", "116,77", "!116,77"):  # one canonical request
        assert app.get(f"/binary/{reference_id}/full/{size}/0/default.jpg").body == prepared, size
        assert app.get(f"/binary/{reference_id}/full/{size}/default.jpg").body == prepared, size
    for size in ("116,76", "115,", "max", "!140,105"):
        assert app.get(f"/binary/{reference_id}/full/{size}/0/default.jpg").body != prepared, size


def test_a_damaged_box_is_rendered_anew(stock):
    app, reference_id = stock.app(), stock.put_image(120, 80, boxes={(116, 87): jpeg(116, 77, (1, 2, 3))})
    original = stock.references.find(reference_id)[1]
    held = stock.store._data[SCALED[116, 87].name][(original.original_id, original.attempt)]
    held.set((), held.rows[()] | {"data": b"\xff\xd8 not what was stored"})
    answer = app.get(f"/binary/{reference_id}/full/!116,87/0/default.jpg")
    assert size_of(answer.body) == ("JPEG", (116, 77))
    assert "magazin_scaled_damaged_total 1.0" in app.get("/metrics").text


def test_conditions_are_met_before_anything_is_read_or_decoded(stock):
    app, reference_id = stock.app(), stock.put_image(120, 80)
    path = f"/binary/{reference_id}/full/!60,60/0/default.jpg"
    answer = app.get(path)
    etag = answer.headers["ETag"]
    assert etag.startswith('"') and answer.headers["Cache-Control"] == "public, max-age=3600"
    assert app.get(f"/binary/{reference_id}/full/60,/0/default.jpg").headers["ETag"] == etag  # one canonical size
    assert app.get(f"/binary/{reference_id}/full/59,/0/default.jpg").headers["ETag"] != etag
    stock.blobs.erase(*_key(stock, reference_id))
    order = parse(2, "full", "60,", "0", "default.jpg").resolve(120, 80, stock.limits.bounds(120, 80))
    stock.cache.evict(stock.library().renditions.key_of(stock.references.find(reference_id)[1].checksum, order, 1))
    for headers in ({"If-None-Match": etag}, {"If-Modified-Since": answer.headers["Last-Modified"]}):
        unchanged = app.get(path, headers=headers)
        assert (unchanged.status_int, unchanged.body, unchanged.headers["ETag"]) == (304, b"", etag)
    app.get(path, status=500)  # the bytes really are gone


def _key(stock, reference_id):
    original = stock.references.find(reference_id)[1]
    return original.original_id, original.attempt


def test_the_tag_knows_how_it_was_encoded(stock):
    reference_id = stock.put_image(120, 80)
    path = f"/binary/{reference_id}/full/!60,60/0/default.jpg"
    before = stock.app().get(path).headers["ETag"]
    stock.encoding = type(stock.encoding)(quality=40)
    assert stock.app().get(path).headers["ETag"] != before


def test_head(stock):
    app, reference_id = stock.app(), stock.put_image(120, 80)
    path = f"/binary/{reference_id}/full/!60,60/0/default.jpg"
    head, get = app.head(path), app.get(path)
    assert head.body == b""
    for name in ("Content-Length", "Content-Type", "ETag", "Last-Modified"):
        assert head.headers[name] == get.headers[name]


def test_no_images_of_what_is_none(stock):
    app, reference_id = stock.app(), stock.put(b"text", mime="text/plain")
    answer = app.get(f"/binary/{reference_id}/full/!60,60/0/default.jpg", status=404)
    assert answer.headers["Cache-Control"] == "public, max-age=60"
    app.get("/binary/unknown/full/!60,60/0/default.jpg", status=404)
    app.get("/binary/a_b/full/!60,60/0/default.jpg", status=400)
    waiting = stock.attach("http://source.example/later")[0].reference_id
    answer = app.get(f"/binary/{waiting}/full/!60,60/0/default.jpg", status=503)
    assert answer.headers["Cache-Control"] == "no-store" and "Retry-After" in answer.headers


def test_broken_bytes_are_an_error_and_no_grey_picture(stock):
    data = jpeg(1200, 800)
    reference_id = stock.put(data[: len(data) // 2], mime="image/jpeg", width=1200, height=800)
    answer = stock.app().get(f"/binary/{reference_id}/full/!60,60/0/default.jpg", status=500)
    assert answer.content_type == "application/problem+json"
    assert answer.headers["Cache-Control"] == "no-store"


def test_an_age_of_zero(stock):
    answer = stock.app(Options(max_age=0)).get(f"/binary/{stock.put_image()}/full/!60,60/0/default.jpg")
    assert answer.headers["Cache-Control"] == "public, max-age=0"
