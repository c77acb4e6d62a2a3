import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.fetch.filename import clean, filename

URL = "http://a.example/d/from%20the%20url.csv?x=/y.txt"


@pytest.mark.parametrize(
    "disposition, name",
    [
        (None, "from the url.csv"),
        ("", "from the url.csv"),
        ("inline", "from the url.csv"),
        ("attachment; filename=plain.csv", "plain.csv"),
        ('attachment; filename="with space; and more.csv"', "with space; and more.csv"),
        (r'attachment; filename="a \"quoted\" \\ name.csv"', "name.csv"),
        ("attachment; FileName = spaced.csv ; size=3", "spaced.csv"),
        ('filename="bare.csv"', "bare.csv"),
        ("attachment filename=nosemicolon.csv", "nosemicolon.csv"),
        ("attachment; filename*=UTF-8''na%C3%AFve%20%E2%82%AC.csv", "naïve €.csv"),
        ("attachment; filename=\"old.csv\"; filename*=utf-8'en'new.csv", "new.csv"),
        ("attachment; filename*=iso-8859-1''caf%E9.csv; filename=old.csv", "café.csv"),
        ("attachment; filename*=UTF-8''%FF.csv; filename=old.csv", "old.csv"),
        ("attachment; filename*=koi8-r''%C1.csv; filename=old.csv", "old.csv"),
        ("attachment; filename*=new.csv; filename=old.csv", "old.csv"),
        ('attachment; filename="caf\xc3\xa9.csv"', "café.csv"),
        ('attachment; filename="caf\xe9.csv"', "café.csv"),
        ('attachment; filename="100%25.csv"', "100%25.csv"),
        ('attachment; filename="../../etc/passwd"', "passwd"),
        (r'attachment; filename="C:\dir\file.csv"', "file.csv"),
        ("attachment; filename*=UTF-8''..%2F..%2F.bashrc", "bashrc"),
        ("attachment; filename*=UTF-8''a%0D%0ASet-Cookie:%20x", "aSet-Cookie: x"),
        ("attachment; filename*=UTF-8''%E2%80%AEgpj.exe", "gpj.exe"),
        ('attachment; filename="..."', "from the url.csv"),
        ('attachment; filename="/"', "from the url.csv"),
        ("attachment; xfilename=x.csv", "from the url.csv"),
        ("attachment; filename=" + '"' * 60_000, "from the url.csv"),
    ],
)
def test_the_header_names_the_file(disposition, name):
    assert filename(disposition, URL) == name


@pytest.mark.parametrize(
    "url, name",
    [
        ("http://a.example", "resource"),
        ("http://a.example/d/", "resource"),
        ("http://a.example/..", "resource"),
        ("http://a.example/%2e%2e%2fx.csv", "x.csv"),
        ("http://a.example/%252e.csv", "%2e.csv"),
        ("http://a.example/caf%E9.csv", "café.csv"),
        ("http://a.example/caf%C3%A9.csv", "café.csv"),
        ("http://a.example/cafe%CC%81.csv", "café.csv"),
        ("http://a.example/a.csv;jsessionid=1?b.txt", "a.csv"),
        ("http://a.example?x=/b.txt", "resource"),
        ("http://a.example/a%00b%0a.csv", "ab.csv"),
        ("http://a.example/.htaccess", "htaccess"),
    ],
)
def test_else_the_url_does(url, name):
    assert filename(None, url) == name


def test_long_names_keep_their_extension_and_whole_characters():
    assert clean("é" * 300 + ".tiff") == "é" * 125 + ".tiff"
    assert clean("x" * 300) == "x" * 255


@given(st.text(max_size=400))
def test_clean_names_can_be_put_anywhere(text):
    name = clean(text)
    assert len(name.encode()) <= 255
    assert not set(name) & set("/\\\0\r\n")
    assert not name.startswith(".")
    assert clean(name) == name
