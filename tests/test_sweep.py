"""Whole runs of the sweep: the grace, the buckets, what a crash left, what it counts."""

import pytest

from ingest.leases import LEASE, Lease, Mark
from ingest.records import Status
from ingest.sweep import Sweep
from storage.schema import (
    BINARIES,
    BINARY_REFS,
    BINARYREFS_CONTEXT,
    BINARYREFS_ORIGINAL,
    CANDIDATES,
    LEASES,
    ORIGINAL_LOGS,
    ORIGINALS,
    ORIGINALS_DATA,
    TOKENS,
    URLS_ORIGINAL,
)
from tests.domain import HOUR, STORES, Domain, make_store

DAY = 24 * HOUR


@pytest.fixture(params=STORES)
def domain(request, tmp_path):
    store = make_store(request.param, tmp_path)
    yield Domain(store)
    store.close()


def stored(domain, url="http://a.example/1", context="ctx"):
    reference, _ = domain.attach(url, context)
    domain.work()
    return reference


def test_nothing_is_taken_before_the_grace_is_over(domain):
    reference = stored(domain)
    domain.references.detach(reference.reference_id)
    assert domain.sweep.run(DAY).originals == 0
    domain.pass_(DAY - HOUR)
    assert domain.sweep.run(DAY).originals == 0
    domain.pass_(3 * HOUR)
    report = domain.sweep.run(DAY)
    assert (report.originals, report.bytes) == (1, len(b"some bytes"))
    assert domain.rows(ORIGINALS) == domain.rows(ORIGINALS_DATA) == []


def test_a_late_release_counts_from_the_release(domain):
    reference = stored(domain)
    domain.pass_(3 * DAY)
    domain.references.detach(reference.reference_id)
    assert domain.sweep.run(DAY).originals == 0
    domain.pass_(DAY + 2 * HOUR)
    assert domain.sweep.run(DAY).originals == 1


def test_what_is_referred_to_stays_and_its_bucket_goes(domain):
    reference = stored(domain)
    domain.pass_(2 * DAY)
    report = domain.sweep.run(DAY)
    assert (report.referenced, report.originals, report.buckets > 0) == (1, 0, True)
    assert domain.rows(CANDIDATES) == []
    assert domain.references.find(reference.reference_id)[1].status == Status.OK


def test_a_whole_life_leaves_an_empty_store(domain):
    """But for the marks, and the context's own row where it wasn't taken down."""
    for number in range(3):
        stored(domain, f"http://a.example/{number}")
    domain.references.detach_context("ctx")
    domain.sweep.run(0)
    domain.pass_(2 * DAY)
    domain.sweep.run(0)
    domain.queue.tidy()
    left = {table.name: domain.rows(table) for table in BINARIES if table not in (LEASES, TOKENS)}
    assert {name for name, rows in left.items() if rows} <= {"recent_open", "queue_open"}
    assert {row["name"] for row in domain.rows(LEASES)} == {"mark:queue", "mark:candidates"}


def test_an_abandoned_attempt_is_erased_and_the_present_one_kept(domain):
    reference, _ = domain.attach()
    claim = domain.claim()
    with domain.blobs.create(claim.original.original_id, claim.attempt) as writer:
        writer.write(b"half of it")
        writer.commit()
    domain.pass_(LEASE + 2 * HOUR)  # the worker is gone
    assert domain.also("two").work() == 1
    assert len({row["attempt"] for row in domain.rows(ORIGINALS_DATA)}) == 2
    assert domain.sweep.run(HOUR).blobs == 1
    original = domain.original(reference)
    assert {row["attempt"] for row in domain.rows(ORIGINALS_DATA)} == {original.attempt}


def test_an_attempt_under_way_is_not_erased(domain):
    domain.attach()
    claim = domain.claim()
    with domain.blobs.create(claim.original.original_id, claim.attempt) as writer:
        writer.write(b"half of it")
        domain.sweep.run(0)
        blob = writer.commit()
    assert claim.conclude(status=Status.OK, attempt=claim.attempt, size=10, part_size=4, checksum=blob.sha256)
    assert b"".join(domain.blobs.parts(blob, 0, 10)) == b"half of it"


def test_a_put_that_died_before_its_original_leaves_nothing_for_ever(domain):
    class Dies(Exception):
        pass

    commit = domain.store.commit
    domain.store.commit = lambda *_: (_ for _ in ()).throw(Dies())
    try:
        with pytest.raises(Dies):
            domain.attach()
    finally:
        domain.store.commit = commit
    domain.pass_(2 * DAY)
    domain.sweep.run(DAY)
    for table in (ORIGINALS, URLS_ORIGINAL, ORIGINAL_LOGS, BINARYREFS_ORIGINAL, CANDIDATES):
        assert domain.rows(table) == [], table


def test_full_finds_what_was_never_announced(domain):
    reference = stored(domain)
    domain.references.detach(reference.reference_id)
    for row in domain.rows(CANDIDATES):
        domain.store.erase(CANDIDATES, (row["hour"], row["shard"]))
    domain.pass_(2 * DAY)
    assert domain.sweep.run(DAY).originals == 0
    assert domain.sweep.run(DAY, full=True).originals == 1


