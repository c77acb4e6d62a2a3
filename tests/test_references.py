from threading import Event

import pytest

from ingest.fetch.url import BlockedUrl, InvalidUrl
from ingest.records import BadContext, Status, reference_id_of
from ingest.references import References
from storage.schema import BINARY_REFS, BINARYREFS_CONTEXT, CANDIDATES, LOGS, ORIGINALS, QUEUE, URLS
from storage.sqlite import SqliteStore
from storage.table import Put
from tests.domain import HOUR, SECOND, STORES, Domain, make_store


@pytest.fixture(params=STORES)
def domain(request, tmp_path):
    store = make_store(request.param, tmp_path)
    yield Domain(store)
    store.close()


def test_attach_queues_a_new_original(domain):
    reference, original = domain.attach()
    assert original.status == Status.PROCESSING
    assert (original.url, original.host) == ("http://a.example/1", "a.example")
    assert [(row["host"], row["original_id"]) for row in domain.rows(QUEUE)] == [("a.example", original.original_id)]
    assert {row["kind"] for row in domain.rows(CANDIDATES)} == {"original"}
    assert domain.references.find(reference.reference_id) == (reference, original)


def test_the_same_put_again_is_the_same_reference_and_writes_nothing(domain):
    first = domain.attach()
    before = [domain.rows(table) for table in (URLS, ORIGINALS, BINARY_REFS, QUEUE, BINARYREFS_CONTEXT)]
    again = domain.attach("HTTP://A.example:80/1#part")
    assert (again[0].reference_id, again[0].attached) == (first[0].reference_id, first[0].attached)
    assert [domain.rows(table) for table in (URLS, ORIGINALS, BINARY_REFS, QUEUE, BINARYREFS_CONTEXT)] == before


def test_a_url_has_one_original_for_all_contexts(domain):
    one, two = domain.attach(context="one"), domain.attach(context="two")
    assert one[1].original_id == two[1].original_id
    assert one[0].reference_id != two[0].reference_id
    assert len(domain.rows(QUEUE)) == 1


def test_an_error_is_queued_again(domain):
    reference, original = domain.attach()
    claim = domain.claim()
    claim.conclude(status=Status.ERROR, failures=4, lost_leases=2)
    domain.pass_(HOUR)
    _, again = domain.attach()
    assert (again.status, again.failures, again.lost_leases) == (Status.PROCESSING, 0, 0)
    assert again.original_id == original.original_id
    assert again.due > original.due
    assert domain.work() == 1
    assert domain.original(reference).status == Status.OK


def test_an_error_is_queued_again_as_what_the_caller_declares_now(domain):
    _, original = domain.attach(mime="image/jpeg")
    domain.claim().conclude(status=Status.ERROR)
    assert domain.attach()[1].mime_declared == "image/jpeg"
    domain.claim().conclude(status=Status.ERROR)
    _, again = domain.attach(mime="text/html")
    assert (again.original_id, again.status, again.mime_declared) == (original.original_id, "PROCESSING", "text/html")


@pytest.mark.parametrize(
    ("context", "url", "error"),
    [
        ("a/b", "http://a.example/", BadContext),
        ("", "http://a.example/", BadContext),
        ("..", "http://a.example/", BadContext),
        ("x" * 256, "http://a.example/", BadContext),
        ("ctx", "ftp://a.example/", InvalidUrl),
        ("ctx", "http://user:pw@a.example/", InvalidUrl),
        ("ctx", "http://0x7f.1/", BlockedUrl),
        ("ctx", "http://[::ffff:10.0.0.1]/", BlockedUrl),
    ],
)
def test_what_is_refused_leaves_nothing(domain, context, url, error):
    with pytest.raises(error):
        domain.references.attach(context, url)
    assert domain.rows(ORIGINALS) == domain.rows(CANDIDATES) == []


def test_detach_is_final_and_can_be_repeated(domain):
    reference, original = domain.attach()
    domain.logs.note_reference(reference, "hello")
    domain.references.detach(reference.reference_id)
    domain.references.detach(reference.reference_id)
    assert domain.references.find(reference.reference_id) is None
    assert domain.references.page("ctx", limit=10) == []
    assert domain.rows(LOGS) == domain.rows(BINARYREFS_CONTEXT) == []
    assert domain.store.get(ORIGINALS, (original.original_id,)) is not None


def test_attach_after_detach_gives_the_same_id_and_an_empty_log(domain):
    first, _ = domain.attach()
    domain.logs.note_reference(first, "of the first life")
    domain.references.detach(first.reference_id)
    second, _ = domain.attach()
    assert second.reference_id == first.reference_id
    assert second.attached > first.attached
    assert "of the first life" not in [line.message for line in domain.logs.lines([second])]


def test_a_context_goes_in_one_write_and_its_name_can_be_used_again(domain):
    old = [domain.attach(f"http://a.example/{n}")[0] for n in range(3)]
    domain.references.detach_context("ctx")
    assert [domain.references.find(reference.reference_id) for reference in old] == [None] * 3
    assert domain.references.page("ctx", limit=10) == []
    new, _ = domain.attach("http://a.example/1")
    assert [found[0] for found in domain.references.page("ctx", limit=10)] == [new]
    domain.sweep.run(0)  # works the old generation off, and leaves the new one alone
    assert [row["reference_id"] for row in domain.rows(BINARY_REFS)] == [new.reference_id]
    assert [found[0] for found in domain.references.page("ctx", limit=10)] == [new]


