"""Few large reads in place of many small ones."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imaging.blocks import AHEAD, BLOCK, KEPT, Blocks
from tests.imaging_files import Counting, Failing, StorageFailed

DATA = bytes(i * 31 % 251 for i in range(10 * BLOCK + 77))


class Stingy(io.BytesIO):
    """Gives at most a thousand bytes at a time, as a raw reader may."""

    def read(self, size=-1):
        return super().read(min(size, 1000))


@given(st.lists(st.tuples(st.integers(0, len(DATA) + 10), st.integers(0, 3 * BLOCK)), max_size=8))
def test_the_bytes_are_the_readers(spans):
    blocks = Blocks(io.BytesIO(DATA))
    for start, count in spans:
        assert blocks.read(start, count) == DATA[start : start + count]


def test_a_reader_that_stands_anywhere_and_gives_little():
    reader = Stingy(DATA)
    reader.seek(5000)
    assert Blocks(reader).read(0, len(DATA)) == DATA
    assert Blocks(reader).read_all() == DATA


def test_small_reads_in_sequence_become_few_large_ones():
    reader = Counting(DATA)
    blocks = Blocks(reader)
    assert b"".join(blocks.read(at, 1000) for at in range(0, len(DATA), 1000)) == DATA
    assert reader.reads <= len(DATA) // (AHEAD * BLOCK) + 6
    assert reader.bytes_read == len(DATA)


def test_jumping_about_reads_single_blocks():
    reader = Counting(DATA)
    blocks = Blocks(reader)
    for at in (7 * BLOCK, 2 * BLOCK, 5 * BLOCK):
        blocks.read(at, 10)
    assert reader.bytes_read == 3 * BLOCK
    for at in (7 * BLOCK + 500, 2 * BLOCK + 500, 5 * BLOCK + 500):
        blocks.read(at, 10)
    assert reader.bytes_read == 3 * BLOCK  # kept


def test_no_more_is_kept_than_stated():
    reader = Counting(bytes(2 * KEPT * BLOCK))
    blocks = Blocks(reader)
    for at in range(0, 2 * KEPT * BLOCK, BLOCK):
        blocks.read(at, 1)
    before = reader.bytes_read
    blocks.read(0, 1)
    assert reader.bytes_read == before + BLOCK


def test_the_readers_error_passes():
    with pytest.raises(StorageFailed):
        Blocks(Failing(DATA, 3 * BLOCK)).read(3 * BLOCK, 1)
