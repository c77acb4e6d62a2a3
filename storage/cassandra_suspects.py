"""Nodes that hang: they take what is sent to them and don't answer. Until the cluster itself knows, which takes ten
seconds and more, each process finds out for itself and asks them last."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from cassandra import OperationTimedOut
from cassandra.cluster import ResponseFuture, ResultSet, Session
from cassandra.policies import HostDistance, TokenAwarePolicy

log = logging.getLogger("magazin.cassandra")

SUSPICION = 5.0  # seconds: about as long as it takes to find out that a node hangs


class Suspects:
    """Nodes that let somebody wait, until they are known to be well or gone."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until: dict[Any, float] = {}

    def note(self, host: Any) -> None:
        self._until[host] = self._clock() + SUSPICION

    def __contains__(self, host: Any) -> bool:
        return bool(self._until) and self._until.get(host, 0.0) > self._clock()


class SuspectsLast(TokenAwarePolicy):  # type: ignore[misc]
    """A node that has a copy first, and one that hangs last.

    The order of copies is the same for all who ask and don't shuffle, in this process and in others. The driver's own
    plan shuffles the list that its plans share, and with it theirs.
    """

    def __init__(self, child: Any, suspects: Suspects, *, shuffle: bool) -> None:
        super().__init__(child, shuffle_replicas=shuffle)
        self._suspects = suspects

    def make_query_plan(self, working_keyspace: str | None = None, query: Any = None) -> Iterator[Any]:
        copies = self._copies(query.keyspace or working_keyspace, query.routing_key) if query is not None else []
        all_nodes = self._child_policy.make_query_plan(working_keyspace, query)
        last = []
        for host in chain(copies, (host for host in all_nodes if host not in copies)):
            if host in self._suspects:
                last.append(host)
            else:
                yield host
        yield from last

    def _copies(self, keyspace: str | None, routing_key: bytes | None) -> list[Any]:
        """The nodes nearby that have one and are up."""
        if keyspace is None or routing_key is None:
            return []
        having = self._cluster_metadata.get_replicas(keyspace, routing_key)
        copies = [host for host in having if host.is_up and self.distance(host) == HostDistance.LOCAL]
        if self.shuffle_replicas:
            random.shuffle(copies)
        return copies


class Watched:
    """A request that has been sent to one node, which shall not be waited for in vain.

    Speculation would send it to another node too. What decides goes to one alone: when that keeps silent, it is asked
    a trifle, and if it keeps silent at that, another is better asked for what came of the request.
    """

    PATIENCE = 0.25  # seconds without an answer, before the node is asked whether it is there
    GRACE = 0.5  # seconds to answer that
    TRIFLE = "SELECT key FROM system.local"

    def __init__(self, session: Session, future: ResponseFuture, suspects: Suspects) -> None:
        self._session, self._future, self._suspects = session, future, suspects
        self._ended = threading.Event()
        future.add_callbacks(self._end, self._end)

    def result(self) -> ResultSet:
        """Raises the driver's errors; OperationTimedOut as soon as the node is known to hang, and there is another."""
        while not self._ended.wait(self.PATIENCE):
            host = self._future.attempted_hosts[-1] if self._future.attempted_hosts else None
            if host is not None and self._others(host) and not self._answers(host):
                log.warning("node %s hangs", host.address)
                raise OperationTimedOut({host: "hangs"}, host)
        return self._future.result()

    def _others(self, host: Any) -> bool:
        pools = list(self._session.get_pools())
        return any(pool.host != host and pool.host not in self._suspects for pool in pools)

    def _answers(self, host: Any) -> bool:
        try:
            self._session.execute(self.TRIFLE, timeout=self.GRACE, host=host)
        except Exception:
            return self._ended.is_set()
        return True

    def _end(self, _: object) -> None:
        self._ended.set()
