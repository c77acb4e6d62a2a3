"""One try at one original: what each ending leaves in the record, in the log and in store."""

import io
import threading

import pytest
from PIL import Image

from ingest.fetch.outcome import Fetched, Outcome
from ingest.recent import Recent
from ingest.records import Status
from ingest.scaled import DamagedBox, prepared
from storage.errors import Full
from storage.schema import ORIGINALS_DATA, RECENT, SCALED
from tests.domain import HOUR, MINUTE, SECOND, Domain, make_store

URL = "http://a.example/1"


@pytest.fixture(params=["memory without units", "sqlite"])
def domain(request, tmp_path):
    store = make_store(request.param, tmp_path)
    yield Domain(store)
    store.close()


def jpeg(width=60, height=40):
    file = io.BytesIO()
    Image.effect_noise((width, height), 80).convert("RGB").save(file, "JPEG")
    return file.getvalue()


def run(domain, answer, mime=None):
    """The original after one try whose fetch ends so, and its log."""
    reference, _ = domain.attach(URL, mime=mime)
    domain.fetcher.answers[URL] = answer
    assert domain.work() == 1
    return domain.original(reference), [line.message for line in domain.logs.lines([reference])]


def test_bytes_that_came_whole_are_stored_and_described(domain):
    original, log = run(domain, b"0123456789", mime="text/plain")
    assert (original.status, original.size, original.part_size) == (Status.OK, 10, 4)
    assert b"".join(domain.blobs.parts(original.blob, 0, 10)) == b"0123456789"
    assert original.checksum == "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882"
    assert (original.trying, original.lease_owner, original.lease_until, original.reason) == (None,) * 4
    assert original.created % 1000 == 0
    assert original.width is None
    assert log[0] == "queued: http://a.example/1"
    assert log[1].startswith("stored: 10 bytes, text/plain, sha256 84d8")
    assert domain.rows(RECENT) == []


def test_an_image_gets_its_boxes_and_its_place_in_the_gallery(domain):
    original, log = run(domain, jpeg(1000, 500))
    assert (original.status, original.width, original.height) == (Status.OK, 1000, 500)
    sizes = {}
    for box in SCALED:
        with Image.open(io.BytesIO(prepared(domain.store, original, box))) as image:
            sizes[box] = image.size
    assert sizes == {(800, 600): (800, 400), (440, 330): (440, 220), (140, 105): (140, 70), (116, 87): (116, 58)}
    assert log[-1].endswith("jpeg image of 1000 × 500 pixels")
    assert [found.original_id for _, found in domain.recent.newest(limit=5).found] == [original.original_id]


def test_a_damaged_box_is_told(domain):
    original, _ = run(domain, jpeg())
    table = SCALED[140, 105]
    row = domain.store.get(table, (original.original_id, original.attempt))
    domain.store.erase(table, (original.original_id, original.attempt))
    if domain.store.transactional:  # the strict memory store swallows what is written after an erase
        domain.store.put(table, row | {"data": row["data"][:-1]})
        with pytest.raises(DamagedBox):
            prepared(domain.store, original, (140, 105))


@pytest.mark.parametrize("answer", [jpeg()[:900], b"\xff\xd8 nothing of an image"])
def test_an_image_that_cannot_be_decoded_is_an_error(domain, answer):
    original, log = run(domain, answer)
    assert (original.status, original.outcome) == (Status.ERROR, Outcome.NOT_DATA)
    assert original.reason.count("can't be decoded") == 1
    assert "can't be decoded" in log[-1]
    assert domain.rows(ORIGINALS_DATA) == []
    assert all(domain.rows(table) == [] for table in SCALED.values())


def test_what_the_caller_declared_an_image_must_be_one(domain):
    original, _ = run(domain, b"just text", mime="image/png")
    assert (original.status, original.outcome) == (Status.ERROR, Outcome.NOT_DATA)


def test_svg_is_kept_without_images(domain):
    original, _ = run(domain, b"<svg xmlns='http://www.w3.org/2000/svg'/>", mime="image/svg+xml")
    assert (original.status, original.width) == (Status.OK, None)


def failing(**fields):
    return Fetched(Outcome.HTTP_ERROR, "answered 503", transient=True, counted=True, http_status=503, **fields)


