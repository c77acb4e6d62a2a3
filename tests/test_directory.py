"""Blobs in a folder."""

import os
from pathlib import Path

import pytest

from storage.blobs import Blob, Found, checksum
from storage.contract import BlobContract
from storage.contract_blobs import PART, Harm, Make, fresh, guessed, noise, stored, whole
from storage.directory import DirectoryBlobs
from storage.errors import BlobError, Damaged, Full, KeyTaken, MissingPart, Unavailable, WrongChecksum
from tests.disks import disk_of


def place(folder: Path, blob: Blob) -> Path:
    return folder / blob.owner[:2] / blob.owner[2:4] / f"{blob.owner}.{blob.attempt}"


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


class TestDirectory(BlobContract):
    @pytest.fixture
    def make(self, tmp_path: Path) -> Make:
        return lambda part_size: DirectoryBlobs(tmp_path / "blobs", part_size=part_size)

    @pytest.fixture
    def child(self, tmp_path: Path) -> str:
        return (
            "from pathlib import Path\nfrom storage.directory import DirectoryBlobs\n"
            f"blobs = DirectoryBlobs(Path({str(tmp_path / 'blobs')!r}), part_size={PART})"
        )

    @pytest.fixture
    def harm(self, tmp_path: Path) -> Harm:
        def harm(blob: Blob, part: int, how: str) -> None:
            path = place(tmp_path / "blobs", blob)
            data, begin = bytearray(path.read_bytes()), part * blob.part_size
            if how == "flip":
                data[begin] ^= 1
            elif how == "drop":
                del data[begin:]
            elif how == "shorten":
                del data[begin + blob.length(part) - 1 :]
            elif how == "append":
                data += b"x"
            else:
                sums = path.with_name(path.name + ".sums")
                lines = sums.read_bytes().splitlines(keepends=True)
                lines[part : part + 2] = reversed(lines[part : part + 2])
                sums.write_bytes(b"".join(lines))
                middle, end = begin + blob.part_size, begin + 2 * blob.part_size
                data[begin:end] = data[middle:end] + data[begin:middle]
            path.write_bytes(data)

        return harm


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "blobs"


@pytest.fixture
def blobs(folder: Path) -> DirectoryBlobs:
    return DirectoryBlobs(folder, part_size=PART)


def test_layout(blobs: DirectoryBlobs, folder: Path) -> None:
    blob = stored(blobs, noise(PART + 1))
    assert blobs.path(blob) == place(folder, blob)
    assert files(folder) == [f"{blob.owner}.{blob.attempt}", f"{blob.owner}.{blob.attempt}.sums"]
    sums = place(folder, blob).with_name(f"{blob.owner}.{blob.attempt}.sums").read_text()
    pieces = noise(PART + 1)[:PART], noise(PART + 1)[PART:]
    assert sums == "".join(f"{checksum(blob.owner, blob.attempt, n, piece)}\n" for n, piece in enumerate(pieces))
    blobs.erase(blob.owner, blob.attempt)
    assert files(folder) == []


@pytest.mark.parametrize("size", [0, 10, 3 * PART])
def test_an_aborted_blob_leaves_no_file(blobs: DirectoryBlobs, folder: Path, size: int) -> None:
    with blobs.create(*fresh()) as writer:
        writer.write(noise(size))
        assert len(files(folder)) == 1
    assert files(folder) == []


def test_short_owners_have_a_place(blobs: DirectoryBlobs) -> None:
    for owner in ("a", "ab", "abc", "A-1", "z" * 64):
        with blobs.create(owner, "1") as writer:
            writer.write(b"x")
            assert whole(blobs, writer.commit()) == b"x"
    assert {found.owner for found in blobs.scan()} == {"a", "ab", "abc", "A-1", "z" * 64}


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "a.b", "a\x00", "a\n", "é", "a" * 65, "a b", "/"])
def test_names_that_lead_elsewhere_are_refused(blobs: DirectoryBlobs, folder: Path, name: str) -> None:
    for key in ((name, "a"), ("a", name)):
        blob = guessed(*key, b"x")
        with pytest.raises(ValueError):
            blobs.create(*key)
        with pytest.raises(ValueError):
            blobs.erase(*key)
        with pytest.raises(ValueError):
            blobs.path(blob)
        with pytest.raises(ValueError):
            whole(blobs, blob)
    assert files(folder.parent) == []


def test_two_writers_of_one_key(blobs: DirectoryBlobs, folder: Path) -> None:
    key = fresh()
    with blobs.create(*key) as first:
        with pytest.raises(KeyTaken):
            blobs.create(*key)
        first.write(b"first")
        blob = first.commit()
    with pytest.raises(KeyTaken):
        blobs.create(*key)
    assert whole(blobs, blob) == b"first"
    assert len(files(folder)) == 2


def test_erased_while_it_was_written(blobs: DirectoryBlobs, folder: Path) -> None:
    key = fresh()
    with pytest.raises(BlobError, match="erased"), blobs.create(*key) as writer:
        writer.write(b"late")
        blobs.erase(*key)
        writer.commit()
    assert files(folder) == []


def test_without_its_checksums_nothing_is_handed_out(blobs: DirectoryBlobs, folder: Path) -> None:
    blob = stored(blobs, noise(2 * PART))
    sums = place(folder, blob).with_name(f"{blob.owner}.{blob.attempt}.sums")
    sums.write_bytes(sums.read_bytes()[:17])
    assert b"".join(blobs.parts(blob, 0, PART)) == noise(2 * PART)[:PART]
    with pytest.raises(WrongChecksum):
        whole(blobs, blob)
    sums.unlink()
    assert [damage.part for damage in blobs.verify(blob)] == [0, 1]


