"""What an operator should know of the keyspace before something is lost: ``magazin doctor`` tells it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from storage.cassandra_session import Sessions
from storage.errors import StoreError
from storage.interface import Advice


def advice(sessions: Sessions) -> Iterator[Advice]:
    """Of the keyspace as the server has it, and of the node that answers. Raises StoreErrors."""
    keyspace = sessions.options.keyspace
    query = "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = %s"
    row = sessions.execute(query, keyspace).one()
    if row is None:
        return
    sync = ""
    with suppress(StoreError):  # not everybody may read it
        found = sessions.execute("SELECT value FROM system_views.settings WHERE name = 'commitlog_sync'").one()
        sync = found[0] if found else ""
    yield from advised(keyspace, row[0], sync)


def advised(keyspace: str, replication: Mapping[str, str], sync: str) -> Iterator[Advice]:
    """``sync``: the node's ``commitlog_sync``, empty when it isn't known."""
    copies = {name: int(count) for name, count in replication.items() if name != "class" and int(count)}
    least = min(copies.values(), default=0)
    if least >= 3:
        return
    places = sorted(name for name, count in copies.items() if count == least and name != "replication_factor")
    where = f"keyspace {keyspace}" + (f" in {', '.join(places)}" if places else "")
    said = "one copy: a lost disk is lost data" if least == 1 else "two copies: with one away nothing can be written"
    yield Advice(f"{where} has {said}", "ALTER KEYSPACE to three copies, then repair")
    if sync == "periodic":
        yield Advice(
            "commitlog_sync is periodic: a killed node loses its last seconds",
            "commitlog_sync: group in cassandra.yaml, while there are fewer than three copies",
        )
