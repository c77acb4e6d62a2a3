"""The way of one request: bound, let through, sent, and tried again when a node was too busy to begin with it, or when
it got lost and may be sent twice."""

from __future__ import annotations

import copy
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from cassandra import ConsistencyLevel, OperationTimedOut
from cassandra.cluster import ResponseFuture, ResultSet
from cassandra.query import BatchStatement, BatchType

from storage import cassandra_driver as driver
from storage.cassandra_errors import NoQuorum, is_busy, is_lost, translated
from storage.cassandra_session import Live, Sessions
from storage.cassandra_suspects import Watched

SMALL = 8 << 10  # bytes that a request weighs at least, so that they are bounded in number too
HASTE = 1.0  # seconds to wait for an answer that, as far as is known, can't come
DECISIVE = (ConsistencyLevel.QUORUM, ConsistencyLevel.SERIAL)
PAUSES = (0.02, 0.1, 0.4, 1.0)  # seconds, before another try of what was refused


class Request:
    """One statement with its values, as often as it is sent. ``weight``: about how many bytes that sends; ``page``:
    rows of one answer; ``cursor``: where an earlier answer ended."""

    def __init__(
        self,
        text: str,
        values: Sequence[Any],
        consistency: int,
        *,
        profile: Any = driver.REPEATABLE,
        page: int | None = None,
        cursor: bytes | None = None,
        weight: int = 0,
    ) -> None:
        self.text, self.values, self.consistency, self.profile = text, values, consistency, profile
        self.page, self.cursor, self.weight = page, cursor, max(SMALL, weight)

    def following(self, cursor: bytes) -> Request:
        """The same for the next page."""
        after = copy.copy(self)
        after.cursor = cursor
        return after

    def bound(self, prepared: Callable[[str], Any]) -> Any:
        statement = prepared(self.text).bind(self.values)
        statement.consistency_level = self.consistency
        statement.is_idempotent = self.profile == driver.REPEATABLE
        statement.fetch_size = self.page
        return statement


class Batch(Request):
    """Several statements for one partition, as one; sent once."""

    def __init__(self, parts: Sequence[tuple[str, Sequence[Any]]], consistency: int, *, weight: int) -> None:
        super().__init__("", (), consistency, profile=driver.ONCE, weight=weight)
        self.parts = parts

    def bound(self, prepared: Callable[[str], Any]) -> Any:
        batch = BatchStatement(BatchType.UNLOGGED, consistency_level=self.consistency)
        for text, values in self.parts:
            batch.add(prepared(text).bind(values))
        return batch


class Pending:
    """A request under way. Made when there is room for it; raises StoreErrors when it can't be sent."""

    def __init__(self, sessions: Sessions, request: Request, clock: Callable[[], float] = time.monotonic) -> None:
        self._sessions, self._request, self._clock = sessions, request, clock
        self._end = clock() + 0.6 * sessions.options.request_timeout  # of beginning another try
        self._live, self._future = self._begin()

    def result(self, *, writing: bool = False) -> ResultSet:
        """Waits for the answer. Raises StoreErrors: for a write whose outcome isn't known, Unknown."""
        try:
            return self.outcome()
        except Exception as error:
            raise translated(error, writing=writing) from error

    def outcome(self) -> ResultSet:
        """As :meth:`result`, but raises the driver's errors."""
        for pause in (*PAUSES, 0.0):
            try:
                result = self._answer()
            except Exception as error:
                if isinstance(error, OperationTimedOut):  # nobody answered in time
                    if self._hasty:
                        raise NoQuorum(error.errors, error.last_host) from error
                    self._suspect(self._future.attempted_hosts)
                if not pause or not self._may_go_again(error):
                    raise
            else:
                *others, _ = self._future.attempted_hosts
                self._suspect(host for host in others if host != self._future.coordinator_host)
                return result
            time.sleep(pause * random.uniform(0.5, 1.0))
            self._live, self._future = self._begin()
        raise AssertionError("the last try returns or raises")

    def _answer(self) -> ResultSet:
        if self._request.profile in (driver.ONCE, driver.SERIAL):
            return Watched(self._live.session, self._future, self._live.suspects).result()
        return self._future.result()

    def _may_go_again(self, error: Exception) -> bool:
        if is_busy(error):
            return True
        in_time = self._request.profile != driver.ONCE and self._clock() < self._end
        return in_time and is_lost(error, sent=bool(self._future.attempted_hosts))

    def _begin(self) -> tuple[Live, ResponseFuture]:
        live, request = self._sessions.live(), self._request
        leave: Callable[[object], None] | None = None
        try:
            statement = request.bound(live.prepared)
            leave = live.gate.enter(request.weight, self._sessions.options.request_timeout)
            self._hasty = request.consistency in DECISIVE and not live.has_quorum(statement)
            future = live.session.execute_async(
                statement,
                execution_profile=request.profile,
                paging_state=request.cursor,
                **({"timeout": HASTE} if self._hasty else {}),
            )
            future.add_callbacks(leave, leave)
        except BaseException as error:
            if leave is not None:
                leave(None)
            if isinstance(error, Exception):
                raise translated(error) from error
            raise
        return live, future

    def _suspect(self, hosts: Any) -> None:
        for host in hosts:
            self._live.suspects.note(host)
