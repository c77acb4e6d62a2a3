"""Images in buckets through the IIIF routes."""

import io

import pytest
from PIL import Image

from storage.bucket_tables import tables_of
from tests.app_stock import Stock, jpeg, size_of


@pytest.fixture
def stock(tmp_path):
    return Stock(tmp_path)


@pytest.fixture
def app(stock):
    return stock.app()


@pytest.fixture
def name(app):
    """The identifier of an image of 120 × 80 pixels."""
    return put(app, jpeg(120, 80))


def put(app, data, filename="photo.jpg"):
    return f"files:fs:{app.put(f'/files/fs/{filename}', data, status=201).json['id']}"


@pytest.mark.parametrize("version", [2, 3])
def test_what_can_be_asked_for(app, name, version):
    found = app.get(f"/iiif/{version}/{name}/info.json", status=200)
    assert (found.json["width"], found.json["height"]) == (120, 80)
    where = found.json["id" if version == 3 else "@id"]
    assert where == f"http://127.0.0.1:8000/iiif/{version}/{name}"
    assert found.headers["Access-Control-Allow-Origin"] == "*"
    base = app.get(f"/iiif/{version}/{name}", status=303)
    assert base.headers["Location"].endswith(f"/{name}/info.json")


def test_images(app, name):
    answer = app.get(f"/iiif/3/{name}/full/max/0/default.jpg", status=200)
    assert size_of(answer.body) == ("JPEG", (120, 80))
    assert size_of(app.get(f"/iiif/3/{name}/10,10,60,40/30,/90/gray.png").body) == ("PNG", (20, 30))
    assert size_of(app.get(f"/iiif/2/{name}/full/full/0/default.jpg").body) == ("JPEG", (120, 80))
    app.get(f"/iiif/3/{name}/full/max/0/default.jpg", headers={"If-None-Match": answer.headers["ETag"]}, status=304)


def test_pages(app):
    out = io.BytesIO()
    pages = [Image.new("RGB", (50 + 10 * number, 40), "red") for number in range(3)]
    pages[0].save(out, "TIFF", save_all=True, append_images=pages[1:])
    name = put(app, out.getvalue(), "pages.tif")
    assert size_of(app.get(f"/iiif/3/{name};page=3/full/max/0/default.jpg").body) == ("JPEG", (70, 40))
    app.get(f"/iiif/3/{name};page=4/full/max/0/default.jpg", status=404)


def test_what_is_no_image(app):
    app.get(f"/iiif/3/{put(app, b'no image at all' * 100, 'a.jpg')}/info.json", status=404)
    app.get(f"/iiif/3/{put(app, b'', 'b.jpg')}/full/max/0/default.jpg", status=404)


def test_what_is_not_there(stock, app, name):
    for other in ("files:fs:unknown", "files:nowhere:unknown"):
        app.get(f"/iiif/3/{other}/info.json", status=404)
    for wrong in ("files:fs", "files:FS:x", "files:fs:a:b", "files::x", "file:fs:x", "files:fs:%C3%A4"):
        app.get(f"/iiif/3/{wrong}/info.json", status=400)
    stream = stock.buckets.open("fs").open_upload_stream("a")
    app.get(f"/iiif/3/files:fs:{stream.file_id}/info.json", status=503)
    app.get(f"/iiif/3/{name}/info.json", status=200)
    app.delete("/files/fs/photo.jpg", status=204)
    app.get(f"/iiif/3/{name}/info.json", status=404)
    app.get(f"/iiif/3/{name}/full/max/0/default.jpg", status=404)


def test_an_id_used_again_is_another_image(stock, app):
    bucket = stock.buckets.open("fs")
    for width in (30, 40):
        bucket.upload_from_stream("a", io.BytesIO(jpeg(width, 20)), file_id="same")
        assert app.get("/iiif/3/files:fs:same/info.json").json["width"] == width
        bucket.delete("same", hard=True)


def test_damage_is_an_error_and_never_an_image(stock, app):
    out = io.BytesIO()
    Image.effect_noise((900, 900), 200).convert("RGB").save(out, "JPEG", quality=95)
    name = put(app, out.getvalue())
    app.get(f"/iiif/3/{name}/info.json", status=200)
    file_id = name.rpartition(":")[2]
    table, record = tables_of("fs").chunks, stock.buckets.open("fs").get(file_id)
    held = stock.store._data[table.name][(file_id, record.attempt, 0)]
    held.set((1,), held.rows[(1,)] | {"data": b"z" * len(held.rows[(1,)]["data"])})
    answer = app.get(f"/iiif/3/{name}/full/max/0/default.jpg", status=500)
    assert answer.headers["Content-Type"] == "application/problem+json"
