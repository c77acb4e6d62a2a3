"""The driver's session of a process, made when it is first needed.

A session doesn't survive a fork, and none can be made while no node answers: then the next request tries again. Once
made, it finds back by itself to nodes that return.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from cassandra import OperationTimedOut
from cassandra.cluster import Cluster, ResultSet, Session
from cassandra.query import PreparedStatement

from storage import cassandra_driver as driver
from storage.cassandra_errors import translated
from storage.cassandra_options import Options
from storage.cassandra_suspects import Suspects
from storage.errors import StoreError, Unavailable

IN_FLIGHT = 4 << 20  # bytes of requests on their way, of all threads: enough for any network, and little to hold
NEWS = 60.0  # seconds; the nodes know after some ten that one is gone
REST = 0.5  # seconds after a failure to connect, in which nobody tries again


class Gate:
    """Bounds the requests that are on their way, in bytes. One alone may be larger than the bound."""

    def __init__(self, limit: int = IN_FLIGHT) -> None:
        self._limit, self._held = limit, 0
        self._changed = threading.Condition()

    def enter(self, weight: int, seconds: float) -> Callable[[object], None]:
        """What to call when the request has ended, once or more often. Raises Unavailable when there is no room for so
        long."""
        with self._changed:
            if not self._changed.wait_for(lambda: not self._held or self._held + weight <= self._limit, seconds):
                raise Unavailable("Cassandra is too slow for what is asked of it")
            self._held += weight
        weights = [weight]

        def leave(_: object) -> None:
            with self._changed:
                if weights:
                    self._held -= weights.pop()
                    self._changed.notify_all()

        return leave


class Gone:
    """Since when nodes have been down, as far as the driver knows. Of those in another data centre, which it never
    connects to, it may not hear that they are back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[Any, float] = {}

    def is_new(self, host: Any) -> bool:
        """Whether it is down and the other nodes may not know it yet. Once they do, they refuse at once what needs
        it."""
        if host.is_up is not False:  # None: nobody has tried
            if self._seen:  # for each node of a large cluster, with each request
                self._seen.pop(host.endpoint, None)
            return False
        now = self._clock()
        return now - self._seen.setdefault(host.endpoint, now) < NEWS


class Live:
    """A session that is connected. Raises the driver's errors."""

    def __init__(self, options: Options) -> None:
        self.suspects, self.gate, self._gone = Suspects(), Gate(), Gone()
        self.cluster: Cluster = driver.cluster(options, self.suspects)
        try:
            self.session: Session = self.cluster.connect()
        except BaseException:
            self.cluster.shutdown()
            raise
        self._prepared: dict[str, PreparedStatement] = {}

    def prepared(self, text: str) -> Any:
        found = self._prepared.get(text)
        if found is None:
            try:
                found = self.session.prepare(text)
            except OperationTimedOut as error:  # the driver asks one node alone
                self.suspects.note(error.last_host)
                found = self.session.prepare(text)
            # Of two that were prepared at once the driver must know the one that is kept, or else it can't tell a node
            # again that has forgotten it.
            found = self._prepared.setdefault(text, found)
            self.cluster.add_prepared(found.query_id, found)
        return found

    def has_quorum(self, statement: Any) -> bool:
        """False when most of the nodes that have a copy went, as far as the driver knows, and the others may wait for
        them, which they do until they know it too."""
        nodes, is_gone = self.cluster.metadata, self._gone.is_new
        if statement.routing_key is None or not any(map(is_gone, nodes.all_hosts())):
            return True
        copies = nodes.get_replicas(statement.keyspace, statement.routing_key)
        gone = sum(map(is_gone, copies))
        return not copies or len(copies) - gone > len(copies) // 2  # none: of a keyspace not known yet


class Sessions:
    """The session of this process, for all of its threads."""

    def __init__(self, options: Options, clock: Callable[[], float] = time.monotonic) -> None:
        self.options = options
        self._clock, self._closed = clock, False
        self.begin_process()
        _ALL.add(self)

    def begin_process(self) -> None:
        """Forget what is connected. In a child what was inherited isn't closed either: the sockets are the parent's."""
        self._lock = threading.Lock()
        self._live: Live | None = None
        self._failed: tuple[float, StoreError] | None = None

    def live(self) -> Live:
        """Raises StoreErrors, within about ``request_timeout``."""
        if self._live is not None:
            return self._live
        if not self._lock.acquire(timeout=self.options.request_timeout):
            raise Unavailable("no node of Cassandra answers")
        try:
            if self._closed:
                raise Unavailable("this store is closed")
            if self._live is None:
                self._connect()
            assert self._live is not None
            return self._live
        finally:
            self._lock.release()

    def execute(self, text: str, *values: Any) -> ResultSet:
        """A statement that isn't prepared, such as one that changes the schema."""
        session = self.live().session
        try:
            return session.execute(text, values or None, execution_profile=driver.SLOW)
        except Exception as error:
            raise translated(error, writing=not text.startswith("SELECT")) from error

    def agree(self) -> None:
        """Wait until all nodes that are up know the same tables, or for ``max_schema_agreement_wait``."""
        control = self.live().cluster.control_connection
        try:
            control.wait_for_schema_agreement()
        except Exception as error:
            raise translated(error) from error

    def close(self) -> None:
        with self._lock:
            self._closed, live, self._live = True, self._live, None
        if live is not None:
            live.cluster.shutdown()

    def _connect(self) -> None:
        if self._failed is not None and self._clock() - self._failed[0] < REST:
            raise self._failed[1]
        try:
            self._live = Live(self.options)
        except Exception as error:
            self._failed = self._clock(), translated(error)
            raise self._failed[1] from error


_ALL: WeakSet[Sessions] = WeakSet()


def _after_fork() -> None:
    for sessions in _ALL:
        sessions.begin_process()


os.register_at_fork(after_in_child=_after_fork)
