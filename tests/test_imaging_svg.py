"""SVG: hostile drawings do no harm, and the others are drawn."""

import base64
import io
import re
import socket
import struct
import zlib
from contextlib import suppress

import pytest
from PIL import Image

from imaging.drawing import drawn
from imaging.errors import BrokenImage, ImageError, NoSuchPage, NotAnImage, TookTooLong, TooLargeImage
from imaging.limits import Limits
from imaging.picture import inspect
from imaging.svg import LARGEST, Drawing, begins, cleaned
from tests.imaging_files import jpeg, opened, photo, saved

DRAWN = Limits(svg=True)
NAMES = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
SMALL = saved(Image.new("RGB", (4, 4), (0, 0, 255)), "PNG")


def svg(inside="", attributes='width="40" height="20"', before=""):
    return f"{before}<svg {NAMES} {attributes}>{inside}</svg>".encode()


def clean(data):
    return cleaned(data, lambda image: inspect(io.BytesIO(image), Limits())).data.decode()


def pixel(data, x, y, width=400, height=200):
    return opened(jpeg(io.BytesIO(data), width, height, DRAWN)).convert("RGB").getpixel((x, y))


def uri(data, kind="png"):
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


RED = '<rect width="20" height="20" fill="red"/>'


class TestDrawing:
    def test_it_is_an_image_of_a_fixed_size_on_the_background(self):
        picture = inspect(io.BytesIO(svg(RED)), DRAWN)
        assert (picture.format, picture.mime, picture.width, picture.height) == ("svg", "image/svg+xml", 2000, 1000)
        assert pixel(svg(RED), 100, 100) == pytest.approx((255, 0, 0), abs=3)
        assert pixel(svg(RED), 300, 100) == (255, 255, 255)
        with pytest.raises(NoSuchPage):
            inspect(io.BytesIO(svg(RED)), DRAWN, page=2)

    @pytest.mark.parametrize("limits", [Limits(), Limits(svg=False)])
    def test_only_where_it_is_switched_on(self, limits):
        with pytest.raises(NotAnImage):
            inspect(io.BytesIO(svg(RED)), limits)

    @pytest.mark.parametrize(
        ("attributes", "size"),
        [
            ('width="40" height="20"', (2000, 1000)),
            ('width="4e1px" height="20.0"', (2000, 1000)),
            ('width="1in" height="96"', (2000, 2000)),
            ('width="10mm" height="2cm"', (1000, 2000)),
            ('viewBox="5 5 30 60"', (1000, 2000)),
            ('width="100%" height="100%" viewBox="0,0,30,60"', (1000, 2000)),
            ('width="10" viewBox="0 0 30 60"', (1000, 2000)),
            ('height="10" viewBox="0 0 30 60"', (1000, 2000)),
            ("", (2000, 1000)),
            ('viewBox="0 0 nan inf"', (2000, 1000)),
            ('viewBox="0 0 -1 5"', (2000, 1000)),
            ('width="100000000" height="1"', (2000, 1)),
        ],
    )
    def test_sizes(self, attributes, size):
        made = cleaned(svg(RED, attributes), inspect)
        assert (made.width, made.height) == size

    @pytest.mark.parametrize(
        "attributes", ['width="0" height="5"', 'width="1e80" height="5"', 'width="5" height="0mm"']
    )
    def test_without_an_area(self, attributes):
        with pytest.raises(BrokenImage, match="area"):
            clean(svg(RED, attributes))

    def test_what_draws_is_kept(self):
        inside = (
            '<defs><linearGradient id="g"><stop offset="1" style="stop-color:#0a0"/></linearGradient>'
            '<symbol id="s"><circle cx="30" cy="10" r="9" fill="url(#g)"/></symbol></defs>'
            f"<style>/* x */ .r {{ fill: red }} @media print {{ .r {{ fill: blue }} }}</style>"
            f'<rect class="r" width="10" height="20"/><use xlink:href="#s"/>'
            f'<image x="12" width="6" height="20" preserveAspectRatio="none" href="{uri(SMALL)}"/>'
        )
        for x, colour in ((50, (255, 0, 0)), (300, (0, 170, 0)), (150, (0, 0, 255))):
            assert pixel(svg(inside), x, 100) == pytest.approx(colour, abs=5)

    def test_a_doctype_without_declarations_is_dropped(self):
        before = (
            '<?xml version="1.0"?><!-- a tool --><!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://x.example/d">'
        )
        assert pixel(svg(RED, before=before), 50, 50) == pytest.approx((255, 0, 0), abs=3)
        assert "DOCTYPE" not in clean(svg(RED, before=before))

    def test_renditions_of_other_formats(self):
        assert begins(b"\xef\xbb\xbf  <!-- x --><svg:svg xmlns:svg='http://www.w3.org/2000/svg'/>")
        assert not begins(b"<html><p>svg</p></html>")
        assert not begins(saved(photo(8, 8), "PNG"))


