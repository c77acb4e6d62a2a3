"""The reader of blobs, over a stream of parts that is watched; stores are tested by their contract."""

import io
from collections.abc import Iterator

import pytest

from storage.blobs import Blob, BlobReader, check_range, checksum, verified
from storage.errors import MissingPart, Unavailable, WrongChecksum, WrongLength

DATA = bytes(range(100))
BLOB = Blob("owner", "attempt", 100, 30, "")


class Parts:
    """Yields the parts of DATA; notes what is asked for and handed out; fails at some for a while."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []
        self.given: list[int] = []
        self.failing: set[int] = set()

    def __call__(self, blob: Blob, start: int, stop: int) -> Iterator[bytes]:
        check_range(blob, start, stop)
        self.asked.append((start, stop))
        for part in range(start // blob.part_size, -(-stop // blob.part_size) if start < stop else 0):
            if part in self.failing:
                raise Unavailable(f"part {part}")
            self.given.append(part)
            begin = part * blob.part_size
            yield DATA[max(start, begin) : min(stop, begin + blob.part_size)]


@pytest.fixture
def parts() -> Parts:
    return Parts()


def test_parts_of_a_blob() -> None:
    assert (BLOB.parts, [BLOB.length(part) for part in range(4)]) == (4, [30, 30, 30, 10])
    assert Blob("o", "a", 0, 30, "").parts == 0
    assert Blob("o", "a", 90, 30, "").parts == 3
    assert Blob("o", "a", 90, 30, "").length(2) == 30


def test_reading_on_reads_ahead(parts: Parts) -> None:
    with BlobReader(BLOB, parts) as reader:
        assert b"".join(iter(lambda: reader.read(7), b"")) == DATA
    assert parts.asked == [(0, 30), (30, 100)]
    assert parts.given == [0, 1, 2, 3]


def test_a_seek_reads_one_part(parts: Parts) -> None:
    with BlobReader(BLOB, parts) as reader:
        for position in (95, 31, 33, 65, 5):
            reader.seek(position)
            assert reader.read(2) == DATA[position : position + 2]
    assert parts.asked == [(90, 100), (30, 60), (60, 100), (0, 30)]
    assert parts.given == [3, 1, 2, 0]


def test_nothing_is_asked_for_before_it_is_read(parts: Parts) -> None:
    with BlobReader(BLOB, parts) as reader:
        assert reader.seek(0, io.SEEK_END) == 100
        assert reader.read(5) == b""
        reader.seek(10**12)
        assert reader.read() == b""
        assert reader.read(5) == b""
    assert parts.given == []


def test_an_error_can_be_overcome(parts: Parts) -> None:
    """The position stays, and the next read begins anew."""
    with BlobReader(BLOB, parts) as reader:
        assert reader.read(30) == DATA[:30]
        parts.failing = {2}
        for _ in range(2):
            with pytest.raises(Unavailable):
                reader.read(50)
            assert reader.tell() == 30
        parts.failing = set()
        assert reader.read(50) == DATA[30:80]
        assert reader.read() == DATA[80:]


def test_a_position_that_makes_no_sense_is_refused(parts: Parts) -> None:
    with BlobReader(BLOB, parts) as reader:
        reader.seek(50)
        for offset, whence in ((-1, 0), (-51, 1), (-101, 2), (0, 3)):
            with pytest.raises(ValueError):
                reader.seek(offset, whence)
        assert reader.tell() == 50


def test_a_closed_reader_is_refused(parts: Parts) -> None:
    reader = BlobReader(BLOB, parts)
    reader.close()
    reader.close()
    for act in (reader.read, reader.tell, lambda: reader.seek(0), lambda: reader.readinto(bytearray(1))):
        with pytest.raises(ValueError):
            act()


def test_buffers_of_other_shapes_are_filled(parts: Parts) -> None:
    with BlobReader(BLOB, parts) as reader:
        target = memoryview(bytearray(64)).cast("I")
        assert reader.readinto(target) == 64
        assert target.tobytes() == DATA[:64]


def test_a_checksum_knows_its_place() -> None:
    """The same values in every version: they are kept in stores."""
    assert checksum("owner", "attempt", 0, b"data") == "bdd20d8de9c0ebb9"
    sums = {
        checksum(owner, attempt, part, data)
        for owner in ("owner", "other")
        for attempt in ("attempt", "other")
        for part in (0, 1, 11)
        for data in (b"data", b"datb", b"")
    }
    assert len(sums) == 36
    assert all(len(one) == 16 for one in sums)


def test_verified_parts() -> None:
    data = DATA[90:]
    good = checksum("owner", "attempt", 3, data)
    assert verified(BLOB, 3, data, good) is data
    with pytest.raises(MissingPart, match="blob owner/attempt, part 3: is missing"):
        verified(BLOB, 3, None, good)
    with pytest.raises(WrongLength, match="9 bytes instead of 10"):
        verified(BLOB, 3, data[:9], good)
    with pytest.raises(WrongLength):
        verified(BLOB, 3, b"", good)
    with pytest.raises(WrongChecksum):
        verified(BLOB, 3, data[::-1], good)
    with pytest.raises(WrongChecksum):
        verified(BLOB, 3, data, "")
