"""Blobs in chunk tables, on the reference plugin at its strictest and on the embedded one."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from storage.blobs import Blob, checksum
from storage.bucket_chunks import Chunks
from storage.chunks import ChunkBlobs
from storage.contract import BlobContract
from storage.contract_blobs import PART, Harm, Make, fresh, guessed, noise, stored, whole
from storage.errors import Full, KeyTaken, MissingPart, Unavailable
from storage.memory import MemoryStore
from storage.schema import ORIGINALS_DATA
from storage.sqlite import SqliteStore
from storage.table import VALUE_LIMIT, Key, Table, Type, cas, plain

FS_CHUNKS = plain(
    "fs_chunks",
    "file_id attempt bucket | num",
    chunks=True,
    file_id=Type.TEXT,
    attempt=Type.TEXT,
    bucket=Type.INT,
    num=Type.INT,
    data=Type.BLOB,
    crc=Type.TEXT,
)
BUCKET = 4


def key_of(blob: Blob, part: int) -> Key:
    return blob.owner, blob.attempt, part // BUCKET, part


def changed(how: str, data: bytes) -> bytes:
    return {"flip": bytes([data[0] ^ 1]) + data[1:], "shorten": data[:-1]}[how]


def plant(store, blob: Blob, part: int, data: bytes) -> None:
    row = dict(zip(ORIGINALS_DATA.key, key_of(blob, part), strict=True))
    store.put(ORIGINALS_DATA, row | {"data": data, "crc": checksum(blob.owner, blob.attempt, part, data)})


class TestOnMemory(BlobContract):
    @pytest.fixture
    def store(self):
        store = MemoryStore(strict=True, transactional=False)
        store.create([ORIGINALS_DATA])
        return store

    @pytest.fixture
    def make(self, store) -> Make:
        return lambda part_size: ChunkBlobs(store, part_size=part_size, bucket_parts=BUCKET, window=3)

    @pytest.fixture
    def harm(self, store) -> Harm:
        def harm(blob: Blob, part: int, how: str) -> None:
            partitions = store._data["originals_data"]
            held = {n: partitions[key_of(blob, n)[:3]] for n in range(blob.parts)}
            if how == "append":
                plant(store, blob, part, b"x")
            elif how == "drop":
                held[part].set((part,), None)
            elif how == "swap":
                one, two = held[part].rows[(part,)], held[part + 1].rows[(part + 1,)]
                held[part].rows[(part,)] = one | {"data": two["data"], "crc": two["crc"]}
                held[part + 1].rows[(part + 1,)] = two | {"data": one["data"], "crc": one["crc"]}
            else:
                row = held[part].rows[(part,)]
                held[part].rows[(part,)] = row | {"data": changed(how, row["data"])}

        return harm


class TestOnSqlite(BlobContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[SqliteStore]:
        store = SqliteStore(tmp_path / "store.sqlite")
        store.create([ORIGINALS_DATA])
        yield store
        store.close()

    @pytest.fixture
    def make(self, store) -> Make:
        return lambda part_size: ChunkBlobs(store, part_size=part_size, bucket_parts=BUCKET, window=3)

    @pytest.fixture
    def child(self, tmp_path: Path) -> str:
        return (
            "from pathlib import Path\nfrom storage.chunks import ChunkBlobs\nfrom storage.sqlite import SqliteStore\n"
            f"store = SqliteStore(Path({str(tmp_path / 'store.sqlite')!r}))\n"
            f"blobs = ChunkBlobs(store, part_size={PART}, bucket_parts={BUCKET}, window=3)"
        )

    @pytest.fixture
    def harm(self, store, tmp_path: Path) -> Harm:
        where = "WHERE original_id = ? AND attempt = ? AND part = ?"

        def harm(blob: Blob, part: int, how: str) -> None:
            if how == "append":
                plant(store, blob, part, b"x")
                return
            with closing(apsw.Connection(str(tmp_path / "store.sqlite"))) as database:

                def parts(*numbers: int) -> list[tuple[bytes, str]]:
                    ask = f"SELECT data, crc FROM originals_data {where}"
                    return [database.execute(ask, (blob.owner, blob.attempt, n)).get for n in numbers]

                def write(number: int, data: bytes, crc: str) -> None:
                    change = f"UPDATE originals_data SET data = ?, crc = ? {where}"
                    database.execute(change, (data, crc, blob.owner, blob.attempt, number))
                    assert database.changes() == 1

                if how == "drop":
                    database.execute(f"DELETE FROM originals_data {where}", (blob.owner, blob.attempt, part))
                elif how == "swap":
                    one, two = parts(part, part + 1)
                    write(part, *two)
                    write(part + 1, *one)
                else:
                    [(data, crc)] = parts(part)
                    write(part, changed(how, data), crc)

        return harm


class Probe(MemoryStore):
    """Counts what is in flight, and fails on demand."""

    def __init__(self) -> None:
        super().__init__(strict=True)
        self.pulled = self.groups = 0
        self.erased: list[Key] = []
        self.fail: Exception | None = None
        self.create([ORIGINALS_DATA, FS_CHUNKS])

    def fetch(self, requests, window=16):
        def counted():
            for request in requests:
                self.pulled += 1
                yield request

        return super().fetch(counted(), window)

    def put_many(self, rows, window=8):
        self.groups += 1
        if self.fail:
            raise self.fail
        super().put_many(rows, window)

    def erase(self, table: Table, partition: Key) -> None:
        if self.fail:
            raise self.fail
        self.erased.append(partition)
        super().erase(table, partition)


def test_the_seeds_layout_of_files() -> None:
    store = Probe()
    blobs = ChunkBlobs(store, FS_CHUNKS, part_size=10, bucket_parts=128)
    blob = stored(blobs, noise(1290))
    assert whole(blobs, blob) == noise(1290)
    last = store.get(FS_CHUNKS, (blob.owner, blob.attempt, 1, 128))
    assert last is not None and last["data"] == noise(1290)[-10:]
    assert [row["num"] for row in store.read(FS_CHUNKS, (blob.owner, blob.attempt, 0), limit=200)] == list(range(128))


def test_reads_ahead_no_further_than_needed() -> None:
    store = Probe()
    blobs = ChunkBlobs(store, part_size=10)
    blob = stored(blobs, noise(1000))
    pieces = blobs.parts(blob, 95, 125)
    assert store.pulled == 0
    assert b"".join(pieces) == noise(1000)[95:125]
    assert store.pulled == 4
    pieces = blobs.parts(blob, 0, 1000)
    next(pieces)
    assert store.pulled <= 4 + blobs._window + 1


def test_a_reader_that_jumps_reads_single_parts() -> None:
    store = Probe()
    blobs = ChunkBlobs(store, part_size=10)
    blob = stored(blobs, noise(1000))
    with blobs.open(blob) as reader:
        for position in (500, 250, 255, 750, 3):
            reader.seek(position)
            assert reader.read(2) == noise(1000)[position : position + 2]
    assert store.pulled == 4


def test_an_erase_that_was_broken_off_can_be_finished() -> None:
    """From the last bucket to the first: a bucket that is there vouches for those behind it."""
    store = Probe()
    blobs = ChunkBlobs(store, part_size=10, bucket_parts=4)
    blob = stored(blobs, noise(200))
    store.erased.clear()
    erase = store.erase

    def erase_two(table: Table, partition: Key) -> None:
        if len(store.erased) == 2:
            raise Unavailable("gone")
        erase(table, partition)

    store.erase = erase_two  # type: ignore[method-assign]
    with pytest.raises(Unavailable):
        blobs.erase(blob.owner, blob.attempt)
    store.erase = erase  # type: ignore[method-assign]
    blobs.erase(blob.owner, blob.attempt)
    assert list(blobs.scan()) == []
    assert {key[2] for key in store.erased} == {0, 1, 2, 3, 4, 5}


@pytest.mark.parametrize("error", [Full("no room"), Unavailable("gone")])
def test_a_failed_write_ends_the_writer(error: Exception) -> None:
    store = Probe()
    blobs = ChunkBlobs(store, part_size=10)
    key = fresh()
    with pytest.raises(ZeroDivisionError), blobs.create(*key) as writer:  # not what the clearing up comes to
        writer.write(noise(40))
        store.fail = error
        with pytest.raises(type(error)):
            writer.write(noise(40))
        for act in (lambda: writer.write(b"x"), writer.commit):
            with pytest.raises(ValueError, match="failed"):
                act()
        raise ZeroDivisionError
    assert len(list(blobs.scan())) == 1
    store.fail = None
    blobs.erase(*key)
    assert list(blobs.scan()) == []


def test_parts_are_written_in_groups_of_the_window() -> None:
    store = Probe()
    stored(ChunkBlobs(store, part_size=10, window=4), noise(100))
    assert store.groups == 3


def test_lengths_beyond_32_bits() -> None:
    store = Probe()
    blobs = ChunkBlobs(store, part_size=512 * 1024)
    owner, attempt = fresh()
    blob = Blob(owner, attempt, (5 << 30) + 7, 512 * 1024, "0" * 64)
    part = blob.parts - 1
    row = {"original_id": owner, "attempt": attempt, "bucket": part // 64, "part": part, "data": b"the end"}
    store.put(ORIGINALS_DATA, row | {"crc": checksum(owner, attempt, part, b"the end")})
    assert b"".join(blobs.parts(blob, (5 << 30) + 4, (5 << 30) + 7)) == b"end"
    with blobs.open(blob) as reader:
        assert reader.seek(-3, 2) == (5 << 30) + 4
        assert reader.read() == b"end"
        reader.seek(3 << 30)
        with pytest.raises(MissingPart) as raised:
            reader.read(1)
        assert raised.value.part == 6144


@pytest.mark.parametrize("part_size", [4096, 512 * 1024, 1_000_000])
def test_no_partition_of_an_original_of_5_gb_is_above_64_mib(part_size: int) -> None:
    """Of the sizes that the settings take; beside its bytes a row has less than 200 of keys and checksum."""
    blobs = ChunkBlobs(MemoryStore(), part_size=part_size)
    buckets = Counter(map(blobs.bucket_of, range(-(-5_000_000_000 // part_size))))
    assert max(buckets.values()) * (part_size + 200) < 64 << 20


@pytest.mark.parametrize("chunk_size", [1, 255 * 1024, 256 * 1024 + 1, VALUE_LIMIT])
def test_no_partition_of_a_file_is_above_64_mib(chunk_size: int) -> None:
    blobs = Chunks(MemoryStore(), FS_CHUNKS, 4).sized(chunk_size)
    buckets = Counter(map(blobs.bucket_of, range(min(1000, -(-5_000_000_000 // chunk_size)))))
    assert max(buckets.values()) * (chunk_size + 200) <= (32 << 20) + 128 * 200


def test_an_empty_part_behind_the_end_does_no_harm() -> None:
    store = Probe()
    blobs = ChunkBlobs(store, part_size=10, bucket_parts=BUCKET)
    for size in (0, 10, 40):
        blob = stored(blobs, noise(size))
        plant(store, blob, blob.parts, b"")
        assert list(blobs.verify(blob)) == []
        assert whole(blobs, blob) == noise(size)


@pytest.mark.parametrize(
    "table",
    [
        plain("a", "owner attempt | part", owner=Type.TEXT, attempt=Type.TEXT, part=Type.INT, data=Type.BLOB),
        plain("b", "a b c | d", a=Type.TEXT, b=Type.TEXT, c=Type.INT, d=Type.INT, data=Type.BLOB),
        cas("c", "a b c | d", a=Type.TEXT, b=Type.TEXT, c=Type.INT, d=Type.INT, data=Type.BLOB, crc=Type.TEXT),
    ],
    ids=repr,
)
def test_tables_that_can_not_hold_parts_are_refused(table: Table) -> None:
    with pytest.raises(ValueError, match=table.name):
        ChunkBlobs(MemoryStore(), table)


@pytest.mark.parametrize("window", [0, 65])
def test_a_window_beyond_a_bucket_is_refused(window: int) -> None:
    with pytest.raises(ValueError, match="window"):
        ChunkBlobs(MemoryStore(), window=window)


def test_a_half_written_blob_is_a_taken_key() -> None:
    blobs = ChunkBlobs(Probe(), part_size=10, window=1)
    key = fresh()
    blobs.create(*key).write(noise(10))
    with pytest.raises(KeyTaken):
        blobs.create(*key)
    assert guessed(*key, noise(10), 10).parts == 1