LISTENER = "http://127.0.0.1:{port}"
OUTSIDE = [
    '<image width="9" height="9" href="{url}/a.png"/>',
    '<image width="9" height="9" xlink:href="{url}/a.png"/>',
    '<image width="9" height="9" xlink:href="file:///etc/passwd"/>',
    '<image width="9" height="9" xlink:href="/etc/hostname"/>',
    '<use xlink:href="{url}/a.svg#x"/>',
    '<use href="file:///tmp/a.svg#x"/>',
    '<rect width="9" height="9" fill="url({url}/a.svg#x)"/>',
    '<rect width="9" height="9" fill="url( &quot;{url}/a.svg#x&quot; )"/>',
    '<rect width="9" height="9" fill="u\\72l({url}/a.svg#x)"/>',
    '<rect width="9" height="9" style="fill:url({url}/a.svg#x)"/>',
    '<rect width="9" height="9" style="fill:u\\72 l({url}/a.svg#x)"/>',
    '<rect width="9" height="9" style="fill:image-set(&quot;{url}/a.png&quot; 1x)"/>',
    '<rect width="9" height="9" filter="url({url}/a.svg#x)" mask="URL({url}/b.svg#x)"/>',
    '<style>@import url("{url}/a.css");</style>',
    '<style>@im\\70ort "{url}/a.css";</style>',
    "<style>@font-face {{ font-family: x; src: url({url}/a.woff) }}</style>",
    "<style>rect {{ fill: url({url}/a.svg#x) }}</style>",
    "<style><![CDATA[ rect {{ background: src('{url}/a') }} ]]></style>",
    '<filter id="f"><feImage href="{url}/a.png"/></filter>',
    '<foreignObject width="9" height="9"><iframe xmlns="http://www.w3.org/1999/xhtml" src="{url}/a"/></foreignObject>',
    '<script href="{url}/a.js"/><script>fetch("{url}")</script>',
    '<a xlink:href="{url}/a"><rect width="9" height="9"/></a>',
    '<rect width="9" height="9" onload="fetch(\'{url}\')" ONCLICK="{url}"/>',
    '<set attributeName="href" to="{url}/a"/><animate attributeName="href" values="{url}"/>',
    '<g xml:base="{url}/"><image href="a.png" width="9" height="9"/></g>',
    '<x:include xmlns:x="http://www.w3.org/2001/XInclude" href="{url}/a.xml"/>',
    '<metadata><x xmlns="urn:x" href="{url}"/></metadata><title>{url}</title>',
]


@pytest.mark.parametrize("inside", OUTSIDE)
def test_nothing_outside_is_referred_to(inside):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = LISTENER.format(port=listener.getsockname()[1])
        data = svg(inside.format(url=url) + RED)
        left = clean(data)
        outside = re.sub(r'xmlns:\w+="[^"]*"', "", left)
        assert not re.search(r"127\.0\.0\.1|/etc|file:|import|script|foreignObject|\bon\w+=|base=", outside, re.I), left
        # nor does the renderer ask for it, had it been left
        drawn(Drawing(data.replace(b"<svg ", b'<svg viewBox="0 0 40 20" ', 1), 40, 20))
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


LAUGHS = "".join(f'<!ENTITY a{i + 1} "{f"&a{i};" * 10}">' for i in range(9))
DOCTYPES = [
    f'<!DOCTYPE svg [<!ENTITY a0 "ha">{LAUGHS}]>',
    '<!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
    '<!DOCTYPE svg [<!ENTITY % x SYSTEM "http://127.0.0.1:9/x"> %x;]>',
    '<!DOCTYPE svg [<!ENTITY x "quadratic">]>',
]


