"""The contract of rows, fifth part: a table of each kind against dicts, in sequences that hypothesis makes up."""

from __future__ import annotations

from typing import ClassVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from storage.contract_rows import NUMBERS, WORDS, RowContract, fresh
from storage.interface import Store
from storage.table import ABSENT, Expect, Key, Put, Remove, Row, Type, Value, cas, plain

TEXT, INT, BLOB = Type.TEXT, Type.INT, Type.BLOB

PLAIN = plain("contract_model", "p | n t", hint=True, p=TEXT, n=INT, t=TEXT, v=TEXT, w=BLOB)
CAS = cas("contract_model_cas", "p | n t", p=TEXT, n=INT, t=TEXT, v=TEXT, w=BLOB)

NUMBER = st.sampled_from([*NUMBERS[::2], 2, 3])
WORD = st.sampled_from(["a", "b", *WORDS[::3]])
PLACE = st.tuples(NUMBER, WORD)
BOUND = st.none() | st.tuples(NUMBER) | PLACE
SHELF = st.integers(0, 2)


class Model(RuleBasedStateMachine):
    """Three partitions of each table. An erased one is left for a new one, as no key is used again."""

    store: ClassVar[Store]
    other: ClassVar[Store]

    def __init__(self) -> None:
        super().__init__()
        self.partitions = [fresh() for _ in range(3)]
        self.plain: dict[Key, Row] = {}
        self.cas: dict[Key, Row] = {}
        self.gone: set[Key] = set()

    @rule(shelf=SHELF, place=PLACE, value=st.none() | WORD)
    def put(self, shelf: int, place: Key, value: Value) -> None:
        key = (self.partitions[shelf], *place)
        if key in self.gone:
            return
        row = self.plain.setdefault(key, _row(key, value))
        self.store.put(PLAIN, row)

    @rule(shelf=SHELF, places=st.lists(PLACE, max_size=6), window=st.integers(1, 4))
    def put_many(self, shelf: int, places: list[Key], window: int) -> None:
        keys = [key for place in places if (key := (self.partitions[shelf], *place)) not in self.gone]
        for key in keys:
            self.plain.setdefault(key, _row(key, None))
        self.store.put_many(((PLAIN, self.plain[key]) for key in keys), window=window)

    @rule(shelf=SHELF, place=PLACE)
    def delete(self, shelf: int, place: Key) -> None:
        key = (self.partitions[shelf], *place)
        if self.plain.pop(key, None) is not None:
            self.gone.add(key)
        self.store.delete(PLAIN, key)

    @rule(shelf=SHELF)
    def erase(self, shelf: int) -> None:
        partition, self.partitions[shelf] = self.partitions[shelf], fresh()
        for table, rows in ((PLAIN, self.plain), (CAS, self.cas)):
            self.store.erase(table, (partition,))
            for key in [key for key in rows if key[0] == partition]:
                del rows[key]
            assert self.other.read(table, (partition,), limit=99) == []

    @rule(
        shelf=SHELF,
        wanted=st.dictionaries(
            PLACE,
            st.tuples(st.sampled_from(["right", "right", "wrong", "absent", "rides"]), st.booleans(), st.none() | WORD),
            min_size=1,
            max_size=4,
        ),
    )
    def commit(self, shelf: int, wanted: dict[Key, tuple[str, bool, Value]]) -> None:
        partition = self.partitions[shelf]
        changes: list[Put | Remove] = []
        met: list[Row | None] = []
        agreed = True
        for place, (expectation, remove, value) in wanted.items():
            key = (partition, *place)
            present = self.cas.get(key)
            expect: Expect = ABSENT
            if expectation == "rides":
                expect = None
            elif expectation == "wrong":
                expect, agreed = "0" * 32, False
            elif expectation == "right" and present is not None:
                expect = str(present["rev"])
            elif present is not None:
                agreed = False
            if expect is not None:
                met.append(present)
            changes.append(Remove(key, expect) if remove else Put(_row(key, value), expect))
        if not met:
            return
        outcome = self.store.commit(CAS, (partition,), changes)
        assert outcome.applied is agreed
        if not agreed:
            assert list(outcome.rows) == met
            return
        assert outcome.rev not in {row["rev"] for row in self.cas.values()}
        for change in changes:
            if isinstance(change, Put):
                self.cas[CAS.key_of(change.row)] = change.row | {"rev": outcome.rev}
            else:
                self.cas.pop(change.key, None)

    @rule(
        shelf=SHELF,
        prefix=st.none() | NUMBER,
        after=BOUND,
        before=BOUND,
        limit=st.integers(0, 9),
        reverse=st.booleans(),
    )
    def read(
        self, shelf: int, prefix: int | None, after: Key | None, before: Key | None, limit: int, reverse: bool
    ) -> None:
        partition = self.partitions[shelf]
        start: Key = ()
        if prefix is not None:  # bounds are on what follows it: the text alone
            start = (prefix,)
            after, before = ((bound and bound[1:]) or None for bound in (after, before))
        for table, rows in ((PLAIN, self.plain), (CAS, self.cas)):
            expected = []
            for key in sorted((key for key in rows if key[0] == partition), key=_order, reverse=reverse):
                rest = key[1 + len(start) :]
                if (
                    key[1 : 1 + len(start)] == start
                    and (after is None or _order(rest[: len(after)]) > _order(after))
                    and (before is None or _order(rest[: len(before)]) < _order(before))
                ):
                    expected.append(rows[key])
            seen = self.other.read(
                table, (partition,), prefix=start, after=after, before=before, limit=limit, reverse=reverse
            )
            assert seen == expected[:limit]

    @rule(shelf=SHELF, place=PLACE)
    def get(self, shelf: int, place: Key) -> None:
        key = (self.partitions[shelf], *place)
        assert self.other.get(PLAIN, key) == self.plain.get(key)
        assert self.other.get(CAS, key) == self.cas.get(key)

    def teardown(self) -> None:
        for table, rows in ((PLAIN, self.plain), (CAS, self.cas)):
            for partition in self.partitions:
                expected = sorted((row for key, row in rows.items() if key[0] == partition), key=_row_order)
                assert self.store.read(table, (partition,), limit=999) == expected
                self.store.erase(table, (partition,))


class ModelContract(RowContract):
    examples: ClassVar[int] = 40
    """How many sequences are tried; a slow server may have fewer."""

    def test_against_dicts(self, store: Store, other: Store) -> None:
        store.create([PLAIN, CAS])
        machine = type("BoundModel", (Model,), {"store": store, "other": other})
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=self.examples,
                stateful_step_count=30,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
            ),
        )


def _row(key: Key, value: Value) -> Row:
    partition, number, text = key
    return {"p": partition, "n": number, "t": text, "v": value, "w": None if value is None else b"\x00w"}


def _order(key: Key) -> tuple[object, ...]:
    """Text by its UTF-8 bytes, said without the help of any store."""
    return tuple(value.encode() if isinstance(value, str) else value for value in key)


def _row_order(row: Row) -> tuple[object, ...]:
    return _order((row["n"], row["t"]))