def test_a_dry_run_counts_and_writes_nothing(domain):
    kept, gone = stored(domain), stored(domain, "http://a.example/2", "other")
    domain.references.detach(gone.reference_id)
    before = {table.name: domain.rows(table) for table in BINARIES if table is not LEASES}
    report = domain.sweep.run(0, dry_run=True)
    assert (report.originals, report.referenced, report.dry_run) == (1, 1, True)
    assert {table.name: domain.rows(table) for table in BINARIES if table is not LEASES} == before
    assert domain.sweep.run(0).originals == 1
    assert domain.references.find(kept.reference_id) is not None


@pytest.mark.parametrize("grace", [0, DAY])
def test_a_dry_run_foretells_what_a_run_does(domain, grace):
    shared = "http://a.example/shared"
    stored(domain, shared)
    stored(domain, shared, "dead")
    for number in range(3):
        stored(domain, f"http://a.example/{number}", "dead")
    old = stored(domain, "http://a.example/old")
    domain.claim()  # nothing is due
    domain.attach("http://a.example/cut")
    claim = domain.claim()
    with domain.blobs.create(claim.original.original_id, claim.attempt) as writer:
        writer.write(b"half of it")
        writer.commit()
    domain.attach("http://a.example/nothing")
    domain.claim()  # a try that leaves nothing behind
    domain.pass_(3 * DAY)
    domain.also("two").work()
    domain.references.detach(old.reference_id)
    domain.pass_(2 * DAY)
    late = stored(domain, "http://a.example/late", "other")
    domain.references.detach(late.reference_id)
    domain.references.detach_context("dead")
    names = ("originals", "bytes", "blobs", "contexts", "references", "young")
    would, did = domain.sweep.run(grace, dry_run=True, full=True), domain.sweep.run(grace, full=True)
    assert {name: getattr(would, name) for name in names[:-1]} == {name: getattr(did, name) for name in names[:-1]}
    assert (would.originals, would.references, would.contexts) == ((1, 4, 1) if grace else (5, 4, 1))
    assert would.blobs == 1
    assert bool(would.young) == bool(did.young) == bool(grace)


def test_an_attempt_whose_worker_died_is_erased_however_late_it_is_taken_over(domain):
    reference, _ = domain.attach()
    claim = domain.claim()
    with domain.blobs.create(claim.original.original_id, claim.attempt) as writer:
        writer.write(b"half of it")
        writer.commit()
    domain.pass_(3 * DAY)
    domain.sweep.run(DAY)  # drops the bucket in which the attempt was announced
    assert domain.also("two").work() == 1
    domain.pass_(3 * DAY)
    domain.sweep.run(DAY)
    assert {row["attempt"] for row in domain.rows(ORIGINALS_DATA)} == {domain.original(reference).attempt}


def test_one_sweep_at_a_time(domain):
    lease = Lease(domain.store, "sweep", "somebody", domain.clock, lambda _: False)
    assert lease.take()
    report = domain.sweep.run(0)
    assert (report.skipped, report.is_clean) == (True, False)
    domain.pass_(LEASE)
    assert not domain.sweep.run(0).skipped


def test_an_unknown_kind_keeps_its_bucket_for_who_knows_it(domain):
    domain.store.put(CANDIDATES, {"hour": domain.clock() // HOUR, "shard": 3, "kind": "file", "id": "fs/1"})
    domain.pass_(2 * DAY)
    domain.sweep.run(DAY)
    assert len(domain.rows(CANDIDATES)) == 1
    seen = []
    knowing = Sweep(
        domain.store,
        domain.blobs,
        domain.references,
        owner="one",
        clock=domain.clock,
        others={"file": lambda name, grace: seen.append((name, grace))},
    )
    knowing.run(DAY)
    assert seen == [("fs/1", DAY)]
    assert domain.rows(CANDIDATES) == []


def test_the_mark_passes_what_is_done(domain):
    stored(domain)
    domain.pass_(5 * DAY)
    domain.sweep.run(DAY)
    assert Mark(domain.store, "candidates").read() >= domain.clock() // HOUR - 26


def test_a_dead_contexts_index_goes_as_whole_partitions(domain, monkeypatch):
    """Rows deleted alone would be tombstones that the next run reads past, when this one is cut."""
    for number in range(20):
        domain.attach(f"http://a.example/{number}")
    domain.references.detach_context("ctx")
    deleted, delete = [], domain.store.delete
    monkeypatch.setattr(domain.store, "delete", lambda table, key: (deleted.append(table), delete(table, key)))
    report = domain.sweep.run(DAY)
    assert (report.contexts, report.references) == (1, 20)
    assert domain.rows(BINARY_REFS) == domain.rows(BINARYREFS_CONTEXT) == []
    assert BINARYREFS_CONTEXT not in deleted
