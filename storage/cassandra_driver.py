"""How the driver is set up: what it does when a node is slow, gone or back. Each choice was measured."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from typing import Any

from cassandra import AuthenticationFailed, ConsistencyLevel
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import (
    ConstantSpeculativeExecutionPolicy,
    DCAwareRoundRobinPolicy,
    ExponentialReconnectionPolicy,
    HostStateListener,
    RetryPolicy,
)
from cassandra.query import tuple_factory

try:
    from cassandra.io.libevreactor import LibevConnection as Connection
except ImportError:  # a driver built without libev: slower, and it works
    from cassandra.io.asyncioreactor import AsyncioConnection as Connection

from storage.cassandra_errors import LoginFailed
from storage.cassandra_options import PORT, Options
from storage.cassandra_suspects import Suspects, SuspectsLast

log = logging.getLogger("magazin.cassandra")

REPEATABLE = EXEC_PROFILE_DEFAULT
"""What may be sent twice: reads, and writes of plain tables."""
ONCE = "once"
"""Compare and set, which must not compete with itself."""
SERIAL = "serial"
"""Reads at SERIAL: they too take part in what is decided, and go out again only when the last one is given up."""
SLOW = "slow"
"""Walks through tables, and changes of the schema."""


class Timer:
    """The driver keeps its timers until they would have rung, and with them all that their requests sent and got."""

    def __init__(self, create: Callable[..., Any], seconds: float, callback: Callable[[], object]) -> None:
        self._callback: Callable[[], object] | None = callback
        self._timer = create(seconds, self._ring)

    def cancel(self) -> None:
        self._callback = None
        self._timer.cancel()

    def _ring(self) -> None:
        if (callback := self._callback) is not None:
            callback()


class QueueingConnection(Connection):  # type: ignore[misc]
    """Large frames are sent with few calls (255 KB: 2.0 ms, not 3.1), and wait here when the network is slower: the
    driver's own connection refuses them. What waits is bounded by :class:`storage.cassandra_session.Gate`."""

    in_buffer_size = out_buffer_size = 1 << 18
    _socket_writable = property(lambda self: True, lambda self, value: None)

    @classmethod
    def factory(cls, *args: Any, **more: Any) -> Any:
        try:
            return super().factory(*args, **more)
        except AuthenticationFailed as error:
            raise LoginFailed(str(error)) from error

    @classmethod
    def create_timer(cls, seconds: float, callback: Callable[[], object]) -> Timer:
        return Timer(super().create_timer, seconds, callback)


class Repeat(RetryPolicy):  # type: ignore[misc]
    """Once more at the next node, whatever it was."""

    def on_read_timeout(self, *args: Any, retry_num: int, **more: Any) -> tuple[int, None]:
        return self._next(retry_num)

    def on_write_timeout(self, *args: Any, retry_num: int, **more: Any) -> tuple[int, None]:
        return self._next(retry_num)

    def on_unavailable(self, *args: Any, retry_num: int, **more: Any) -> tuple[int, None]:
        return self._next(retry_num)

    def on_request_error(self, *args: Any, retry_num: int, **more: Any) -> tuple[int, None]:
        return self._next(retry_num, times=2)

    def _next(self, retry_num: int, times: int = 1) -> tuple[int, None]:
        return (self.RETRY_NEXT_HOST if retry_num < times else self.RETHROW), None


class NoRepeat(RetryPolicy):  # type: ignore[misc]
    """What has been sent isn't sent again: a compare-and-set that was applied would meet itself."""

    def on_read_timeout(self, *args: Any, **more: Any) -> tuple[int, None]:
        return self.RETHROW, None

    on_write_timeout = on_unavailable = on_request_error = on_read_timeout


class Watch(HostStateListener):  # type: ignore[misc]
    """A line for each node that goes or comes. The driver's own lines are many, and all else that they say is raised
    too."""

    def on_down(self, host: Any) -> None:
        log.warning("node %s doesn't answer", host.address)

    def on_up(self, host: Any) -> None:
        log.warning("node %s is back", host.address)

    def on_add(self, host: Any) -> None:
        log.debug("node %s is known", host.address)

    def on_remove(self, host: Any) -> None:
        log.warning("node %s was removed", host.address)


def cluster(options: Options, suspects: Suspects) -> Cluster:
    """A cluster object that isn't connected yet."""
    credentials = PlainTextAuthProvider(options.username, options.password) if options.username else None

    def profile(retry: RetryPolicy, timeout: float, *, shuffle: bool = True, **more: Any) -> ExecutionProfile:
        nearby = DCAwareRoundRobinPolicy(options.data_center)
        return ExecutionProfile(
            load_balancing_policy=SuspectsLast(nearby, suspects, shuffle=shuffle),
            retry_policy=retry,
            consistency_level=ConsistencyLevel.QUORUM,
            serial_consistency_level=ConsistencyLevel.SERIAL,
            request_timeout=timeout,
            row_factory=tuple_factory,
            **more,
        )

    timeout = options.request_timeout
    ahead = ConstantSpeculativeExecutionPolicy(0.25, 2)
    made = Cluster(
        contact_points=list(options.contact_points),
        port=options.contact_points[0][1] if options.contact_points else PORT,
        connection_class=QueueingConnection,
        execution_profiles={
            # Half of the time, so that there is time for another try when all that speculation asked keep silent.
            REPEATABLE: profile(Repeat(), timeout / 2, speculative_execution_policy=ahead),
            # Always the same node of those that are well: two that decide for one partition get in each other's way.
            ONCE: profile(NoRepeat(), timeout / 2, shuffle=False),
            SERIAL: profile(Repeat(), timeout / 2, shuffle=False),
            SLOW: profile(Repeat(), max(60.0, timeout)),
        },
        sockopts=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
        ssl_context=options.tls,
        auth_provider=credentials,
        compression=False,
        protocol_version=5,
        executor_threads=8,  # they connect to nodes, which takes long where one hangs, and they repeat requests
        reconnection_policy=ExponentialReconnectionPolicy(0.5, 10),
        connect_timeout=timeout / 2,
        control_connection_timeout=timeout / 2,
        max_schema_agreement_wait=45,
        idle_heartbeat_interval=5,
        idle_heartbeat_timeout=5,
    )
    made.register_listener(Watch())
    if not log.isEnabledFor(logging.DEBUG):
        logging.getLogger("cassandra").setLevel(logging.CRITICAL)
    return made
