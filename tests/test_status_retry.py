"""What is to do, what failed, and trying it again."""

import pytest

from ingest.fetch.outcome import Outcome
from ingest.localfiles import NotTaken
from ingest.retry import Retried, Wanted
from storage.schema import ORIGINALS, ORIGINALS_DATA
from tests.library import HOUR, NEVER, SECOND, Library, failed


def test_the_queue_by_host_the_longest_first():
    library = Library()
    for n in range(3):
        library.references.attach("c", f"http://many/{n}")
    library.references.attach("d", "http://many/0")  # the same original: one entry
    library.put("http://later/a", failed())
    _, original = library.references.attach("c", "http://busy/a")
    library.claims.take(original)
    library.put("http://done/a")
    many, busy, later = library.overview.queues()
    assert (many.host, many.due, many.later, many.running, many.failing) == ("many", 3, 0, 0, 0)
    assert (busy.host, busy.due, busy.later, busy.running) == ("busy", 0, 0, 1)
    assert (later.host, later.due, later.later, later.running, later.failing) == ("later", 0, 1, 0, 1)
    assert many.oldest < busy.oldest < later.oldest
    assert later.oldest > library.now + 50 * SECOND
    library.now += HOUR
    assert [(one.host, one.due) for one in library.overview.queues()] == [("many", 3), ("busy", 1), ("later", 1)]


def test_what_is_held_and_what_failed():
    library = Library()
    library.put("http://h/a", b"1" * 10)
    library.put("http://h/b", b"2" * 20)
    library.put("http://h/c", failed(Outcome.HTTP_ERROR, "404", transient=False))
    library.put("http://i/d", failed(Outcome.EMPTY, "empty", transient=False))
    library.put("http://i/e", failed())
    held = library.overview.holdings()
    assert held.statuses == {"OK": 2, "ERROR": 2, "RETRY": 1}
    assert held.bytes == 30
    assert held.outcomes == {"HTTP_ERROR": 1, "EMPTY": 1}
    assert held.hosts == {"h": 1, "i": 1}
    assert {one.url for one in library.overview.failures()} == {"http://h/c", "http://i/d", "http://i/e"}


def library_of_failures():
    library = Library()
    library.put("http://h/ok")
    library.put("http://h/404", failed(Outcome.HTTP_ERROR, "404", transient=False))
    library.put("http://h/down", failed(), context="d")
    library.put("http://i/down", failed())
    return library


def test_retry_by_host():
    library = library_of_failures()
    assert library.retry.run(Wanted(host="h")) == Retried(2)
    queued = {one.host: one for one in library.overview.queues()}
    assert (queued["h"].due, queued["h"].failing, queued["i"].later) == (2, 0, 1)


def test_retry_by_outcome_and_by_context():
    library = library_of_failures()
    assert library.retry.run(Wanted(outcome="NETWORK_ERROR", context="d")) == Retried(1)
    queued = {one.host: one for one in library.overview.queues()}
    assert (queued["h"].due, queued["i"].later) == (1, 1)
    assert library.retry.run(Wanted(context="c")) == Retried(2)
    assert library.overview.holdings().statuses == {"OK": 1, "PROCESSING": 3}
    assert library.retry.run(Wanted()) == Retried(0)


def test_a_retried_original_begins_with_no_failures():
    library = library_of_failures()
    library.retry.run(Wanted(host="i"))
    (original,) = (one for one in library.queue.waiting() if one.host == "i")
    assert (original.status, original.failures, original.first_failure) == ("PROCESSING", 0, None)
    assert original.due <= library.now


def test_retry_leaves_local_files_to_ingest(tmp_path):
    library = Library()
    (tmp_path / "a.jpg").write_bytes(b"")
    with pytest.raises(NotTaken):
        library.files.put("c", tmp_path / "a.jpg", None, NEVER)
    assert library.retry.run(Wanted(outcome="EMPTY")) == Retried(0)
    assert [row["status"] for row in library.store.scan(ORIGINALS)[0]] == ["ERROR"]


def test_retry_leaves_what_a_sweep_is_taking():
    library = Library()
    _, original = library.put("http://h/404", failed(Outcome.HTTP_ERROR, "404", transient=False))
    library.change(original, retired=1)
    assert library.retry.run(Wanted(host="h")) == Retried(0)


def damage(library, original):
    key = (original.original_id, original.attempt, 0)
    held = library.store._data[ORIGINALS_DATA.name][key]
    held.set((0,), held.rows[(0,)] | {"data": b"z" * len(held.rows[(0,)]["data"])})


def test_what_is_damaged_is_fetched_again_and_its_old_bytes_go_only_then():
    library = Library()
    library.put("http://h/good")
    _, original = library.put("http://h/bad")
    damage(library, original)
    assert library.retry.run(Wanted()) == Retried(0)
    assert library.retry.run(Wanted(damaged=True)) == Retried(1)
    queued = library.original(original.original_id)
    assert (queued.status, queued.attempt) == ("PROCESSING", original.attempt)
    assert library.retry.run(Wanted(damaged=True)) == Retried(0)

    library.put("http://h/bad", failed(transient=False))
    assert library.original(original.original_id).attempt == original.attempt
    library.sweep.run(0)
    assert library.blobs.has(original.original_id, original.attempt)

    _, stored = library.put("http://h/bad")
    assert (stored.status, stored.original_id) == ("OK", original.original_id)
    assert library.check.run().is_sound
    library.now += 3 * HOUR
    library.sweep.run(0)
    assert not library.blobs.has(original.original_id, original.attempt)
    assert library.blobs.has(stored.original_id, stored.attempt)
    assert library.check.run().is_sound


def test_a_damaged_local_file_is_taken_when_it_is_ingested_again(tmp_path):
    library = Library()
    path = tmp_path / "a.bin"
    path.write_bytes(b"bytes" * 100)
    taken = library.files.put("c", path, None, NEVER)
    damage(library, taken.original)
    assert library.retry.run(Wanted(damaged=True)) == Retried(0, local=1)
    assert [one.url for one in library.overview.failures()] == [path.as_uri()]
    again = library.files.put("c", path, None, NEVER)
    assert again.is_new and again.reference.reference_id == taken.reference.reference_id
    assert library.check.run().is_sound
