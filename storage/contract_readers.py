"""The contract of blobs, second part: ranges, damage and the file object."""

from __future__ import annotations

import csv
import io
import itertools
import random
import shutil
import zipfile

import pytest

from storage.blobs import Blob, BlobStore
from storage.contract_blobs import PART, SIZES, BlobWriteContract, Harm, noise, stored, whole
from storage.errors import Damaged, ExtraPart, MissingPart, WrongChecksum, WrongLength


class BlobReadContract(BlobWriteContract):
    """The promises of parts, open, verify and path."""

    @pytest.mark.parametrize("size", SIZES)
    def test_ranges(self, blobs: BlobStore, size: int) -> None:
        data = noise(size)
        blob = stored(blobs, data)
        edges = sorted(
            {edge for edge in (0, 1, PART - 1, PART, PART + 1, 2 * PART, size - 1, size) if 0 <= edge <= size}
        )
        for start, stop in itertools.combinations_with_replacement(edges, 2):
            pieces = list(blobs.parts(blob, start, stop))
            assert b"".join(pieces) == data[start:stop]
            assert all(pieces)

    @pytest.mark.parametrize(("start", "stop"), [(-1, 1), (2, 1), (0, 11), (11, 11), (-2, -1)])
    def test_ranges_outside_are_refused(self, blobs: BlobStore, start: int, stop: int) -> None:
        blob = stored(blobs, bytes(10))
        with pytest.raises(ValueError):
            blobs.parts(blob, start, stop)

    @pytest.mark.parametrize(
        ("how", "error"),
        [
            ("flip", WrongChecksum),
            ("drop", MissingPart),
            ("shorten", WrongLength),
            ("swap", WrongChecksum),
        ],
    )
    @pytest.mark.parametrize("part", [0, 2])
    def test_damage_is_never_handed_out(
        self, blobs: BlobStore, harm: Harm, how: str, error: type[Damaged], part: int
    ) -> None:
        data = noise(4 * PART)
        blob = stored(blobs, data)
        if how in ("drop", "shorten"):  # a plain file can lack bytes at its end only
            part += 1
        harm(blob, part, how)
        with pytest.raises(error) as raised:
            whole(blobs, blob)
        assert (raised.value.owner, raised.value.attempt, raised.value.part) == (blob.owner, blob.attempt, part)
        seen = []
        with pytest.raises(error):
            for piece in blobs.parts(blob, 0, blob.size):
                seen.append(piece)
        assert b"".join(seen) == data[: part * PART]
        with pytest.raises(error):
            list(blobs.parts(blob, part * PART + 5, part * PART + 6))
        assert b"".join(blobs.parts(blob, 0, part * PART)) == data[: part * PART]
        with blobs.open(blob) as reader:
            reader.seek(part * PART + 999)
            for _ in range(2):
                with pytest.raises(error):
                    reader.read(1)
            reader.seek(0)
            assert reader.read(part * PART) == data[: part * PART]
            with pytest.raises(error):
                reader.read()
        damages = list(blobs.verify(blob))
        assert {type(damage) for damage in damages} <= {error, MissingPart}
        assert damages[0].part == part
        assert len(damages) == {"flip": 1, "swap": 2}.get(how, len(damages))

    def test_verify_names_every_damage(self, blobs: BlobStore, harm: Harm) -> None:
        blob = stored(blobs, noise(5 * PART))
        harm(blob, 1, "flip")
        harm(blob, 3, "flip")
        assert [(type(damage), damage.part) for damage in blobs.verify(blob)] == [
            (WrongChecksum, 1),
            (WrongChecksum, 3),
        ]
        assert blob.owner in str(next(iter(blobs.verify(blob))))

    @pytest.mark.parametrize("size", [0, 1, PART, 3 * PART, 3 * PART + 1])
    def test_verify_finds_what_lies_behind_the_end(self, blobs: BlobStore, harm: Harm, size: int) -> None:
        blob = stored(blobs, noise(size))
        harm(blob, blob.parts, "append")
        assert [(type(damage), damage.part) for damage in blobs.verify(blob)] == [(ExtraPart, blob.parts)]
        assert blobs.path(blob) is None

    def test_verify_compares_the_whole(self, blobs: BlobStore) -> None:
        blob = stored(blobs, noise(2 * PART))
        other = Blob(blob.owner, blob.attempt, blob.size, blob.part_size, "0" * 64)
        assert [(type(damage), damage.part) for damage in blobs.verify(other)] == [(WrongChecksum, -1)]

    def test_verify_finds_a_blob_that_is_gone(self, blobs: BlobStore) -> None:
        blob = stored(blobs, noise(2 * PART))
        blobs.erase(blob.owner, blob.attempt)
        damages = list(blobs.verify(blob))
        assert damages
        assert {type(damage) for damage in damages} == {MissingPart}

    @pytest.mark.parametrize("size", SIZES)
    def test_reader_is_a_file(self, blobs: BlobStore, size: int) -> None:
        data = noise(size)
        blob, plain = stored(blobs, data), io.BytesIO(data)
        moves = random.Random(size)
        with blobs.open(blob) as reader:
            assert reader.readable() and reader.seekable() and not reader.writable()
            for _ in range(60):
                whence = moves.choice([io.SEEK_SET, io.SEEK_CUR, io.SEEK_END])
                offset = moves.choice([0, 1, -1, PART, -PART, size // 2, size + 10])
                here = {io.SEEK_SET: 0, io.SEEK_CUR: plain.tell(), io.SEEK_END: size}[whence] + offset
                if here < 0:
                    with pytest.raises(ValueError):
                        reader.seek(offset, whence)
                else:
                    assert reader.seek(offset, whence) == plain.seek(here) == reader.tell()
                length = moves.choice([0, 1, 10, PART, PART + 1, 3 * PART, -1])
                assert reader.read(length) == plain.read(length)
                assert reader.tell() == plain.tell()
        with pytest.raises(ValueError):
            reader.read(1)
        with pytest.raises(ValueError):
            reader.seek(0)

    def test_reader_fills_buffers(self, blobs: BlobStore) -> None:
        data = noise(3 * PART + 10)
        with blobs.open(stored(blobs, data)) as reader:
            target = bytearray(2 * PART + 5)
            assert reader.readinto(target) == len(target)
            assert target == data[: len(target)]
            assert reader.readinto(target) == len(data) - len(target)
            assert reader.readinto(target) == 0

    def test_reader_suits_the_standard_library(self, blobs: BlobStore) -> None:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("a.bin", noise(3 * PART))
            archive.writestr("b.csv", "ö,1\r\nü,2\r\n" * 400)
        blob = stored(blobs, packed.getvalue())
        with blobs.open(blob) as raw, zipfile.ZipFile(raw) as archive:
            assert archive.read("a.bin") == noise(3 * PART)
            table = archive.read("b.csv")
        rows = stored(blobs, table)
        with io.TextIOWrapper(io.BufferedReader(blobs.open(rows)), "utf-8", newline="") as text:
            assert list(csv.reader(text)) == [["ö", "1"], ["ü", "2"]] * 400
        with blobs.open(rows) as raw:
            assert list(raw) == table.splitlines(keepends=True)
        copy = io.BytesIO()
        with io.BufferedReader(blobs.open(blob), 100) as buffered:
            shutil.copyfileobj(buffered, copy)
        assert copy.getvalue() == packed.getvalue()

    def test_path_holds_exactly_the_bytes(self, blobs: BlobStore) -> None:
        blob = stored(blobs, noise(2 * PART))
        path = blobs.path(blob)
        if path is None:
            pytest.skip("this store has no plain files")
        assert path.read_bytes() == noise(2 * PART)
        assert blobs.path(Blob(blob.owner, blob.attempt, 5, PART, blob.sha256)) is None
        blobs.erase(blob.owner, blob.attempt)
        assert blobs.path(blob) is None
