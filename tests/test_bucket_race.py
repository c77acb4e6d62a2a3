"""Uploads, renames, deletes and the sweep beside each other, in every order of their calls, and with one of them killed
at any point: a file is whole and listed, or it isn't there, and what is left over can be found.
"""

import dataclasses
from contextlib import suppress
from types import SimpleNamespace

import pytest

from storage.bucket_errors import CorruptFile, FileExists, NoFile
from storage.bucket_record import Status
from storage.bucket_states import States
from storage.table import Put
from tests.bucket_setting import HOUR, nothing_left
from tests.bucket_world import OTHER, World
from tests.interleaving import sampled, schedules, with_kills


def close_and_sweep(world):
    stream = world.begun()

    def check(run):
        kept = world.status(stream.file_id) is Status.COMPLETE
        assert run.results.get(0, "stored" if kept else NoFile) == ("stored" if kept else NoFile)
        if run.killed is None and not kept:
            assert nothing_left(world.store, "fs")

    return [lambda: world.close(stream), lambda: world.bucket.sweep(stream.file_id, -HOUR)], check


def close_and_remove(world):
    stream = world.begun()

    def check(run):
        if run.killed is None:
            assert run.results[1] == "done"
            assert nothing_left(world.store, "fs")

    remove = world.bucket.delete
    return [lambda: world.close(stream), lambda: world.does(remove, stream.file_id, hard=True)], check


def two_of_one_name(world):
    one, two = world.begun(), world.begun(data=OTHER)

    def check(run):
        if run.killed is None:
            assert {record.id for record in world.bucket.revisions("a")} == {one.file_id, two.file_id}

    return [lambda: world.close(one), lambda: world.close(two)], check


def two_firsts(world):
    one, two = world.begun(), world.begun(data=OTHER)

    def check(run):
        found = world.bucket.revisions("a")
        assert len(found) <= 1, f"{len(found)} of one name"
        assert run.killed is not None or found
        assert list(run.results.values()).count("stored") <= 1

    return [lambda: world.close(one, "commit_first"), lambda: world.close(two, "commit_first")], check


def first_and_sweep(world):
    one, two = world.begun(), world.begun(data=OTHER)

    def check(run):
        assert len(world.bucket.revisions("a")) <= 1

    first = "commit_first"
    return [
        lambda: world.close(one, first),
        lambda: world.close(two, first),
        lambda: world.bucket.sweep(one.file_id, -HOUR),
    ], check


def two_renames(world):
    file_id = world.stored()

    def check(run):
        names = [name for name in "abc" if world.bucket.revisions(name)]
        assert len(names) == 1
        assert run.killed is not None or names != ["a"]

    rename = world.bucket.rename
    return [lambda: world.does(rename, file_id, "b"), lambda: world.does(rename, file_id, "c")], check


def there_and_back(world):
    file_id = world.stored()

    def check(run):
        assert len([*world.bucket.revisions("a"), *world.bucket.revisions("b")]) == 1

    rename = world.bucket.rename
    return [lambda: world.does(rename, file_id, "b"), lambda: world.does(rename, file_id, "a")], check


def rename_and_metadata(world):
    file_id = world.stored()

    def check(run):
        record = world.bucket.get(file_id)
        if run.killed is None:
            assert (record.filename, record.metadata) == ("b", 1)

    bucket = world.bucket
    return [
        lambda: world.does(bucket.rename, file_id, "b"),
        lambda: world.does(bucket.replace_metadata, file_id, 1),
    ], check


def rename_and_delete(world):
    file_id = world.stored()

    def check(run):
        if run.killed is None:
            assert world.status(file_id) is Status.DELETED
            assert len(list(world.bucket.find(status="Deleted"))) == 1

    bucket = world.bucket
    return [lambda: world.does(bucket.rename, file_id, "b"), lambda: world.does(bucket.delete, file_id)], check


def rename_and_remove(world):
    file_id = world.stored()

    def check(run):
        if run.killed is None:
            assert nothing_left(world.store, "fs")

    bucket = world.bucket
    return [
        lambda: world.does(bucket.rename, file_id, "b"),
        lambda: world.does(bucket.delete, file_id, hard=True),
    ], check


def two_deletes(world):
    file_id = world.stored()

    def check(run):
        if run.killed is None:
            assert nothing_left(world.store, "fs")

    bucket = world.bucket
    return [lambda: world.does(bucket.delete, file_id), lambda: world.does(bucket.delete, file_id, hard=True)], check


