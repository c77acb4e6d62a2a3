"""Bulk ingest: every line has an outcome, a second run doubles nothing, and a stop loses nothing."""

import itertools
import threading

import pytest

from ingest.bulk import WINDOW, Bulk
from ingest.entries import Entry
from ingest.fetch.outcome import Outcome
from ingest.localfiles import Stopped
from ingest.worker import Worker
from storage.schema import BINARY_REFS, ORIGINALS
from tests.library import NEVER, Library, failed


@pytest.fixture
def library():
    return Library(tick=5000)  # so that the queue's pauses pass


def listed(*urls, context="c"):
    return [Entry(number, url, context) for number, url in enumerate(urls, 1)]


def run(library, entries, stop=None, **more):
    """A bulk run with a worker of the same library beside it."""
    stop, ended = stop or threading.Event(), threading.Event()
    worker = Worker(library.queue, library.jobs, threads=2, sweep=lambda: None, sweep_interval=3600)
    thread = threading.Thread(target=worker.run, args=(ended,))
    thread.start()
    try:
        return Bulk(library.store, library.references, **more).run(entries, stop)
    finally:
        ended.set()
        thread.join()


def counts(summary):
    return {
        name: value for name in ("stored", "present", "retry", "error", "invalid") if (value := getattr(summary, name))
    }


def test_each_line_has_its_outcome(library):
    library.fetcher.answers = {
        "http://h/ok": b"1234",
        "http://h/404": failed(Outcome.HTTP_ERROR, "answered 404", transient=False),
        "http://h/down": failed(),
    }
    entries = [
        *listed("http://h/ok", "http://h/404", "http://h/down", "http://10.0.0.1/x", "ftp://h/x", "photo.jpg"),
        Entry(7, "http://h/ok", "bad/context"),
        Entry(8, "", "c", wrong="there is no url"),
    ]
    summary = run(library, entries)
    assert summary.total == summary.done == 8
    assert counts(summary) == {"stored": 1, "error": 1, "retry": 1, "invalid": 5}
    assert not summary.all_well
    assert not summary.stopped
    found = {one.entry.line: (one.status, one.reason) for one in summary.failures}
    assert found[2] == ("ERROR", "HTTP_ERROR: answered 404")
    assert found[3] == ("RETRY", "NETWORK_ERROR: no route")
    assert "10.0.0.0/8" in found[4][1]
    assert "--allow-files" in found[6][1]
    assert found[8] == ("INVALID", "there is no url")
    assert {line: status for line, (status, _) in found.items() if line > 3} == dict.fromkeys(range(4, 9), "INVALID")


def test_a_second_run_doubles_nothing_and_tries_failures_again(library):
    library.fetcher.answers = {"http://h/a": b"1", "http://h/b": failed(Outcome.EMPTY, "empty", transient=False)}
    entries = listed("http://h/a", "http://h/b")
    assert counts(run(library, entries)) == {"stored": 1, "error": 1}
    library.fetcher.answers["http://h/b"] = b"2"
    second = run(library, entries)
    assert counts(second) == {"present": 1, "stored": 1}
    assert second.all_well
    assert (len(library.store.scan(ORIGINALS)[0]), len(library.store.scan(BINARY_REFS)[0])) == (2, 2)


def test_one_url_in_many_contexts_is_fetched_once(library):
    library.fetcher.answers = {"http://h/a": b"1"}
    summary = run(library, [Entry(n, "http://h/a", f"c{n}") for n in range(20)])
    assert summary.all_well
    assert len(library.store.scan(ORIGINALS)[0]) == 1


def test_a_stop_tells_so_and_the_next_run_goes_on(library):
    stop = threading.Event()
    library.fetcher.answers = {f"http://h/{n}": b"x" for n in range(10)}

    def lines():
        yield from listed(*(f"http://h/{n}" for n in range(5)))
        stop.set()
        yield from listed(*(f"http://h/{n}" for n in range(5, 10)))

    first = run(library, lines(), stop)
    assert first.stopped
    assert not first.all_well
    assert first.total == 5
    second = run(library, listed(*(f"http://h/{n}" for n in range(10))))
    assert second.all_well
    assert second.done == 10
    assert len(library.store.scan(ORIGINALS)[0]) == 10


def test_a_stop_leaves_the_files_that_no_reader_has_begun(library, tmp_path):
    stop, taken = threading.Event(), []

    class Files:
        def put(self, context, path, mime, stop):
            if stop.is_set():
                raise Stopped("stopped")
            taken.append(path.name)
            stop.set()
            return library.files.put(context, path, mime, NEVER)

    paths = [tmp_path / f"{number:03}.bin" for number in range(100)]
    for path in paths:
        path.write_bytes(path.name.encode())
    summary = run(library, listed(*map(str, paths)), stop, files=Files(), readers=1)
    assert taken == ["000.bin"]
    assert summary.stopped
    assert counts(summary) == {"stored": 1}  # and no failure
    assert run(library, listed(*map(str, paths)), files=library.files).all_well
    assert len(library.store.scan(ORIGINALS)[0]) == 100


def test_a_list_longer_than_the_window_is_read_as_room_comes(library):
    library.fetcher.answers = {"http://h/a": b"1"}
    ahead = itertools.count()
    under_way = []

    def lines():
        for number in range(WINDOW + 300):
            under_way.append(next(ahead) - bulk._summary.done)
            yield Entry(number, "http://h/a", f"c{number}")

    stop, ended = threading.Event(), threading.Event()
    worker = Worker(library.queue, library.jobs, threads=1, sweep=lambda: None, sweep_interval=3600)
    thread = threading.Thread(target=worker.run, args=(ended,))

    def progress(summary):
        if summary.total == WINDOW and not thread.ident:
            thread.start()

    bulk = Bulk(library.store, library.references, progress=progress)
    assert bulk.run(lines(), stop).all_well
    ended.set()
    thread.join()
    assert max(under_way) <= WINDOW


def test_patience_waits_for_the_last_try(library):
    library.fetcher.answers = {"http://h/a": failed()}
    entries = listed("http://h/a")
    stop = threading.Event()

    def progress(summary):
        """Once it failed, the source recovers and the minute of back-off passes."""
        rows = library.store.scan(ORIGINALS)[0]
        if rows and rows[0]["status"] == "RETRY":
            library.fetcher.answers["http://h/a"] = b"1"
            library.now += 61_000_000

    assert counts(run(library, entries, stop, patient=True, progress=progress)) == {"stored": 1}


def test_local_files(library, tmp_path):
    (tmp_path / "a").write_bytes(b"1234")
    (tmp_path / "empty").write_bytes(b"")
    entries = listed(str(tmp_path / "a"), (tmp_path / "empty").as_uri(), str(tmp_path / "nothing"))
    summary = run(library, entries, files=library.files)
    assert counts(summary) == {"stored": 1, "error": 2}
    assert {one.entry.line: one.reason for one in summary.failures} == {
        2: "EMPTY: the file is empty",
        3: "No such file or directory",
    }
    assert counts(run(library, entries[:1], files=library.files)) == {"present": 1}


def test_an_original_that_is_removed_meanwhile_is_told(library):
    def lines():
        yield Entry(1, "http://h/a", "c")
        library.references.detach_context("c")
        library.sweep.run(0)

    summary = Bulk(library.store, library.references).run(lines(), threading.Event())
    assert [one.reason for one in summary.failures] == ["was removed meanwhile"]
