"""Keyspace, tables and migrations on a real node; what `magazin schema` prints is what `magazin init` makes."""

from __future__ import annotations

import itertools
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cassandra.cluster import ResultSet
from click.testing import CliRunner

from cli.main import main
from cli.wiring import TABLES
from storage.cassandra import CassandraStore
from storage.cassandra_cql import schema_text, state_text
from storage.cassandra_options import Options, replication
from storage.cassandra_schema import Migration, Schema
from storage.cassandra_session import Sessions
from storage.errors import SchemaMismatch, Unavailable, Unknown
from storage.table import ABSENT, Put, Type, cas, plain

FILE = Path(__file__).parent.parent / "etc" / "schema.cql"
NOTES = cas("notes", "name", name=Type.TEXT, body=Type.TEXT)
LINES = plain("lines", "book | page", book=Type.TEXT, page=Type.INT)


def name() -> str:
    return f"schema_{uuid.uuid4().hex[:12]}"


@pytest.fixture
def sessions(cassandra: str) -> Iterator[Sessions]:
    sessions = Sessions(Options(((cassandra, 9042),), name(), replication("1")))
    yield sessions
    sessions.close()


@pytest.fixture
def keyspace(sessions: Sessions) -> str:
    return sessions.options.keyspace


def described(sessions: Sessions, keyspace: str) -> dict[str, list[tuple[object, ...]]]:
    """What the server has under this name, without ids."""
    found = {}
    for table in ("keyspaces", "tables", "columns", "indexes", "types", "views"):
        rows = sessions.execute(f"SELECT JSON * FROM system_schema.{table} WHERE keyspace_name = %s", keyspace)
        texts = (re.sub(r'"id": "[0-9a-f-]+"', "", row[0].replace(keyspace, "")) for row in rows)
        found[table] = sorted(texts)
    return found


def columns(sessions: Sessions, table: str) -> list[str]:
    query = "SELECT column_name FROM system_schema.columns WHERE keyspace_name = %s AND table_name = %s"
    return sorted(row[0] for row in sessions.execute(query, sessions.options.keyspace, table))


def test_the_sample_is_what_the_command_prints() -> None:
    done = CliRunner().invoke(main, ["schema"], prog_name="magazin")
    assert done.exit_code == 0
    assert FILE.read_text(encoding="utf-8") == done.stdout


def test_the_command_prints_what_is_set(tmp_path: Path) -> None:
    flags = ["--set", "cassandra.keyspace=photos", "--set", "cassandra.replication=dc1:3,dc2:2"]
    done = CliRunner().invoke(main, ["schema", "--data", str(tmp_path), *flags], prog_name="magazin")
    assert "'NetworkTopologyStrategy', 'dc1': '3', 'dc2': '2'}" in done.stdout.splitlines()[0]
    assert 'CREATE TABLE IF NOT EXISTS "photos"."originals" (' in done.stdout


def test_what_is_printed_is_what_is_made(sessions: Sessions, keyspace: str) -> None:
    Schema(sessions).create(TABLES)
    printed = name()
    text = schema_text(printed, replication("1"), TABLES)
    for statement in text.split(";\n"):
        if statement.strip():
            sessions.execute(statement)
    assert described(sessions, printed) == described(sessions, keyspace)
    assert len(described(sessions, printed)["tables"]) == len(TABLES) + 1