@pytest.mark.parametrize("doctype", DOCTYPES)
def test_entities_are_refused(doctype):
    with pytest.raises(BrokenImage, match="declarations"):
        inspect(io.BytesIO(svg("<text>&x;</text>", before=doctype)), DRAWN)


def bomb(side):
    """A PNG of a few bytes that says it has this many pixels each way."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(99))) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("inside", "error"),
    [
        (f'<image width="9" height="9" href="{uri(bomb(30_000))}"/>', TooLargeImage),
        (f'<image width="9" height="9" href="{uri(b"no image")}"/>', NotAnImage),
        (f'<image width="9" height="9" href="{uri(svg(RED))}"/>', NotAnImage),
        ('<image width="9" height="9" href="data:image/png;base64,=x="/>', BrokenImage),
        ("<g>" * 200 + "</g>" * 200, TooLargeImage),
        ("<g/>" * 60_000, TooLargeImage),
        ("<g>" * 200_000 + "</g>" * 200_000, TooLargeImage),
        ("<g>", BrokenImage),
        ("\x00", BrokenImage),
    ],
)
def test_too_much_and_not_enough(inside, error):
    with pytest.raises(error):
        inspect(io.BytesIO(svg(inside)), DRAWN)


def test_an_image_of_another_kind_is_left_out():
    for href in (f"data:image/svg+xml;base64,{base64.b64encode(svg(RED)).decode()}", "data:text/html,x", "data:,"):
        assert "href" not in clean(svg(f'<image width="9" height="9" href="{href}"/>'))


def test_its_bytes_are_bounded_before_they_are_read():
    with pytest.raises(TooLargeImage, match="bytes"):
        inspect(io.BytesIO(svg("<!--" + " " * LARGEST + "-->")), DRAWN)


@pytest.mark.parametrize(
    "data",
    [
        b"<svg",
        b"<svg></svg>",
        b"<html><svg xmlns='http://www.w3.org/2000/svg'/></html>",
        b"<svg \xff/>",
        b"<svg/><svg/>",
    ],
)
def test_what_is_no_svg(data):
    with pytest.raises(ImageError):
        inspect(io.BytesIO(data), DRAWN)


def test_a_bomb_of_use_ends_in_time():
    levels = "".join(f'<g id="u{i + 1}">{f"""<use xlink:href="#u{i}"/>""" * 10}</g>' for i in range(12))
    data = svg(f'<defs><rect id="u0" width="1" height="1"/>{levels}</defs><use xlink:href="#u12"/>')
    with pytest.raises((BrokenImage, TookTooLong)):
        drawn(cleaned(data, inspect), 1.5)


def test_a_loop_of_use_ends():
    data = svg(f'<g id="a"><use xlink:href="#b"/></g><g id="b"><use xlink:href="#a"/></g>{RED}')
    with suppress(BrokenImage):  # which is as good
        assert pixel(data, 50, 50) == pytest.approx((255, 0, 0), abs=3)


def test_time_is_bounded():
    slow = "".join(f'<feGaussianBlur stdDeviation="{9 + i}"/><feTurbulence numOctaves="9"/>' for i in range(200))
    data = svg(f'<filter id="f" x="0" y="0" width="1" height="1">{slow}</filter><g filter="url(#f)">{RED}</g>')
    with pytest.raises(TookTooLong, match=r"longer than 1\.5 s"):
        drawn(cleaned(data, inspect), 1.5)


def test_a_size_in_the_style_of_the_whole_does_not_count():
    data = svg(RED, 'width="40" height="20" style="WIDTH:100%; height:9999px; opacity:1"')
    assert 'style="opacity:1;"' in clean(data)
    assert pixel(data, 50, 50) == pytest.approx((255, 0, 0), abs=3)


def test_what_says_another_size_in_its_styles_is_refused():
    with pytest.raises(BrokenImage, match="of another size"):
        drawn(cleaned(svg(f"<style>svg {{ width: 30000px; height: 30000px }}</style>{RED}"), inspect))