def test_a_context_that_never_was_is_no_error(domain):
    domain.references.detach_context("never")
    assert domain.references.page("never", limit=10) == []
    assert domain.rows(CANDIDATES) == []


def test_pages_are_ordered_whole_and_without_repetition(domain):
    made = {domain.attach(f"http://a.example/{n}")[0].reference_id for n in range(40)}
    seen, after = [], None
    while page := domain.references.page("ctx", after=after, limit=7):
        assert len(page) == 7 or len(seen) + len(page) == 40
        seen += [reference.reference_id for reference, _ in page]
        after = seen[-1]
    assert seen == sorted(made)


def test_an_index_row_without_its_reference_is_not_listed(domain):
    reference, _ = domain.attach()
    stale = {"generation": reference.generation, "digit": "0", "reference_id": "0abc", "attached": "0"}
    domain.store.put(BINARYREFS_CONTEXT, stale)
    assert [found[0] for found in domain.references.page("ctx", limit=10)] == [reference]


def test_a_retired_original_is_served_and_not_attached_to(domain):
    reference, original = domain.attach()
    domain.work()
    domain.references.detach(reference.reference_id)
    kept, _ = domain.attach(context="kept")
    row = domain.store.get(ORIGINALS, (original.original_id,))
    domain.store.commit(ORIGINALS, (original.original_id,), [Put(row | {"retired": 1}, row["rev"])])
    _, fresh = domain.attach(context="other")
    assert fresh.original_id != original.original_id
    assert domain.original(kept).original_id == original.original_id
    moved, now = domain.attach(context="kept")
    assert (moved.reference_id, now.original_id) == (kept.reference_id, fresh.original_id)


def test_adopt_moves_the_url_and_leaves_other_contexts_alone(domain):
    url = "file:///data/a.txt"
    first = domain.claims.begin(url, "file", None)
    domain.jobs.fill(first, lambda sink: domain.fetcher.fetch(url, sink), Event())
    old, _ = domain.references.adopt("one", first.original)
    second = domain.claims.begin(url, "file", None)
    domain.jobs.fill(second, lambda sink: domain.fetcher.fetch(url, sink), Event())
    _, original = domain.references.adopt("two", second.original)
    assert original.original_id == second.original.original_id
    assert domain.original(old).original_id == first.original.original_id
    assert domain.store.get(URLS, (url,))["original_id"] == second.original.original_id
    again, _ = domain.references.adopt("one", second.original)
    assert again.reference_id == old.reference_id
    assert domain.original(again).original_id == second.original.original_id


def test_find_may_answer_from_memory_for_the_ttl_only(domain):
    reference, _ = domain.attach()
    remembering = References(
        domain.store, ids=domain.ids, clock=domain.clock, guard=domain.references._guard, reference_ttl=5
    )
    assert remembering.find(reference.reference_id)[1].status == Status.PROCESSING
    domain.work()
    assert remembering.find(reference.reference_id)[1].status == Status.OK  # PROCESSING isn't remembered
    domain.references.detach(reference.reference_id)  # by another process
    assert remembering.find(reference.reference_id) is not None
    domain.pass_(5 * SECOND)
    assert remembering.find(reference.reference_id) is None


def test_its_own_detach_is_seen_at_once(domain):
    reference, _ = domain.attach()
    domain.work()
    remembering = References(
        domain.store, ids=domain.ids, clock=domain.clock, guard=domain.references._guard, reference_ttl=5
    )
    assert remembering.find(reference.reference_id)
    remembering.detach(reference.reference_id)
    assert remembering.find(reference.reference_id) is None


def test_the_reference_id_is_derived_from_context_and_url():
    assert reference_id_of("ctx", "http://a.example/1") == "0ab18c7e-f627-58d5-93d9-07a92712d1c8"


class Counted(SqliteStore):
    """Counts its reads of single rows."""

    gets = 0

    def get(self, *arguments, **options):
        self.gets += 1
        return super().get(*arguments, **options)


class TestUnchangedStores:
    """On the embedded store, nothing is read again before anybody writes."""

    @pytest.fixture
    def stores(self, tmp_path):
        stores = Counted(tmp_path / "store.sqlite"), SqliteStore(tmp_path / "store.sqlite")
        yield stores
        for store in stores:
            store.close()

    def test_a_reference_is_read_once(self, stores):
        domain = Domain(stores[0])
        ids = [domain.attach(f"http://a.example/{number}")[0].reference_id for number in range(3)]
        found = [domain.references.find(one) for one in ids]
        stores[0].gets = 0
        assert [domain.references.find(one) for one in ids * 5] == found * 5
        assert stores[0].gets == 0

    def test_whatever_another_process_writes_is_seen_at_once(self, stores):
        here = Domain(stores[0])
        there = Domain(stores[1], "two", time=here.time)
        for number in range(3):
            reference, _ = here.attach(f"http://a.example/{number}")
            assert here.references.find(reference.reference_id)[1].status == Status.PROCESSING
            there.work()
            assert here.references.find(reference.reference_id)[1].status == Status.OK
            if number == 0:
                there.references.detach(reference.reference_id)
            elif number == 1:
                there.references.detach_context("ctx")
            else:
                here.references.detach(reference.reference_id)
            assert here.references.find(reference.reference_id) is None

    def test_memory_is_bounded(self, stores):
        domain = Domain(stores[0])
        memory = domain.references._remembered
        ids = [domain.attach(f"http://a.example/{number}")[0].reference_id for number in range(3)]
        memory.LIMIT = 2
        for _ in range(2):
            for one in ids:
                assert domain.references.find(one)
                assert len(memory._local.found) <= 2
