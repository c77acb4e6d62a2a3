"""The check: it finds each kind of damage, repairs what it may, and takes litter for what it is."""

import io

import pytest
from PIL import Image

from ingest.fetch.outcome import Fetched, Outcome
from ingest.indexes import YOUNG
from ingest.schedule import queue_rows
from storage.schema import (
    BINARY_REFS,
    BINARYREFS_CONTEXT,
    BINARYREFS_ORIGINAL,
    CANDIDATES,
    ORIGINALS,
    ORIGINALS_DATA,
    QUEUE,
    RECENT,
    SCALED,
    URLS,
    URLS_ORIGINAL,
)
from tests.library import NEVER, Library, failed

BOX = SCALED[116, 87]


@pytest.fixture
def library():
    """An image, a file, an original to be tried again, one in ERROR, one in the queue."""
    library = Library()
    picture = io.BytesIO()
    Image.linear_gradient("L").save(picture, "JPEG")

    class Picture:
        def fetch(self, url, sink, **more):
            if url != "http://h/picture":
                return says.fetch(url, sink, **more)
            sink.write(picture.getvalue())
            return Fetched(Outcome.ARCHIVED, "fetched", mime="image/jpeg", mime_received="image/jpeg")

    says = library.fetcher
    library.jobs._fetcher = Picture()
    library.put("http://h/picture")
    library.put("http://h/file", b"x" * 2500)
    library.put("http://h/later", failed())
    library.put("http://h/gone", failed(Outcome.HTTP_ERROR, "404", transient=False))
    library.references.attach("c", "http://h/new")
    assert library.check.run().is_sound
    return library


def find(library, url):
    original_id = library.store.get(URLS, (url,))["original_id"]
    return library.original(original_id)


def raw(library, table, key):
    """The row behind the store's back, to be changed in place."""
    partition, clustering = key[: len(table.partition)], key[len(table.partition) :]
    return library.store._data[table.name][partition].rows[clustering]


def drop(library, table, key):
    partition, clustering = key[: len(table.partition)], key[len(table.partition) :]
    library.store._data[table.name][partition].set(clustering, None)


def wrong_once(library, kind, text, repaired=True):
    """The check finds one thing of this kind, and afterwards nothing, if it is repaired."""
    found = library.check.run()
    assert dict(found.wrong) == {kind: 1}
    assert text in found.findings[0].text
    assert library.check.run().is_sound is repaired


def test_counts_of_a_sound_library(library):
    found = library.check.run()
    assert (found.originals, found.references) == (5, 5)
    assert found.statuses == {"OK": 2, "RETRY": 1, "ERROR": 1, "PROCESSING": 1}
    assert found.bytes == 2500 + find(library, "http://h/picture").size
    assert (found.unreferenced, found.dead, found.unnamed, found.stale, found.announced) == (0, 0, 0, 0, 0)


def test_a_flipped_byte(library):
    original = find(library, "http://h/file")
    row = raw(library, ORIGINALS_DATA, (original.original_id, original.attempt, 0, 1))
    row["data"] = b"y" + row["data"][1:]
    wrong_once(library, "damaged", "part 1: doesn't match its checksum; http://h/file", repaired=False)
    assert library.check.run(bytes_too=False).is_sound


def test_a_missing_part(library):
    original = find(library, "http://h/file")
    drop(library, ORIGINALS_DATA, (original.original_id, original.attempt, 0, 2))
    wrong_once(library, "damaged", "part 2: is missing", repaired=False)


def test_an_ok_original_that_names_no_bytes(library):
    library.change(find(library, "http://h/file"), attempt=None)
    assert library.check.run().wrong["damaged"] == 1


def test_a_damaged_scaled_image_is_dropped_and_rendered_again_when_asked_for(library):
    original = find(library, "http://h/picture")
    raw(library, BOX, (original.original_id, original.attempt))["data"] = b"grey"
    wrong_once(library, "scaled", BOX.name)
    assert library.store.get(BOX, (original.original_id, original.attempt)) is None


def test_a_missing_queue_entry_is_put_back(library):
    original = find(library, "http://h/later")
    (_, bucket), (_, entry) = queue_rows(original)
    drop(library, QUEUE, QUEUE.key_of(entry))
    wrong_once(library, "queue", original.original_id)
    assert library.store.get(QUEUE, QUEUE.key_of(entry)) is not None
    assert bucket


def test_an_overdue_original_whose_queue_entry_is_missing_is_queued_where_workers_look(library):
    original = find(library, "http://h/new")
    _, (_, entry) = queue_rows(original)
    drop(library, QUEUE, QUEUE.key_of(entry))
    library.now += 3 * YOUNG
    library.queue.tidy()  # the mark moves on, and the buckets of the past are erased
    wrong_once(library, "queue", original.original_id)
    library.now += 1_000_000
    with library.queue.turn() as turn:
        assert original.original_id in {claim.original.original_id for claim in turn.claims()}


