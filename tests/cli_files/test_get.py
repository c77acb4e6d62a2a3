"""``magazin files``: what is broken off goes on where it was."""

import fcntl

import click
import pytest

from cli import transfers
from tests.cli_files.setting import CHUNK, noise, put


class TestGet:
    """What is broken off goes on where it was."""

    @pytest.fixture
    def record(self, magazin, bucket):
        put(magazin, noise(5 * CHUNK + 10), "a")
        return bucket.get_by_name("a")

    @pytest.fixture
    def partial(self, tmp_path, record):
        return tmp_path / f".magazin-{record.id}.part"

    @pytest.mark.parametrize("there", [0, 1, CHUNK, 2 * CHUNK + 5, 5 * CHUNK + 10])
    def test_it_resumes(self, magazin, bucket, tmp_path, record, partial, there):
        partial.write_bytes(noise(5 * CHUNK + 10)[:there])
        shown = []
        assert transfers.get(bucket, record, tmp_path / "a", shown.append) == there // CHUNK * CHUNK
        assert (tmp_path / "a").read_bytes() == noise(5 * CHUNK + 10)
        assert shown == sorted(shown) and shown[-1] == record.length
        assert not partial.exists()

    def test_it_begins_again_when_what_was_there_is_not_right(self, magazin, bucket, tmp_path, record, partial):
        partial.write_bytes(bytes(3 * CHUNK))
        assert transfers.get(bucket, record, tmp_path / "a", lambda done: None) == 0
        assert (tmp_path / "a").read_bytes() == noise(5 * CHUNK + 10)

    def test_longer_rubbish_is_cut(self, magazin, bucket, tmp_path, record, partial):
        partial.write_bytes(noise(5 * CHUNK + 10) + b"more")
        transfers.get(bucket, record, tmp_path / "a", lambda done: None)
        assert (tmp_path / "a").read_bytes() == noise(5 * CHUNK + 10)

    def test_one_at_a_time(self, magazin, bucket, tmp_path, record, partial):
        with partial.open("wb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            status, _, err = magazin("get", "a")
        assert (status, "another command" in err, (tmp_path / "a").exists()) == (1, True, False)

    def test_an_interrupted_one_is_finished_by_the_next(self, magazin, bucket, tmp_path, record, partial):
        class Interrupt(Exception):
            pass

        def interrupt(done):
            if done > 3 * CHUNK:
                raise Interrupt

        with pytest.raises(Interrupt):
            transfers.get(bucket, record, tmp_path / "a", interrupt)
        assert 3 * CHUNK <= partial.stat().st_size < record.length
        assert not (tmp_path / "a").exists()
        assert transfers.get(bucket, record, tmp_path / "a", lambda done: None) >= 3 * CHUNK
        assert (tmp_path / "a").read_bytes() == noise(5 * CHUNK + 10)

    def test_a_target_is_replaced_when_all_is_there(self, magazin, tmp_path, record):
        (tmp_path / "a").write_bytes(b"old")
        assert magazin("get", "a")[0] == 0
        assert (tmp_path / "a").read_bytes() == noise(5 * CHUNK + 10)

    def test_where_it_can_not_be_put(self, magazin, record):
        status, _, err = magazin("get", "a", "nowhere/a")
        assert (status, "nowhere/.magazin-" in err) == (1, True)


@pytest.mark.parametrize("name", ["..", "a/..", "a/", "."])
def test_names_that_would_leave_the_folder(name):
    with pytest.raises(click.ClickException, match="say where"):
        transfers.local_name(name)