def test_a_file_that_is_gone_is_one_damage(blobs: DirectoryBlobs, folder: Path) -> None:
    blob = stored(blobs, noise(5 * PART))
    place(folder, blob).unlink()
    assert [(type(damage), damage.part) for damage in blobs.verify(blob)] == [(MissingPart, 0)]
    empty = stored(blobs, b"")
    place(folder, empty).unlink()
    assert [(type(damage), damage.part) for damage in blobs.verify(empty)] == [(MissingPart, 0)]


def test_a_disk_that_is_not_mounted_is_no_damage(blobs: DirectoryBlobs, folder: Path) -> None:
    blob = stored(blobs, noise(PART))
    folder.rename(folder.with_name("elsewhere"))
    for act in (
        lambda: whole(blobs, blob),
        lambda: list(blobs.verify(blob)),
        lambda: list(blobs.scan()),
        lambda: blobs.erase(blob.owner, blob.attempt),
        lambda: blobs.create(*fresh()),
    ):
        with pytest.raises(Unavailable):
            act()
    folder.with_name("elsewhere").rename(folder)
    assert whole(blobs, blob) == noise(PART)


def test_what_can_not_be_read_is_damage(blobs: DirectoryBlobs, folder: Path) -> None:
    blob = stored(blobs, noise(PART))
    path = place(folder, blob)
    path.unlink()
    path.symlink_to("/proc/self/mem")  # whose first bytes give EIO
    with pytest.raises(Damaged, match="can't be read"):
        whole(blobs, blob)


def test_scan_tells_the_age(folder: Path) -> None:
    now = 1_800_000_000_000_000
    blobs = DirectoryBlobs(folder, part_size=PART, clock=lambda: now)
    blob = stored(blobs, b"x")
    for path in (place(folder, blob), place(folder, blob).with_name(f"{blob.owner}.{blob.attempt}.sums")):
        os.utime(path, ns=((now - 90_000_000) * 1000,) * 2)
    (folder / "note.txt").write_text("not ours")
    (folder / "ab").mkdir(exist_ok=True)
    (folder / "ab" / "note.txt").write_text("not ours")
    (place(folder, blob).parent / "note.txt").write_text("not ours")
    assert list(blobs.scan()) == [Found(blob.owner, blob.attempt, 90_000_000)]


def test_the_age_is_that_of_the_last_write(folder: Path) -> None:
    blobs = DirectoryBlobs(folder, part_size=PART, clock=lambda: 900_000_000)
    one, two = stored(blobs, b"x"), stored(blobs, b"x")
    for blob, moments in ((one, (100, 500)), (two, (500, 100))):
        path = place(folder, blob)
        for file, seconds in zip((path, path.with_name(f"{path.name}.sums")), moments, strict=True):
            os.utime(file, (seconds, seconds))
    assert [found.age for found in blobs.scan()] == [400_000_000, 400_000_000]


def test_what_is_made_durable_and_when(folder: Path) -> None:
    """Bytes before their name, each new folder in the one above, and the name before commit returns."""
    seen: list[tuple[str, list[str]]] = []

    def sync(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if path.is_file():
            seen.append((path.suffix, [part.suffix for part in sorted(path.parent.iterdir())]))
        else:
            depth = len(path.relative_to(folder).parts)
            seen.append((f"folder {depth}", [part.suffix for part in sorted(path.iterdir()) if part.is_file()]))
        os.fsync(descriptor)

    blobs = DirectoryBlobs(folder, sync=sync)
    with blobs.create("abcdef", "1") as writer:
        assert seen == [("folder 0", []), ("folder 1", [])]
        writer.write(b"x" * 100_000)
        del seen[:]
        writer.commit()
    assert seen == [
        (".sums", [".partial", ".sums"]),
        (".partial", [".partial", ".sums"]),
        ("folder 2", [".1", ".sums"]),
    ]
    del seen[:]
    blobs.create("abcdef", "2").abort()
    assert seen == []
    blobs.erase("abcdef", "1")
    assert seen == [("folder 2", [])]
    blobs.erase("abcdef", "1")
    assert len(seen) == 1


def test_lengths_beyond_32_bits(blobs: DirectoryBlobs, folder: Path) -> None:
    small = stored(blobs, b"x")
    blob = Blob(small.owner, small.attempt, (5 << 30) + 7, 512 * 1024, small.sha256)
    part = blob.parts - 1
    with place(folder, blob).open("r+b") as sparse:
        sparse.seek(5 << 30)
        sparse.write(b"the end")
    with place(folder, blob).with_name(f"{blob.owner}.{blob.attempt}.sums").open("r+b") as sums:
        sums.seek(part * 17)
        sums.write(checksum(blob.owner, blob.attempt, part, b"the end").encode() + b"\n")
    with blobs.open(blob) as reader:
        assert reader.seek(-3, 2) == (5 << 30) + 4
        assert reader.read() == b"end"
    assert blobs.path(blob) == place(folder, blob)


@pytest.fixture
def small_disk(tmp_path: Path):
    with disk_of("1m", tmp_path) as mount:
        yield mount


def test_a_full_disk(small_disk: Path) -> None:
    blobs = DirectoryBlobs(small_disk / "blobs", part_size=64 * 1024)
    kept = stored(blobs, noise(100_000))
    key = fresh()
    with pytest.raises(Full), blobs.create(*key) as writer:
        for _ in range(100):
            writer.write(noise(50_000))
    assert len(files(small_disk)) == 2
    assert whole(blobs, kept) == noise(100_000)
    again = stored(blobs, noise(500_000, 1))
    assert whole(blobs, again) == noise(500_000, 1)
