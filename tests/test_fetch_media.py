import io
import zipfile

import pytest
from PIL import Image

from ingest.fetch.media import HEAD, named, sniffed, verdict


def image(kind):
    out = io.BytesIO()
    Image.effect_noise((40, 30), 50).convert("RGB").save(out, kind)
    return out.getvalue()


def archive():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as written:
        written.writestr("a.txt", "a")
    return out.getvalue()


@pytest.mark.parametrize(
    "value, kind",
    [
        ("image/jpeg", "image/jpeg"),
        (" Text/CSV ; charset=utf-8", "text/csv"),
        ("text/csv;charset=x", "text/csv"),
        ("image/png, image/png", "image/png"),
        ("application/vnd.ms-excel.sheet.macroEnabled.12", "application/vnd.ms-excel.sheet.macroenabled.12"),
        ("text", None),
        ("text/", None),
        ("text/csv charset=x", None),
        ("<script>/x", None),
        ("", None),
        (None, None),
    ],
)
def test_the_header_is_cut_at_its_parameters(value, kind):
    assert named(value) == kind


@pytest.mark.parametrize(
    "pillow, kind",
    [
        ("JPEG", "image/jpeg"),
        ("PNG", "image/png"),
        ("GIF", "image/gif"),
        ("TIFF", "image/tiff"),
        ("BMP", "image/bmp"),
        ("WEBP", "image/webp"),
        ("AVIF", "image/avif"),
        ("JPEG2000", "image/jp2"),
        ("PDF", "application/pdf"),
        ("EPS", "application/postscript"),
    ],
)
def test_real_files_are_known_by_their_first_bytes(pillow, kind):
    assert sniffed(image(pillow)) == kind


@pytest.mark.parametrize(
    "head, kind",
    [
        (b"<!DOCTYPE html><p>", "text/html"),
        (b"\n <!-- by hand -->\n<HTML lang=en>", "text/html"),
        (b"\xef\xbb\xbf<html>", "text/html"),
        (b"<html>caf\xe9\x01</html>", "text/html"),
        (b"<?xml version='1.0'?><!DOCTYPE html PUBLIC 'x'>", "application/xhtml+xml"),
        (b"<htmlish>", "text/plain"),
        (b"<b>bold</b>", "text/plain"),
        (b"<svg xmlns='x'>", "image/svg+xml"),
        (b"<?xml version='1.0'?>\n<!-- <html> -->\n<!DOCTYPE svg PUBLIC 'x'>", "image/svg+xml"),
        (b"<?xml version='1.0'?><s:svg>", "image/svg+xml"),
        (b"<?xml version='1.0'?><mets/>", "application/xml"),
        (b"a,b\n1,2\n", "text/plain"),
        (b"BMI,weight\n22,70\n", "text/plain"),  # no bitmap
        (b"ID3,name\n", "text/plain"),  # no MP3
        (b"caf\xe9,th\xe9\n", "text/plain"),
        ("é".encode() * 10_000, "text/plain"),
        (b"a\xff" * HEAD, "text/plain"),
        (b"\xff\xfea\x00b\x00", "text/plain"),
        (b"%PDF-1.7\n", "application/pdf"),
        (b"{\\rtf1", "application/rtf"),
        (b"II\x2b\x00\x08\x00\x00\x00", "image/tiff"),
        (b"\x00\x00\x00\x1cftypheix\x00", "image/heic"),
        (b"\xff\x0a\x00", "image/jxl"),
        (b"glTF\x02\x00\x00\x00", "model/gltf-binary"),
        (b"OggS\x00\x02", "audio/ogg"),
        (b"\x00\x01\x02\x03", None),
        (b"x" * HEAD + b"\x00", "text/plain"),
    ],
)
def test_what_the_bytes_show(head, kind):
    assert sniffed(head) == kind


def test_zip_is_a_container():
    assert sniffed(archive()) == "application/zip"


DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


@pytest.mark.parametrize(
    "declared, received, shown, kind",
    [
        # the bytes against a header that says nothing
        (None, None, "image/jpeg", "image/jpeg"),
        (None, "application/octet-stream", "image/jpeg", "image/jpeg"),
        (None, "binary/octet-stream", "application/pdf", "application/pdf"),
        (None, "text/plain", "image/png", "image/png"),
        # the bytes against a header that is wrong
        (None, "image/jpeg", "image/png", "image/png"),
        (None, "text/html", "image/jpeg", "image/jpeg"),
        (None, "image/jpeg", "text/html", "text/html"),
        (None, "text/csv", "text/html", "text/html"),
        (None, "application/pdf", "application/zip", "application/zip"),
        (None, "image/png", "application/zip", "application/zip"),
        # a header that knows more
        (None, DOCX, "application/zip", DOCX),
        (None, "text/csv", "text/plain", "text/csv"),
        (None, "application/json", "text/plain", "application/json"),
        (None, "text/xml", "application/xml", "text/xml"),
        (None, "image/svg+xml", "application/xml", "image/svg+xml"),
        (None, "image/x-adobe-dng", "image/tiff", "image/x-adobe-dng"),
        (None, "text/plain", "text/html", "text/plain"),
        # bytes that show nothing
        (None, "image/jpeg", None, "image/jpeg"),
        (None, "image/jpeg", "text/plain", "image/jpeg"),
        (None, "text/html", "text/plain", "text/html"),
        (None, None, None, "application/octet-stream"),
        (None, "application/octet-stream", "text/plain", "text/plain"),
        # the caller's hint counts where the header says nothing
        ("text/csv", None, "text/plain", "text/csv"),
        ("text/csv", "application/octet-stream", None, "text/csv"),
        ("text/csv", "text/plain", "text/plain", "text/plain"),
        (DOCX, "application/octet-stream", "application/zip", DOCX),
        ("image/png", "application/octet-stream", "image/jpeg", "image/jpeg"),
        ("image/png", "image/gif", None, "image/gif"),
        ("application/octet-stream", None, None, "application/octet-stream"),
        # one name for each kind
        (None, "image/pjpeg", "image/jpeg", "image/jpeg"),
        (None, "application/x-zip-compressed", "application/zip", "application/zip"),
    ],
)
def test_the_verdict(declared, received, shown, kind):
    assert verdict(declared, received, shown) == kind
