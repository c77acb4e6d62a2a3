"""The contract of blobs, first part: writers, erase and scan. A subclass of BlobContract gives the fixtures ``make``,
``harm`` and, where another process can reach the same store, ``child``; they stand for one store within a test."""

from __future__ import annotations

import gc
import hashlib
import itertools
import random
import signal
import subprocess
import sys
import tracemalloc
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import pytest

from storage.blobs import Blob, BlobStore
from storage.errors import Damaged, KeyTaken

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


class BlobWriteContract:
    """What the other part shares, and the promises of create, writers, erase and scan."""

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
        assert all(blobs.has(*key) for key in (*kept, half))
        assert not blobs.has(gone.owner, gone.attempt)
        writer.abort()
        assert {(one.owner, one.attempt) for one in blobs.scan()} == kept
        assert not blobs.has(*half)

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
