"""The suite that every blob store passes. A subclass gives the fixtures ``make``, ``harm`` and, where another process
can reach the same store, ``child``; they stand for one store within a test."""

from __future__ import annotations

import csv
import gc
import hashlib
import io
import itertools
import random
import shutil
import signal
import subprocess
import sys
import tracemalloc
import uuid
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import pytest

from storage.blobs import Blob, BlobStore
from storage.errors import Damaged, ExtraPart, KeyTaken, MissingPart, WrongChecksum, WrongLength

PART = 1000
Make: TypeAlias = Callable[[int], BlobStore]
Harm: TypeAlias = Callable[[Blob, int, str], None]

SIZES = [0, 1, PART - 1, PART, PART + 1, 3 * PART, 7 * PART + 456]


def noise(size: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(size)


def fresh() -> tuple[str, str]:
    """Owner and attempt of this test alone."""
    return str(uuid.uuid4()), uuid.uuid4().hex


def stored(blobs: BlobStore, data: bytes) -> Blob:
    with blobs.create(*fresh()) as writer:
        writer.write(data)
        return writer.commit()


def whole(blobs: BlobStore, blob: Blob) -> bytes:
    return b"".join(blobs.parts(blob, 0, blob.size))


def guessed(owner: str, attempt: str, data: bytes, part_size: int = PART) -> Blob:
    """What the commit of a writer would have given."""
    return Blob(owner, attempt, len(data), part_size, hashlib.sha256(data).hexdigest())


class BlobContract:
    @pytest.fixture
    def make(self) -> Make:
        """Overridden: a function that opens the store of this test with parts of so many bytes."""
        raise NotImplementedError("a subclass of BlobContract gives the fixture `make`")

    @pytest.fixture
    def harm(self) -> Harm:
        """Overridden: a function (blob, part, how) that damages a part behind the store's back. ``how`` is flip (a
        bit), drop, shorten, swap (with the next one, checksums and all), or append (one byte behind the last part)."""
        raise NotImplementedError("a subclass of BlobContract gives the fixture `harm`")

    @pytest.fixture
    def child(self) -> str | None:
        """Overridden: Python source that binds ``blobs`` to the store of this test, with parts of 1000 bytes."""
        return None

    @pytest.fixture
    def blobs(self, make: Make) -> BlobStore:
        return make(PART)

    @pytest.mark.parametrize("size", SIZES)
    def test_bytes_come_back(self, blobs: BlobStore, make: Make, size: int) -> None:
        data = noise(size)
        blob = stored(blobs, data)
        assert blob == guessed(blob.owner, blob.attempt, data)
        other = make(77)  # a reader goes by the blob's own part size
        assert [len(piece) for piece in other.parts(blob, 0, size)] == [blob.length(part) for part in range(blob.parts)]
        assert whole(other, blob) == data
        assert list(other.verify(blob)) == []

    @pytest.mark.parametrize("step", [1, 7, 333, PART, PART + 1, 2 * PART, 100 * PART])
    def test_pieces_of_any_length_become_equal_parts(self, blobs: BlobStore, step: int) -> None:
        data = noise(3 * PART + 10)
        with blobs.create(*fresh()) as writer:
            for begin in range(0, len(data), step):
                piece = data[begin : begin + step]
                assert writer.write(piece) == len(piece)
                assert writer.write(b"") == 0
            blob = writer.commit()
        assert blob == guessed(blob.owner, blob.attempt, data)
        assert [len(piece) for piece in blobs.parts(blob, 0, len(data))] == [PART, PART, PART, 10]

    def test_any_buffer_is_written(self, blobs: BlobStore) -> None:
        data = noise(2 * PART)
        with blobs.create(*fresh()) as writer:
            reused = bytearray(data[:PART])
            assert writer.write(reused) == PART  # type: ignore[arg-type]
            reused[:] = bytes(PART)
            assert writer.write(memoryview(data)[PART:]) == PART  # type: ignore[arg-type]
            blob = writer.commit()
        assert whole(blobs, blob) == data

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

    def test_nothing_is_visible_before_commit(self, blobs: BlobStore, make: Make) -> None:
        key, data = fresh(), noise(7 * PART + 1)
        blob = guessed(*key, data)
        with blobs.create(*key) as writer:
            writer.write(data)
            with pytest.raises(Damaged):
                whole(make(PART), blob)
            assert blobs.path(blob) is None
            assert writer.commit() == blob
        assert whole(make(PART), blob) == data

    def test_a_taken_key_is_refused(self, blobs: BlobStore, make: Make) -> None:
        blob = stored(blobs, noise(PART))
        for store in (blobs, make(PART)):
            with pytest.raises(KeyTaken, match=blob.owner):
                store.create(blob.owner, blob.attempt)
        assert whole(blobs, blob) == noise(PART)
        with blobs.create(blob.owner, fresh()[1]) as writer:
            writer.write(b"another attempt")
            again = writer.commit()
        assert (whole(blobs, blob), whole(blobs, again)) == (noise(PART), b"another attempt")

    @pytest.mark.parametrize("size", SIZES)
    def test_leaving_without_commit_leaves_nothing(self, blobs: BlobStore, size: int) -> None:
        key, data = fresh(), noise(size)
        with blobs.create(*key) as writer:
            writer.write(data)
        self._assert_nothing(blobs, key, data)
        with pytest.raises(ZeroDivisionError), blobs.create(*(key := fresh())) as writer:
            writer.write(data)
            raise ZeroDivisionError
        self._assert_nothing(blobs, key, data)
        writer = blobs.create(*(key := fresh()))
        writer.write(data)
        writer.abort()
        writer.abort()
        self._assert_nothing(blobs, key, data)

    def test_a_writer_that_ended_is_refused(self, blobs: BlobStore) -> None:
        with blobs.create(*fresh()) as writer:
            writer.write(b"x")
            blob = writer.commit()
            for act in (lambda: writer.write(b"y"), writer.commit):
                with pytest.raises(ValueError):
                    act()
            writer.abort()
        assert whole(blobs, blob) == b"x"
        with blobs.create(*fresh()) as writer:
            writer.abort()
            for act in (lambda: writer.write(b"y"), writer.commit):
                with pytest.raises(ValueError):
                    act()

    def test_garbage_collection_commits_nothing(self, blobs: BlobStore) -> None:
        key, data = fresh(), noise(7 * PART + 1)
        writer = blobs.create(*key)
        writer.write(data)
        del writer
        gc.collect()
        with pytest.raises(Damaged):
            whole(blobs, guessed(*key, data))
        blobs.erase(*key)
        self._assert_nothing(blobs, key, data)

    @pytest.mark.parametrize("size", [0, 1, PART, 7 * PART, 300 * PART + 1])
    def test_erase(self, blobs: BlobStore, size: int) -> None:
        blob, kept = stored(blobs, noise(size)), stored(blobs, b"kept")
        for _ in range(2):
            blobs.erase(blob.owner, blob.attempt)
            self._assert_nothing(blobs, (blob.owner, blob.attempt), noise(size))
        blobs.erase(blob.owner, kept.attempt)
        blobs.erase(kept.owner, blob.attempt)
        assert whole(blobs, kept) == b"kept"

    def test_scan_finds_what_is_stored(self, blobs: BlobStore) -> None:
        kept = {(blob.owner, blob.attempt) for blob in (stored(blobs, noise(3 * PART, n)) for n in range(5))}
        half = fresh()
        writer = blobs.create(*half)
        writer.write(noise(9 * PART))
        gone = stored(blobs, b"gone")
        blobs.erase(gone.owner, gone.attempt)
        found = list(blobs.scan())
        assert {(one.owner, one.attempt) for one in found} == kept | {half}
        assert all(one.age is None or -60_000_000 < one.age < 3_600_000_000 for one in found)
        writer.abort()
        assert {(one.owner, one.attempt) for one in blobs.scan()} == kept

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

    def test_a_killed_writer_leaves_nothing_visible(self, blobs: BlobStore, child: str | None) -> None:
        if child is None:
            pytest.skip("no other process can reach this store")
        key, data = fresh(), noise(9 * PART)
        source = (
            f"import random, sys, time\n{child}\nwriter = blobs.create(*{key!r})\n"
            f"writer.write(random.Random(0).randbytes({len(data)}))\nprint('written', flush=True)\ntime.sleep(600)"
        )
        process = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None and process.stdout.readline() == "written\n"
        finally:
            process.send_signal(signal.SIGKILL)
            process.communicate()
        with pytest.raises(KeyTaken):
            blobs.create(*key)
        blob = guessed(*key, data + b"x")
        with pytest.raises(Damaged):
            whole(blobs, blob)
        assert key in {(one.owner, one.attempt) for one in blobs.scan()}
        blobs.erase(*key)
        self._assert_nothing(blobs, key, data)

    def test_many_threads(self, blobs: BlobStore) -> None:
        def work(seed: int) -> bool:
            blob = stored(blobs, noise(5 * PART + seed, seed))
            return whole(blobs, blob) == noise(5 * PART + seed, seed)

        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(work, range(16)))

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

    @pytest.mark.parametrize("mebibytes", [48, pytest.param(300, marks=pytest.mark.stress)])
    def test_memory_stays_flat(self, make: Make, child: str | None, mebibytes: int) -> None:
        if child is None:
            pytest.skip("this store is in memory itself")
        blobs = make(512 * 1024)
        block = noise(1 << 20)
        tracemalloc.start()
        try:
            with blobs.create(*fresh()) as writer:
                for _ in range(mebibytes):
                    writer.write(block)
                blob = writer.commit()
            assert all(
                piece == block[:524288] for piece in itertools.islice(blobs.parts(blob, 0, blob.size), 0, None, 2)
            )
            with blobs.open(blob) as reader:
                assert sum(len(piece) for piece in iter(lambda: reader.read(100_000), b"")) == mebibytes << 20
            assert list(blobs.verify(blob)) == []
            assert tracemalloc.get_traced_memory()[1] < 12 << 20
        finally:
            tracemalloc.stop()

    def _assert_nothing(self, blobs: BlobStore, key: tuple[str, str], data: bytes) -> None:
        assert key not in {(one.owner, one.attempt) for one in blobs.scan()}
        if data:
            with pytest.raises(Damaged):
                whole(blobs, guessed(*key, data))
            with pytest.raises(Damaged):
                blobs.open(guessed(*key, data)).read(1)
