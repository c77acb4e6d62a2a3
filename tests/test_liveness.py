import pytest

from ingest.liveness import openings
from storage.schema import BINARYREFS_ORIGINAL
from tests.domain import STORES, Domain, make_store


@pytest.fixture(params=STORES)
def domain(request, tmp_path):
    store = make_store(request.param, tmp_path)
    yield Domain(store)
    store.close()


def opening(domain, *originals):
    return list(openings(domain.store, [original.original_id for original in originals]))


def test_the_reference_attached_last_opens_an_original(domain):
    _, shared = domain.attach(context="one")
    last, _ = domain.attach(context="two")
    other, apart = domain.attach("http://a.example/2")
    assert opening(domain, apart, shared) == [other, last]


def test_after_its_newest_went_an_older_reference_opens_it_and_after_all_none(domain):
    first, original = domain.attach(context="one")
    last, _ = domain.attach(context="two")
    domain.references.detach(last.reference_id)
    assert opening(domain, original) == [first]
    domain.references.detach_context("one")
    assert opening(domain, original) == [None]


def test_an_attach_that_died_names_a_reference_of_another_original(domain):
    moved, here = domain.attach(context="one")
    last, _ = domain.attach(context="two")
    other, there = domain.attach("http://a.example/2", context="three")
    event = {"original_id": there.original_id, "event": domain.ids.ordered(), "reference_id": moved.reference_id}
    domain.store.put(BINARYREFS_ORIGINAL, event)
    assert opening(domain, here, there) == [last, other]
    assert opening(domain, there, here) == [other, last]