def two_removals(world):
    file_id = world.stored(deleted=True)

    def check(run):
        if run.killed is None:
            assert "done" in run.results.values()
            assert nothing_left(world.store, "fs")

    remove = world.bucket.delete
    return [
        lambda: world.does(remove, file_id, hard=True),
        lambda: world.does(remove, file_id, hard=True),
        lambda: world.bucket.sweep(file_id, -HOUR),
    ], check


def an_id_used_again(world):
    file_id = world.stored()

    def again():
        with suppress(FileExists), world.bucket.open_upload_stream("a", file_id=file_id) as stream:
            world.content[file_id] = OTHER
            stream.write(OTHER)
            return "stored"

    def check(run):
        if run.results.get(1) == "stored":
            assert world.status(file_id) is Status.COMPLETE
        elif run.killed is None:
            assert nothing_left(world.store, "fs")

    return [lambda: world.does(world.bucket.delete, file_id, hard=True), again], check


def reading_beside_a_second_upload(world):
    first, stream = world.stored(), world.begun(data=OTHER)

    def check(run):
        if 0 in run.results:
            file_id, data = run.results[0]
            assert file_id in (first, stream.file_id) and data == world.content[file_id]

    return [world.reads, lambda: world.close(stream)], check


def reading_beside_a_rename(world):
    first, second = world.stored(), world.stored(data=OTHER)

    def check(run):
        if 0 in run.results:
            file_id, data = run.results[0]
            assert file_id in (first, second) and data == world.content[file_id]

    return [world.reads, lambda: world.does(world.bucket.rename, second, "b")], check


SETTINGS = [
    close_and_sweep,
    close_and_remove,
    two_of_one_name,
    two_firsts,
    two_renames,
    there_and_back,
    rename_and_metadata,
    rename_and_delete,
    rename_and_remove,
    two_deletes,
    two_removals,
    an_id_used_again,
    reading_beside_a_second_upload,
    reading_beside_a_rename,
    first_and_sweep,
]


def worlds(setting, states=States):
    def world():
        made = World(states)
        actors, check = setting(made)
        made.store.stepping = True

        def check_all(run):
            made.store.stepping = False
            check(run)
            made.check()

        return actors, check_all

    return world


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda one: one.__name__)
def test_every_order(setting):
    assert schedules(worlds(setting), 1) > 5
    sampled(worlds(setting), 40, 1, kill=False)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda one: one.__name__)
def test_one_is_killed(setting):
    for victim in range(2):
        with_kills(worlds(setting), 0, victim)
    sampled(worlds(setting), 40, 2, kill=True)


@pytest.mark.stress
@pytest.mark.parametrize("setting", SETTINGS, ids=lambda one: one.__name__)
def test_every_order_for_long(setting):
    schedules(worlds(setting), 3 if setting not in (two_removals, first_and_sweep) else 2)
    for victim in range(2):
        with_kills(worlds(setting), 1, victim)
    sampled(worlds(setting), 3000, 3, kill=True)


class ErasesUnmarked(States):
    """Erases an upload's chunks before anybody is kept from completing it."""

    def _take_down(self, file_id, wanted):
        record = self.look(file_id)
        if record is not None and wanted(record):
            self._erase(record)
        super()._take_down(file_id, wanted)


class ListsLater(States):
    """Puts the index rows after the record."""

    def _replace(self, record, wanted):
        wanted = dataclasses.replace(wanted, naming=self._ids.ordered())
        outcome = self._store.commit(self._files, (record.id,), [Put(wanted.row(), record.rev)])
        if not outcome:
            return None
        self._store.put_many(self._index.rows(wanted))
        self._index.drop(record)
        return dataclasses.replace(wanted, rev=outcome.rev)


class NamesOnce(States):
    """Index rows of all changes have one naming, so that a slow deleter hits the later ones."""

    _ids = property(lambda self: SimpleNamespace(ordered=lambda: "0" * 32))


class KeepsNoName(States):
    """Looks whether a name is free, and doesn't hold it."""

    def complete_first(self, record, length, sha256):
        if any(True for _ in self._index.revisions(record.filename, Status.COMPLETE, newest_first=True)):
            raise FileExists(record.id)
        return self.complete(record, length, sha256)


@pytest.mark.parametrize(
    ("setting", "broken", "said"),
    [
        (close_and_sweep, ErasesUnmarked, "missing"),
        (rename_and_metadata, ListsLater, "lost from its name"),
        (two_of_one_name, ListsLater, "lost from its name"),
        (there_and_back, NamesOnce, "lost from"),
        (two_firsts, KeepsNoName, "2 of one name"),
    ],
)
def test_a_broken_protocol_is_caught(setting, broken, said):
    with pytest.raises((AssertionError, CorruptFile), match=said):
        schedules(worlds(setting, broken), 2)
        for victim in range(2):
            with_kills(worlds(setting, broken), 1, victim)