def test_a_running_job_outlives_that_its_original_is_queued_anew(library):
    original = find(library, "http://h/new")
    claim = library.claims.take(original)
    _, (_, entry) = queue_rows(original)
    drop(library, QUEUE, QUEUE.key_of(entry))
    wrong_once(library, "queue", original.original_id)
    library.fetcher.answers["http://h/new"] = b"bytes"
    library.jobs.run(claim, NEVER)
    assert library.original(original.original_id).status == "OK"


@pytest.mark.parametrize("table", [BINARYREFS_CONTEXT, BINARYREFS_ORIGINAL])
def test_a_missing_index_row_of_a_reference_is_put_back(library, table):
    (row,) = [
        row for row in library.store.scan(table)[0] if row["reference_id"] == reference_of(library, "http://h/file")
    ]
    drop(library, table, table.key_of(row))
    wrong_once(library, "index", table.name)
    assert library.store.get(table, table.key_of(row)) == row


def reference_of(library, url):
    return next(row["reference_id"] for row in library.store.scan(BINARY_REFS)[0] if row["url"] == url)


@pytest.mark.parametrize("table", [URLS_ORIGINAL, RECENT])
def test_a_missing_index_row_of_an_original_is_put_back(library, table):
    (row, *_) = library.store.scan(table)[0]
    drop(library, table, table.key_of(row))
    wrong_once(library, "index", table.name)


def test_a_reference_without_its_original_is_told_and_later_detached(library):
    reference_id = reference_of(library, "http://h/file")
    original = find(library, "http://h/file")
    drop(library, ORIGINALS, (original.original_id,))
    found = library.check.run()
    assert dict(found.wrong) == {"dangling": 1}
    assert reference_id in found.findings[0].text
    library.now += 2 * YOUNG
    assert library.check.run().wrong["dangling"] == 1
    assert library.check.run().is_sound
    assert library.store.get(BINARY_REFS, (reference_id,)) is None


def test_litter_of_an_unfinished_try_is_announced_once_and_swept(library):
    original = find(library, "http://h/file")
    with library.blobs.create(original.original_id, "f" * 32) as writer:
        writer.write(b"z" * 100)
        writer.commit()
    first, second = library.check.run(), library.check.run()
    assert (first.unnamed, first.announced, first.is_sound) == (1, 1, True)
    assert (second.unnamed, second.announced) == (1, 0)
    library.sweep.run(0)
    assert library.check.run().unnamed == 0
    assert library.check.run().is_sound


def test_a_removed_context_is_litter_until_the_sweep_has_worked_it_off(library):
    library.references.detach_context("c")
    found = library.check.run()
    assert (found.dead, found.announced, found.is_sound) == (5, 0, True)
    assert found.unreferenced == 5
    library.sweep.run(0)
    found = library.check.run()
    assert (found.originals, found.references, found.dead, found.unnamed, found.is_sound) == (0, 0, 0, 0, True)


def test_stale_index_rows_are_deleted_once_they_are_old(library):
    stray = {"generation": "g", "digit": "0", "reference_id": "0123", "attached": library.ids.ordered()}
    library.store.put(BINARYREFS_CONTEXT, stray)
    library.store.put(RECENT, {"minute": 1, "stored": library.now, "original_id": "nobody"})
    assert library.check.run().stale == 0
    library.now += 2 * YOUNG
    found = library.check.run()
    assert (found.stale, found.is_sound) == (2, True)
    assert library.check.run().stale == 0


def test_a_url_that_names_nothing_is_dropped(library):
    original = find(library, "http://h/gone")
    library.references.detach(reference_of(library, "http://h/gone"))
    drop(library, ORIGINALS, (original.original_id,))
    found = library.check.run()
    assert (found.stale, found.is_sound) == (1, True)
    assert library.store.get(URLS, ("http://h/gone",)) is None


def test_events_of_an_original_that_is_gone_are_announced_and_swept(library):
    original = find(library, "http://h/gone")
    library.references.detach(reference_of(library, "http://h/gone"))
    drop(library, ORIGINALS, (original.original_id,))
    for row in library.store.scan(CANDIDATES)[0]:
        drop(library, CANDIDATES, CANDIDATES.key_of(row))
    library.now += 2 * YOUNG
    assert library.check.run().announced >= 1
    library.sweep.run(0)
    assert not library.store.read(BINARYREFS_ORIGINAL, (original.original_id,), limit=1)


def test_progress_is_told():
    library = Library()
    library.put("http://h/a")
    library.put("http://h/b")
    told = []
    library.check.run(progress=told.append)
    assert told == [1, 2]


def test_a_pyramid_goes_with_its_original_and_with_a_try_that_nobody_names(library):
    _, original = library.put("http://h/large")
    for attempt in (original.attempt, "lost"):
        with library.blobs.create(original.original_id, f"{attempt}-pyramid") as writer:
            writer.write(b"tiles")
            writer.commit()

    def kept():
        return {one.attempt for one in library.blobs.scan() if one.owner == original.original_id}

    assert library.check.run().unnamed == 1
    library.sweep.blob(original.original_id, "lost")
    assert kept() == {original.attempt, f"{original.attempt}-pyramid"}
    library.sweep._erase(original)
    assert kept() == set()