def test_init_twice_and_by_several_processes(cassandra: str, keyspace: str, tmp_path: Path, sessions: Sessions) -> None:
    environ = {
        "MAGAZIN_STORAGE_PLUGIN": "cassandra",
        "MAGAZIN_CASSANDRA_CONTACT_POINTS": f"{cassandra}:9042",
        "MAGAZIN_CASSANDRA_KEYSPACE": keyspace,
    }

    def magazin(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(main, [*arguments, "--data", str(tmp_path)], env=environ, prog_name="magazin")
        return done.exit_code, done.output

    status, said = magazin("status")
    assert status == 3
    assert said == f"Error: the store: keyspace {keyspace} does not exist; «magazin init» makes what is missing\n"
    assert magazin("init") == (0, f"ready: cassandra, data in {tmp_path}\n")
    made = described(sessions, keyspace)
    assert magazin("init")[0] == 0
    assert described(sessions, keyspace) == made
    assert magazin("status")[0] == 0
    sessions.execute(f"ALTER TABLE {keyspace}.tokens ADD hint text")
    status, said = magazin("init")
    assert status == 3
    assert f'table "{keyspace}"."tokens" exists as ((token_id)) created bigint, hash text, hint text' in said


def test_a_keyspace_made_from_the_sample_needs_nothing_more(sessions: Sessions, keyspace: str) -> None:
    for statement in schema_text(keyspace, replication("1"), [NOTES]).split(";\n"):
        if statement.strip():
            sessions.execute(statement)
    before = described(sessions, keyspace)
    Schema(sessions).create([NOTES])
    assert described(sessions, keyspace) == before


def test_further_columns_are_added(sessions: Sessions) -> None:
    store = CassandraStore(sessions.options)
    store.create([NOTES, LINES])
    rev = store.commit(NOTES, ("n",), [Put({"name": "n", "body": "b"}, ABSENT)]).rev
    newer = cas("notes", "name", name=Type.TEXT, size=Type.INT, body=Type.TEXT, at=Type.TIMESTAMP)
    store.create([newer])
    assert columns(sessions, "notes") == ["at", "body", "name", "rev", "size"]
    assert store.get(newer, ("n",)) == {"name": "n", "size": None, "body": "b", "at": None, "rev": rev}
    rev = store.commit(newer, ("n",), [Put({"name": "n", "size": 1, "at": 5_000_000}, rev)]).rev
    assert store.commit(newer, ("n",), [Put({"name": "n"}, rev)])
    row = store.get(newer, ("n",))
    assert row is not None and (row["body"], row["size"], row["at"]) == (None, None, None)
    with pytest.raises(SchemaMismatch, match="notes"):
        store.create([NOTES])
    store.close()


def test_another_shape_is_refused_before_anything_is_made(sessions: Sessions) -> None:
    Schema(sessions).create([NOTES])
    with pytest.raises(SchemaMismatch, match="notes"):
        Schema(sessions).create([LINES, plain("notes", "name", name=Type.TEXT, body=Type.TEXT)])
    assert columns(sessions, "lines") == []


def test_a_plain_table_never_becomes_a_compared_one(sessions: Sessions) -> None:
    Schema(sessions).create([LINES])
    with pytest.raises(SchemaMismatch, match="lines"):
        Schema(sessions).create([cas("lines", "book | page", book=Type.TEXT, page=Type.INT)])


FIRST = Migration(1, ("ALTER TABLE {keyspace}.lines ADD first text",))
SECOND = Migration(2, ("ALTER TABLE {keyspace}.lines ADD second text", "ALTER TABLE {keyspace}.lines DROP first"))


def test_migrations_are_applied_once_and_in_order(sessions: Sessions) -> None:
    Schema(sessions).create([LINES])
    newer = plain("lines", "book | page", book=Type.TEXT, page=Type.INT, second=Type.TEXT)
    for _ in range(2):
        Schema(sessions, (FIRST, SECOND)).create([newer])
        assert columns(sessions, "lines") == ["book", "page", "second"]
    Schema(sessions, (FIRST, SECOND)).create([])


def test_a_new_keyspace_needs_no_migration(sessions: Sessions) -> None:
    Schema(sessions, (FIRST, SECOND)).create([LINES])
    Schema(sessions, (FIRST, SECOND)).create([LINES])
    assert columns(sessions, "lines") == ["book", "page"]


def test_a_broken_off_migration_is_begun_again(sessions: Sessions) -> None:
    Schema(sessions).create([LINES])
    broken = Migration(
        2, ("ALTER TABLE {keyspace}.lines ADD IF NOT EXISTS second text", "ALTER TABLE {keyspace}.no ADD a int")
    )
    with pytest.raises(SchemaMismatch):
        Schema(sessions, (FIRST, broken)).create([])
    assert columns(sessions, "lines") == ["book", "first", "page", "second"]
    Schema(sessions, (FIRST, Migration(2, (broken.statements[0],)))).create([])


def test_a_newer_keyspace_is_refused(sessions: Sessions) -> None:
    Schema(sessions, (FIRST, SECOND)).create([LINES])
    with pytest.raises(SchemaMismatch, match="newer Magazin: its schema has number 2, and this one knows 1"):
        Schema(sessions, (FIRST,)).create([LINES])


def test_one_at_a_time(sessions: Sessions, keyspace: str) -> None:
    Schema(sessions).create([])
    sessions.execute(f"INSERT INTO {keyspace}.magazin_schema (name, owner) VALUES ('lock', 'another')")
    waits: list[float] = []
    with pytest.raises(Unavailable, match="another process"):
        Schema(sessions, sleep=waits.append).create([LINES])
    assert sum(waits) == 300
    assert columns(sessions, "lines") == []

    def end(_seconds: float) -> None:
        sessions.execute(f"DELETE FROM {keyspace}.magazin_schema WHERE name = 'lock'")

    Schema(sessions, sleep=end).create([LINES])
    assert columns(sessions, "lines") == ["book", "page"]
    assert list(sessions.execute(f"SELECT name FROM {keyspace}.magazin_schema")) == [("version",)]


def slow() -> Callable[[], float]:
    """A clock by which every change takes two minutes."""
    return itertools.count(0.0, 120.0).__next__


class Robbed(Sessions):
    """Whose lock another process takes once the first table is made."""

    def execute(self, text: str, *values: object) -> ResultSet:
        answer = super().execute(text, *values)
        if text.startswith("CREATE TABLE") and "magazin_schema" not in text:
            super().execute(f"UPDATE {self.options.keyspace}.magazin_schema SET owner = 'other' WHERE name = 'lock'")
        return answer


def test_who_was_too_slow_stops_before_the_next_table(sessions: Sessions, keyspace: str) -> None:
    robbed = Robbed(sessions.options)
    with pytest.raises(Unavailable, match="another process has begun to change keyspace"):
        Schema(robbed, clock=slow()).create([LINES, NOTES])
    assert columns(sessions, "lines") == ["book", "page"]
    assert columns(sessions, "notes") == []
    assert list(sessions.execute(f"SELECT owner FROM {keyspace}.magazin_schema WHERE name = 'lock'")) == [("other",)]
    robbed.close()


def test_slow_changes_hold_the_lock_for_another_while(sessions: Sessions, keyspace: str) -> None:
    class Looking(Sessions):
        def execute(self, text: str, *values: object) -> ResultSet:
            if text.startswith("CREATE TABLE") and "magazin_schema" not in text:
                query = f"SELECT TTL(owner) FROM {keyspace}.magazin_schema WHERE name = 'lock'"
                left.append(super().execute(query).one()[0])
                shorten = f"UPDATE {keyspace}.magazin_schema USING TTL 100 SET owner = %s WHERE name = 'lock'"
                owner = super().execute(f"SELECT owner FROM {keyspace}.magazin_schema WHERE name = 'lock'").one()[0]
                super().execute(shorten, owner)
            return super().execute(text, *values)

    left: list[int] = []
    looking = Looking(sessions.options)
    Schema(looking, clock=slow()).create([LINES, NOTES])
    assert len(left) == 2 and min(left) > 200
    looking.close()


def test_while_others_ask_for_the_lock_it_may_not_be_known_whether_it_was_held(sessions: Sessions) -> None:
    class Contended(Sessions):
        def execute(self, text: str, *values: object) -> ResultSet:
            answer = super().execute(text, *values)
            if text.startswith("UPDATE"):
                lost.append(text)
                if len(lost) == 1:
                    raise Unknown("CAS operation result is unknown")
            return answer

    lost, waits = list[str](), list[float]()
    contended = Contended(sessions.options)
    Schema(contended, sleep=waits.append, clock=slow()).create([LINES])
    assert columns(sessions, "lines") == ["book", "page"]
    assert (len(lost), waits) == (2, [1.0])
    contended.close()


class LateNode(Sessions):
    """The node that is asked learns of the keyspace's table only after each statement about it came ``late`` times."""

    def __init__(self, options: Options, late: int) -> None:
        super().__init__(options)
        self._late, self.refused = late, Counter[str]()

    def execute(self, text: str, *values: object) -> ResultSet:
        if "magazin_schema" in text and self.refused[text] < self._late:
            self.refused[text] += 1
            raise SchemaMismatch(f"Keyspace '{self.options.keyspace}' doesn't exist")
        return super().execute(text, *values)


def test_a_node_that_learns_late_of_the_keyspace_is_waited_for(sessions: Sessions) -> None:
    late, waits = LateNode(sessions.options, 2), list[float]()
    for _ in range(2):
        Schema(late, sleep=waits.append).create([LINES])
        assert columns(sessions, "lines") == ["book", "page"]
    kinds = [text.split()[0] for text, times in late.refused.items() for _ in range(times)]
    assert Counter(kinds) == {"CREATE": 2, "SELECT": 2, "INSERT": 4, "DELETE": 2}  # the lock is an INSERT too
    late.close()


def test_a_keyspace_that_no_node_learns_of_is_an_error(sessions: Sessions) -> None:
    late, waits = LateNode(sessions.options, 1000), list[float]()
    with pytest.raises(SchemaMismatch, match="doesn't exist"):
        Schema(late, sleep=waits.append).create([LINES])
    assert sum(waits) == 30
    late.close()


def test_two_nodes_that_make_the_first_table_make_one() -> None:
    assert state_text("a") == state_text("a") != state_text("b")
