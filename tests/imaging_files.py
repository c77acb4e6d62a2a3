"""Image files made on the spot, sound and otherwise, and readers that misbehave."""

import io
import struct
import zlib

import pyvips
from PIL import Image, ImageChops, ImageStat

from imaging.encoding import STANDARD
from imaging.picture import inspect
from imaging.region import Rect
from imaging.render import render
from imaging.request import Order, Quality
from imaging.rotation import Rotation


def saved(image, kind, **options):
    """The bytes of a Pillow image in a format of Pillow's."""
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def jpeg(reader, width, height, limits, encoding=STANDARD):
    """The picture as a JPEG of exactly these pixels, whatever its own."""
    picture = inspect(reader, limits)
    whole = Rect(0, 0, picture.width, picture.height)
    order = Order(whole, (width, height), Rotation(), Quality.DEFAULT, "jpg", True, "", "")
    return render(reader, order, limits, encoding)


def opened(data):
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


def photo(width, height):
    """Smooth slopes, edges and fine detail, a different one in each channel."""
    red = Image.linear_gradient("L").resize((width, height), Image.Resampling.BICUBIC)
    green = Image.radial_gradient("L").resize((width, height), Image.Resampling.BICUBIC)
    blue = Image.effect_mandelbrot((width, height), (-2, -1.2, 1, 1.2), 60)
    return Image.merge("RGB", (red, green, blue))


def distance(one, other):
    """How far two images are apart: the mean over all pixels and channels, in levels of 0 to 255."""
    assert (one.size, one.mode) == (other.size, other.mode)
    means = ImageStat.Stat(ImageChops.difference(one, other)).mean
    return sum(means) / len(means)


def quarters(width=64, height=32):
    """Four colours in the corners: red, green, blue, white, row by row."""
    image = Image.new("RGB", (width, height))
    for index, colour in enumerate(((255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255))):
        left, top = index % 2 * width // 2, index // 2 * height // 2
        image.paste(colour, (left, top, left + width // 2, top + height // 2))
    return image


def corners(image):
    """The names of the four corners' colours, row by row."""
    names = {(1, 0, 0): "r", (0, 1, 0): "g", (0, 0, 1): "b", (1, 1, 1): "w"}
    wide, high = image.size
    points = ((2, 2), (wide - 3, 2), (2, high - 3), (wide - 3, high - 3))
    return "".join(
        names[tuple(round(level / 255) for level in image.convert("RGB").getpixel(point))] for point in points
    )


def plain(bands, value, size=16, kind="uchar", interpretation="srgb"):
    """A libvips image of one colour."""
    return (pyvips.Image.black(size, size, bands=bands) + value).cast(kind).copy(interpretation=interpretation)


def png_header(width, height, interlaced=False):
    """A PNG whose header is right and whose pixels are missing."""
    parts = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, interlaced)), (b"IDAT", zlib.compress(b"\0"))]
    parts.append((b"IEND", b""))
    chunks = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def jpeg_claiming(width, height, **options):
    """A small JPEG whose frame header states other dimensions."""
    data = bytearray(saved(Image.new("RGB", (64, 64)), "JPEG", **options))
    frame = max(data.find(b"\xff\xc0"), data.find(b"\xff\xc2"))
    data[frame + 5 : frame + 9] = struct.pack(">HH", height, width)
    return bytes(data)


def avif_claiming(width, height):
    """A small AVIF whose image property states other dimensions."""
    data = bytearray(pyvips.Image.black(64, 64).heifsave_buffer(compression="av1", effort=0))
    at = data.index(b"ispe") + 8
    data[at : at + 8] = struct.pack(">II", width, height)
    return bytes(data)


def gif_frame(width=8, height=8):
    return b"\x21\xf9\x04\0\1\0\0\0" + b"\x2c" + struct.pack("<HHHHB", 0, 0, width, height, 0) + b"\x02\x02\x84\x51\0"


def gif_of(frames, width=8, height=8):
    """Frames of one colour, as small as GIF allows."""
    header = b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + b"\xc8\x14\x14\xff\xff\xff"
    return header + gif_frame(width, height) * frames + b"\x3b"


def tiff(entries, data=b"", *, pages=1, big=False, order="<"):
    """A TIFF of these entries {tag: (type, value or values)} in each of its directories, which come first.

    Offsets in tag 273 and 324 are relative to ``data``. Rationals (type 5) are two values each.
    """
    letters = {3: "H", 4: "I", 5: "I"}
    head, count, entry, following, room = (16, "Q", "HHQ", "Q", 8) if big else (8, "H", "HHI", "I", 4)
    size = struct.calcsize(order + count) + len(entries) * (20 if big else 12) + struct.calcsize(order + following)
    lists = {tag: value if isinstance(value, tuple) else (value,) for tag, (_, value) in entries.items()}
    lengths = {tag: struct.calcsize(f"{order}{len(lists[tag])}{letters[entries[tag][0]]}") for tag in entries}
    arrays_at = head + pages * size
    data_at = arrays_at + sum(length for length in lengths.values() if length > room)
    directory, arrays = struct.pack(order + count, len(entries)), b""
    for tag, (kind, _) in sorted(entries.items()):
        shift = data_at if tag in (273, 324) else 0
        values = lists[tag]
        packed = struct.pack(f"{order}{len(values)}{letters[kind]}", *(one + shift for one in values))
        directory += struct.pack(order + entry, tag, kind, len(values) // (2 if kind == 5 else 1))
        if len(packed) > room:
            packed, arrays = struct.pack(order + ("Q" if big else "I"), arrays_at + len(arrays)), arrays + packed
        directory += packed.ljust(room, b"\0")
    directories = b"".join(
        directory + struct.pack(order + following, head + page * size if page < pages else 0)
        for page in range(1, pages + 1)
    )
    start = (b"II" if order == "<" else b"MM") + struct.pack(order + "H", 43 if big else 42)
    start += struct.pack(order + "HHQ", 8, 0, 16) if big else struct.pack(order + "I", 8)
    return start + directories + arrays + data


GRAY = {258: (3, 8), 259: (3, 1), 262: (3, 1), 277: (3, 1)}


def gray_tiff(width, height, data, **options):
    """One strip of gray."""
    size = {256: (4, width), 257: (4, height), 273: (4, 0), 278: (4, height), 279: (4, len(data))}
    return tiff({**GRAY, **size}, data, **options)


def tiled_tiff(width, height, side, compress=None):
    """Gray tiles, all with the same noise, behind their directory."""
    tile = bytes(i * i * 7 % 251 for i in range(side * side))
    count = -(-width // side) * -(-height // side)
    packed = compress(tile) if compress else tile
    size = {256: (4, width), 257: (4, height), 322: (3, side), 323: (3, side)}
    where = {324: (4, tuple(i * len(packed) for i in range(count))), 325: (4, (len(packed),) * count)}
    return tiff({**GRAY, 259: (3, 8 if compress else 1), **size, **where}, packed * count)


class Counting(io.BytesIO):
    """Counts reads and bytes."""

    def __init__(self, data):
        super().__init__(data)
        self.reads = self.bytes_read = 0

    def read(self, size=-1):
        data = super().read(size)
        self.reads += 1
        self.bytes_read += len(data)
        return data


class StorageFailed(Exception):
    """What a store raises."""


class Failing(io.BytesIO):
    """Can't read beyond an offset."""

    def __init__(self, data, sound):
        super().__init__(data)
        self._sound = sound

    def read(self, size=-1):
        data = super().read(size)
        if self.tell() > self._sound:
            raise StorageFailed
        return data
