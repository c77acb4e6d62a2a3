"""Compare and set on Cassandra: one conditional statement or batch for one partition, and what to make of its answer.

Every row has a ``rev``, so that a null rev is an absent row. A rev is 32 random hex digits, and after them which
columns its row has: whoever replaces a row of a known rev needn't write a tombstone for each column that was null and
stays so. (An original has 45 columns, half of them null, and is replaced four times.)

**Unknown outcomes.** A node that is killed, slow or frozen may have begun with the commit, or may do so when it wakes.
A read at SERIAL finishes or overrides what is under way, and shows the truth: the own rev, and the commit was applied;
another than expected, and it never will be (revs are never used again); the expected one, and it is sent again, with
the same rev. What isn't known in the end is raised as Unknown.

Left over: a conditional insert (ABSENT) that a frozen node had received and not begun may be applied when the node
wakes, if by then there is no row again. Nothing in CQL can prevent it.
"""

from __future__ import annotations

import os
import random
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import cassandra
from cassandra import ConsistencyLevel
from cassandra.query import UNSET_VALUE

from storage import cassandra_driver as driver
from storage.cassandra_errors import NoQuorum, is_refused, translated
from storage.cassandra_requests import Batch, Pending, Request
from storage.cassandra_session import Sessions
from storage.cassandra_statements import Statements
from storage.errors import StoreError, Unknown
from storage.table import ABSENT, Expect, Key, Outcome, Put, Remove, Row, weigh

PAUSE = 0.05  # seconds after an unknown outcome, longer each time and at random: others may decide meanwhile


class Commit:
    """One commit on its way. ``checked`` is what :func:`storage.validation.check_changes` gives."""

    def __init__(
        self,
        sessions: Sessions,
        statements: Statements,
        changes: Sequence[Put | Remove],
        checked: Sequence[tuple[Key, Row | None]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sessions, self._statements, self._clock = sessions, statements, clock
        self._split = len(statements.table.partition)
        self._keys = [key for key, _ in checked]
        self._expects = [change.expect for change in changes]
        self._conditional = [place for place, expect in enumerate(self._expects) if expect is not None]
        self.rev = new_rev(statements, [row for _, row in checked if row is not None])
        parts = list(self._parts(checked))
        weight = sum(weigh(value) for _, row in checked if row for value in row.values() if value is not None)
        if len(parts) == 1:
            (text, values), profile = parts[0], driver.ONCE
            self._request = Request(text, values, ConsistencyLevel.QUORUM, profile=profile, weight=weight)
        else:
            self._request = Batch(parts, ConsistencyLevel.QUORUM, weight=weight)

    def run(self) -> Outcome:
        """Raises StoreErrors."""
        end = self._clock() + 2 * self._sessions.options.request_timeout
        pause, unknown = PAUSE, None
        while True:
            try:
                applied = Pending(self._sessions, self._request).outcome().one()[0]
                return Outcome(True, self.rev) if applied else self._judged(self._rows(ConsistencyLevel.QUORUM))
            except Exception as error:
                if is_refused(error):
                    raise (Unknown(str(error)) if unknown else translated(error)) from error
                unknown = error
            time.sleep(random.uniform(0.0, pause))
            rows = self._truth(unknown, end)
            if self._is_mine(rows) or not all(_is_as(self._expects[n], rows[n]) for n in self._conditional):
                return self._judged(rows)
            if self._clock() > end:
                raise Unknown(f"a commit to {self._statements.table.name} came to no end: {unknown}") from unknown
            pause *= 2

    def _truth(self, unknown: Exception, end: float) -> Sequence[Row | None]:
        """What is there, after ``unknown`` made it uncertain. Waits for a node to come back, but not for a quorum."""
        while True:
            try:
                return self._rows(ConsistencyLevel.SERIAL)
            except StoreError as error:
                if isinstance(error.__cause__, cassandra.Unavailable | NoQuorum) or self._clock() > end:
                    raise Unknown(f"{translated(unknown, writing=True)}; and then: {error}") from unknown
            time.sleep(random.uniform(PAUSE, 4 * PAUSE))

    def _judged(self, rows: Sequence[Row | None]) -> Outcome:
        if self._is_mine(rows):
            return Outcome(True, self.rev)
        return Outcome(False, rows=tuple(rows[place] for place in self._conditional))

    def _is_mine(self, rows: Sequence[Row | None]) -> bool:
        return any(row is not None and row["rev"] == self.rev for row in rows)

    def _rows(self, consistency: int) -> list[Row | None]:
        """The row of each change, read at once."""
        select = self._statements.rows(len(self._keys))
        table = self._statements.table
        values = self._statements.key_values(table.partition, self._keys[0][: self._split])
        for key in self._keys:
            values += self._statements.key_values(table.clustering, key[self._split :])
        profile = driver.SERIAL if consistency == ConsistencyLevel.SERIAL else driver.REPEATABLE
        answer = Pending(self._sessions, Request(select.text, values, consistency, profile=profile)).result()
        found = {table.key_of(row): row for row in map(select.row, answer)}
        return [found.get(key) for key in self._keys]

    def _parts(self, checked: Sequence[tuple[Key, Row | None]]) -> Iterator[tuple[str, list[Any]]]:
        statements = self._statements
        for expect, (key, row) in zip(self._expects, checked, strict=True):
            values: list[Any] = statements.key_values(statements.table.key, key)
            text = statements.remove
            if row is not None:
                text = statements.set
                values = [*self._replacing(row, expect), self.rev, *values]
            if expect is not None:
                text = statements.if_rev(text)
                values.append(None if expect is ABSENT else expect)
            yield text, values

    def _replacing(self, row: Row, expect: Expect) -> list[Any]:
        """The values of the regular columns. A null is a tombstone: none is written where there is nothing to bury."""
        regular = self._statements.regular
        buried = 0 if expect is ABSENT else columns_of(self._statements, expect if isinstance(expect, str) else "")
        values: list[Any] = self._statements.row_values(row, regular)
        return [
            UNSET_VALUE if value is None and not buried >> place & 1 else value for place, value in enumerate(values)
        ]


def new_rev(statements: Statements, rows: Sequence[Row]) -> str:
    """A rev for these rows; it tells all columns that any of them has."""
    present = sum(
        1 << place for place, name in enumerate(statements.regular) if any(row[name] is not None for row in rows)
    )
    return f"{os.urandom(16).hex()}{_layout(statements)}{present:x}"


def columns_of(statements: Statements, rev: str) -> int:
    """The regular columns that a row of this rev may have, a bit for each; all of them when it doesn't tell, or tells
    of another layout of the table."""
    known = rev[32:40] == _layout(statements)
    return int(rev[40:] or "0", 16) if known else (1 << len(statements.regular)) - 1


def _layout(statements: Statements) -> str:
    return f"{zlib.crc32(' '.join(statements.regular).encode()):08x}"


def _is_as(expect: Expect, row: Row | None) -> bool:
    if expect is ABSENT:
        return row is None
    return row is not None and row["rev"] == expect
