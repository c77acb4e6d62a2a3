from pathlib import Path

import pytest

from app.options import Options
from storage.directory import DirectoryBlobs
from tests.app_stock import PART, Stock

DATA = bytes(range(256)) * 20  # 5,120 bytes


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "blobs"


@pytest.fixture
def stock(tmp_path, folder):
    return Stock(tmp_path, blobs=DirectoryBlobs(folder, part_size=PART))


def path_of(stock, reference_id):
    return stock.blobs.path(stock.references.find(reference_id)[1].blob)


def wrapped(app, path, **environ):
    """The answer of the app to a server that has a file wrapper: status, headers, and what is wrapped, if it is."""
    seen, files = {}, []

    def wrapper(file, size):
        files.append(file)
        return iter(lambda: file.read(size), b"")

    def start(status, headers):
        seen.update(status=status, headers={name.lower(): value for name, value in headers})

    request = app.RequestClass.blank(path).environ | {"wsgi.file_wrapper": wrapper} | environ
    body = app.app(request, start)
    return seen["status"], seen["headers"], files, body


def test_by_the_kernel_a_plain_file_is_handed_to_the_server(stock):
    app, reference_id = stock.app(Options(sendfile=True)), stock.put(DATA)
    status, headers, [file], _ = wrapped(app, f"/binary/{reference_id}")
    assert (status, headers["content-length"]) == ("200 OK", "5120")
    assert (file.fileno() > 0, file.tell(), file.read()) == (True, 0, DATA)
    assert headers["content-security-policy"] == "sandbox"
    status, headers, [file], _ = wrapped(app, f"/binary/{reference_id}", HTTP_RANGE="bytes=5000-5009")
    assert (status, headers["content-length"], headers["content-range"]) == (
        "206 Partial Content",
        "10",
        "bytes 5000-5009/5120",
    )
    assert file.read(10) == DATA[5000:5010]


def test_by_the_kernel_only_what_has_its_length(stock):
    app, reference_id = stock.app(Options(sendfile=True)), stock.put(DATA)
    path = path_of(stock, reference_id)
    with path.open("ab") as file:
        file.write(b"more")
    *_, files, body = wrapped(app, f"/binary/{reference_id}")
    assert files == [] and b"".join(body) == DATA
    path.unlink()
    app.get(f"/binary/{reference_id}", status=500)


def test_without_a_file_wrapper_parts_are_sent(stock):
    app, reference_id = stock.app(Options(sendfile=True)), stock.put(DATA)
    answer = app.get(f"/binary/{reference_id}", headers={"Range": "bytes=1-2"})
    assert answer.body == DATA[1:3]


def test_by_the_proxy_the_file_is_named(stock, folder):
    options = Options(accel_redirect="/_originals/", originals=folder)
    app, reference_id = stock.app(options), stock.put(DATA, mime="text/html")
    answer = app.get(f"/binary/{reference_id}")
    inside = path_of(stock, reference_id).relative_to(folder).as_posix()
    assert answer.headers["X-Accel-Redirect"] == f"/_originals/{inside}"
    assert answer.body == b""
    assert answer.headers["Content-Disposition"].startswith("attachment")
    etag = answer.headers["ETag"]
    ranged = app.get(f"/binary/{reference_id}", headers={"Range": "bytes=10-19", "If-Range": etag})
    assert (ranged.status_int, ranged.body) == (206, DATA[10:20])
    assert "X-Accel-Redirect" not in ranged.headers
    assert app.get(f"/binary/{reference_id}", headers={"If-None-Match": etag}).status_int == 304


def test_a_store_without_files_sends_parts_whatever_is_set(tmp_path):
    stock = Stock(tmp_path)
    reference_id = stock.put(DATA)
    for options in (Options(sendfile=True), Options(accel_redirect="/x/", originals=tmp_path)):
        *_, files, body = wrapped(stock.app(options), f"/binary/{reference_id}")
        assert files == [] and b"".join(body) == DATA


def test_by_default_every_part_is_verified(stock):
    app, reference_id = stock.app(), stock.put(DATA)
    *_, files, body = wrapped(app, f"/binary/{reference_id}")
    assert files == [] and b"".join(body) == DATA


def test_the_sample_for_nginx_keeps_what_it_would_drop(stock):
    """X-Accel-Redirect: nginx 1.22 was seen to keep these four, and to send none of the others."""
    kept = {"content-type", "content-disposition", "accept-ranges", "cache-control", "content-length"}
    answer = stock.app().get(f"/binary/{stock.put(DATA)}")
    sample = (Path(__file__).parent.parent / "etc" / "nginx.conf").read_text()
    for name in {name.lower() for name in answer.headers} - kept - {"access-control-expose-headers"}:
        assert f"$upstream_http_{name.replace('-', '_')};" in sample, name
