"""The whole schema as CQL: what ``magazin init`` makes, ``magazin schema`` prints and ``etc/schema.cql`` holds."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

from storage.cassandra_statements import Statements, quoted
from storage.table import Table


def keyspace_text(keyspace: str, replication: Mapping[str, str]) -> str:
    pairs = ", ".join(f"'{key}': '{value}'" for key, value in replication.items())
    return f"CREATE KEYSPACE IF NOT EXISTS {quoted(keyspace)} WITH replication = {{{pairs}}}"


def state_text(keyspace: str) -> str:
    """The table of the schema's own state. Its id is fixed, so that two nodes that make it at once make one."""
    name = uuid.uuid5(uuid.NAMESPACE_DNS, f"magazin_schema.{keyspace}")
    return (
        f"CREATE TABLE IF NOT EXISTS {quoted(keyspace)}.magazin_schema (\n"
        f"  name text PRIMARY KEY,\n  version int,\n  owner text\n) WITH id = {name}"
    )


def schema_text(keyspace: str, replication: Mapping[str, str], tables: Sequence[Table]) -> str:
    """Everything, as CQL."""
    texts = [keyspace_text(keyspace, replication), *(Statements(keyspace, table).create() for table in tables)]
    return "".join(f"{text};\n\n" for text in (*texts, state_text(keyspace))).rstrip() + "\n"
