import re
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.disposition import clean, disposition

VISIBLE_ASCII = re.compile(r"[\x20-\x7e]+")


@pytest.mark.parametrize(
    ("name", "shown", "fallback"),
    [
        ("photo.jpg", "photo.jpg", "photo.jpg"),
        ("Übergrößen träge.jpg", "Übergrößen träge.jpg", "Ubergro_en trage.jpg"),
        ("图书馆.tif", "图书馆.tif", "___.tif"),
        ("a'b(c)*.txt", "a'b(c)*.txt", "a'b(c)*.txt"),
        ('say "x" 50%20.txt', 'say "x" 50%20.txt', "say _x_ 50_20.txt"),
        ("../../etc/passwd", "_.._etc_passwd", "_.._etc_passwd"),
        ("C:\\boot.ini", "C:_boot.ini", "C:_boot.ini"),
        (".htaccess", "htaccess", "htaccess"),
        ("a\r\nSet-Cookie: x=1.txt", "aSet-Cookie: x=1.txt", "aSet-Cookie: x=1.txt"),
        ("evil\u202egnp.exe", "evilgnp.exe", "evilgnp.exe"),
        ("half \ud83d.txt", "half .txt", "half .txt"),
        ("", "resource", "resource"),
        (None, "resource", "resource"),
        ("...", "resource", "resource"),
    ],
)
def test_a_name_in_both_forms(name, shown, fallback):
    header = disposition("attachment", name)
    assert header.startswith(f'attachment; filename="{fallback}"; ')
    assert unquote(header.partition("filename*=UTF-8''")[2]) == shown


def test_a_long_name_keeps_its_extension():
    assert clean("x" * 500 + ".jpeg") == "x" * 175 + ".jpeg"
    assert len(clean("x." + "y" * 500)) == 180


@given(st.text(max_size=300))
def test_no_name_breaks_the_header(name):
    header = disposition("inline", name)
    assert VISIBLE_ASCII.fullmatch(header)
    assert header.count('"') == 2
    assert "/" not in header.partition(";")[2].replace("UTF-8''", "")
    assert len(header) < 3000