def test_failures_are_tried_again_after_1_min_15_min_4_h_and_then_end(domain):
    reference, _ = domain.attach(URL)
    domain.fetcher.answers[URL] = failing()
    waits = []
    for _ in range(3):
        assert domain.work() == 1
        original = domain.original(reference)
        assert original.status == Status.RETRY
        waits.append((original.due - original.last_failure) // SECOND)
        domain.pass_(original.due - domain.time[0] + SECOND)
    assert waits == [60, 900, 14400]
    assert domain.work() == 1
    original = domain.original(reference)
    assert (original.status, original.failures, original.http_status) == (Status.ERROR, 4, 503)
    assert original.first_failure < original.last_failure
    assert domain.rows(ORIGINALS_DATA) == []


def test_retry_after_is_heeded(domain):
    original, log = run(domain, failing(retry_after=7.0))
    assert (original.due - original.last_failure) // SECOND == 7
    assert "next try in 7 s" in log[-1]


def test_a_success_forgets_the_failures(domain):
    run(domain, failing())
    domain.pass_(MINUTE)
    domain.fetcher.answers[URL] = b"x"
    domain.work()
    _, original = domain.references.page("ctx", limit=1)[0]
    assert (original.status, original.failures, original.first_failure) == (Status.OK, 0, None)


def test_a_permanent_failure_ends_at_once(domain):
    gone = Fetched(Outcome.HTTP_ERROR, "answered 404", counted=True, http_status=404)
    original, log = run(domain, gone)
    assert (original.status, original.reason) == (Status.ERROR, "answered 404")
    assert log[-1] == "HTTP_ERROR: answered 404"


def test_a_stop_gives_the_job_back_uncounted(domain):
    stop = threading.Event()

    def stopped(event):
        event.set()
        return Fetched(Outcome.NETWORK_ERROR, "stopped", transient=True)

    reference, _ = domain.attach(URL)
    domain.fetcher.answers[URL] = stopped
    domain.jobs.run(domain.claim(), stop)
    original = domain.original(reference)
    assert (original.status, original.lease_owner, original.failures) == (Status.PROCESSING, None, None)
    domain.fetcher.answers[URL] = b"x"
    domain.pass_(MINUTE)
    assert domain.work() == 1
    assert domain.original(reference).status == Status.OK


def test_a_full_store_is_no_failure_of_the_source(domain):
    def full(_):
        raise Full("no room")

    original, _ = run(domain, full)
    assert (original.status, original.outcome, original.failures) == (Status.RETRY, Outcome.SYSTEM_ERROR, 0)
    assert "no room" in original.reason


def test_a_fault_of_ours_is_counted_so_that_it_ends(domain):
    def bug(_):
        raise ZeroDivisionError("oops")

    original, _ = run(domain, bug)
    assert (original.status, original.failures) == (Status.RETRY, 1)
    assert "ZeroDivisionError" in original.reason


def test_a_try_that_lost_its_lease_leaves_the_successors_bytes_alone(domain):
    reference, _ = domain.attach(URL)
    late = domain.claim()
    domain.pass_(HOUR)
    successor = domain.also("two")
    successor.fetcher.answers[URL] = b"successor"
    assert successor.work() == 1
    domain.fetcher.answers[URL] = b"late"
    domain.jobs.run(late, threading.Event())
    original = domain.original(reference)
    assert b"".join(domain.blobs.parts(original.blob, 0, original.size)) == b"successor"
    assert {row["attempt"] for row in domain.rows(ORIGINALS_DATA)} == {original.attempt}


def test_the_gallery_is_newest_first_paged_and_follows_the_sweep(domain):
    references = []
    for number in range(5):
        domain.fetcher.answers[f"http://a.example/{number}"] = jpeg()
        references.append(domain.attach(f"http://a.example/{number}")[0].reference_id)
        domain.work()
        domain.pass_(30 * HOUR)  # over several days
    first = domain.recent.newest(limit=2)
    assert [found.reference_id for found, _ in first.found] == references[:2:-1]
    rest = domain.recent.newest(before=first.older, limit=3)
    assert [found.reference_id for found, _ in rest.found] == references[2::-1]
    assert rest.older is None
    domain.references.detach(references[4])
    assert [found.reference_id for found, _ in domain.recent.newest(limit=1).found] == [references[3]]
    domain.sweep.run(0)
    assert len(domain.rows(RECENT)) == 4


def test_the_gallery_shows_the_reference_that_is_left(domain):
    kept = {}
    for number in range(3):
        domain.fetcher.answers[f"http://a.example/{number}"] = jpeg()
        first, later = (domain.attach(f"http://a.example/{number}", context)[0] for context in ("first", "later"))
        domain.work()
        domain.pass_(HOUR)
        domain.references.detach(later.reference_id)
        if number == 1:
            domain.references.detach(first.reference_id)
        else:
            kept[first.original_id] = first.reference_id
    page = domain.recent.newest(limit=3)
    assert {original.original_id: reference.reference_id for reference, original in page.found} == kept


def test_a_page_of_the_gallery_looks_at_a_bounded_number_of_entries(domain):
    references = []
    for number, context in enumerate(["kept", "gone", "gone", "gone", "gone"]):
        domain.fetcher.answers[f"http://a.example/{number}"] = jpeg()
        references.append(domain.attach(f"http://a.example/{number}", context)[0].reference_id)
        domain.work()
        domain.pass_(HOUR)
    domain.references.detach_context("gone")
    recent = Recent(domain.store, look=3)
    page = recent.newest(limit=2)
    assert page.found == []
    page = recent.newest(before=page.older, limit=2)
    assert [found.reference_id for found, _ in page.found] == references[:1]
    assert page.older is None
