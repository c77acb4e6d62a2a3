"""From settings to parts: defaults are the parts' own, and what can't go together is refused."""

import dataclasses

import pytest

from cli.settings import Delivery, Images, Server, Settings, Storage, Worker
from cli.sources import SettingsError
from cli.wiring import REFERENCE_TTL, Magazin
from imaging.encoding import Encoding
from imaging.limits import Limits
from ingest.backoff import Backoff
from ingest.remembered import Unchanged
from storage.chunks import ChunkBlobs
from storage.directory import DirectoryBlobs
from storage.memory import MemoryStore


def magazin(tmp_path, **sections):
    return Magazin(Settings(data=tmp_path, **sections))


def far_away(tmp_path, seen=None, **sections):
    """With a store as that of several machines."""

    def open_store(name, options):
        if seen is not None:
            seen[name] = options
        return MemoryStore(transactional=False)

    return Magazin(Settings(data=tmp_path, **sections), open_store=open_store)


def test_the_defaults_are_those_of_the_parts(tmp_path):
    found = magazin(tmp_path)
    assert found.limits == Limits()
    assert found.encoding == Encoding()
    worker = Worker()
    assert Backoff(worker.backoff, worker.jitter, worker.max_failures) == Backoff(tuple(Backoff().delays))


def test_settings_reach_the_parts(tmp_path):
    images = Images(streamed_pixels=5, pages=6, seconds=7.0, quality=40, background=(1, 2, 3))
    found = magazin(tmp_path, images=images)
    assert found.limits == dataclasses.replace(Limits(), streamed_pixels=5, pages=6, seconds=7.0)
    assert (found.encoding.quality, found.encoding.background) == (40, (1, 2, 3))


def test_originals_lie_beside_an_embedded_store_unless_told_otherwise(tmp_path):
    assert isinstance(magazin(tmp_path).blobs, DirectoryBlobs)
    assert isinstance(magazin(tmp_path, storage=Storage(blobs="tables")).blobs, ChunkBlobs)
    elsewhere = magazin(tmp_path, storage=Storage(directory=str(tmp_path / "elsewhere")))
    assert elsewhere.directory == tmp_path / "elsewhere"


def test_a_directory_beside_a_store_of_several_machines_must_be_shared(tmp_path):
    assert isinstance(far_away(tmp_path).blobs, ChunkBlobs)
    with pytest.raises(SettingsError, match="shared = true"):
        _ = far_away(tmp_path, storage=Storage(blobs="directory")).blobs
    assert isinstance(far_away(tmp_path, storage=Storage(blobs="directory", shared=True)).blobs, DirectoryBlobs)


def test_references_are_remembered_for_a_time_only_where_the_store_is_far_away(tmp_path):
    def ttl(found):
        return found.references._remembered._ttl / 1_000_000

    assert isinstance(magazin(tmp_path).references._remembered, Unchanged)
    assert ttl(magazin(tmp_path, delivery=Delivery(reference_ttl=1.5))) == 1.5
    assert ttl(far_away(tmp_path)) == REFERENCE_TTL
    assert ttl(far_away(tmp_path, delivery=Delivery(reference_ttl=1.5))) == 1.5


@pytest.mark.parametrize("threads", [2, 3, 8, 16])
def test_at_most_half_of_the_threads_wait(tmp_path, threads):
    found = magazin(tmp_path, server=Server(threads=threads))
    assert found._askers + found.cache._waiters <= threads // 2
    assert found.cache._waiters >= 1


def test_a_plugin_gets_the_section_of_its_name_and_the_options(tmp_path):
    seen = {}
    _ = far_away(tmp_path, seen, storage=Storage(plugin="cassandra", options=(("extra", 1),))).store
    assert seen["cassandra"]["data"] == tmp_path
    assert seen["cassandra"]["extra"] == 1
    assert seen["cassandra"]["keyspace"] == "binaries"


def test_close_lets_go_of_what_was_opened_only(tmp_path):
    found = magazin(tmp_path)
    found.close()
    assert not (tmp_path / "store.sqlite").exists()
