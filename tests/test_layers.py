"""The arrows of the design, read from the imports: who may know whom, and where each library lives."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

KNOWS = {
    "app": {"ingest", "imaging", "storage"},
    "cli": {"app", "ingest", "imaging", "storage"},  # cli is where everything is put together
    "ingest": {"storage", "imaging"},
    "storage": set(),
    "imaging": set(),
}
HOMES = {
    "falcon": ["app/"],
    "cassandra": ["storage/cassandra"],
    "pyvips": ["imaging/"],
    "diskcache": ["storage/cache_rows.py"],
    "requests": ["ingest/fetch/"],
    "urllib3": ["ingest/fetch/"],
    "apsw": ["storage/sqlite"],
    "sqlite3": ["storage/cache", "cli/libraries.py"],
    "gunicorn": ["cli/"],
    "click": ["cli/"],
    "rich": ["cli/"],
    "pickle": [],
}


def imports(source):
    """Dotted names that a module imports, also those within functions and under TYPE_CHECKING."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("import_module", "importlib.import_module"):
            yield from (one.value for one in node.args if isinstance(one, ast.Constant))


def breaches(path, source):
    """What of ``source``, were it the file ``path``, the design forbids."""
    layer = path.split("/")[0]
    for name in imports(source):
        top = name.split(".")[0]
        if not top:
            yield f"{path}: relative import {name}"
        if top in KNOWS and top != layer and top not in KNOWS[layer]:
            yield f"{path}: {layer} must not know {name}"
        if top == "tests":
            yield f"{path}: imports {name}"
        if top in HOMES and not any(path.startswith(home) for home in HOMES[top]):
            yield f"{path}: {top} lives only in {', '.join(HOMES[top]) or 'no module'}"


def modules():
    return sorted(path.relative_to(ROOT).as_posix() for layer in KNOWS for path in (ROOT / layer).rglob("*.py"))


def test_every_module_keeps_to_the_design():
    assert [line for path in modules() for line in breaches(path, (ROOT / path).read_text(encoding="utf-8"))] == []


def test_modules_are_small_enough_to_hold_one_idea():
    # storage/contract.py is a suite of tests that is shipped
    long = {path: (ROOT / path).read_text(encoding="utf-8").count("\n") for path in modules()}
    assert {path: lines for path, lines in long.items() if lines > 400 and path != "storage/contract.py"} == {}


@pytest.mark.parametrize(
    "path, source",
    [
        ("storage/a.py", "import ingest.queue"),
        ("storage/a.py", "from imaging import size"),
        ("imaging/a.py", "from storage.errors import Damaged"),
        ("ingest/a.py", "def f():\n    from app import application"),
        ("app/a.py", "from cli.settings import Settings"),
        ("app/a.py", "from ..storage import table"),
        ("ingest/a.py", "import importlib\nimportlib.import_module('app.tokens')"),
        ("ingest/a.py", "from tests import sources"),
        ("cli/a.py", "import falcon"),
        ("ingest/a.py", "from falcon import testing"),
        ("storage/sqlite.py", "import cassandra.cluster"),
        ("app/a.py", "import pyvips"),
        ("imaging/a.py", "import diskcache"),
        ("ingest/a.py", "import requests"),
        ("ingest/fetch.py", "import urllib3"),
        ("storage/cache.py", "import pickle"),
        ("storage/a.py", "import apsw"),
        ("app/a.py", "from gunicorn import config"),
    ],
)
def test_a_breach_is_seen(path, source):
    assert len(list(breaches(path, source))) == 1


@pytest.mark.parametrize(
    "path, source",
    [
        ("cli/a.py", "from app.application import create_app\nfrom gunicorn.app.base import BaseApplication"),
        ("ingest/a.py", "import storage.table, imaging.size, ingest.queue"),
        ("ingest/fetch/a.py", "import requests, urllib3"),
        ("storage/cassandra/session.py", "from cassandra import cluster"),
        ("storage/cassandra_rows.py", "from cassandra import cluster"),
        ("app/a.py", "import requests_like, falcon.testing"),
    ],
)
def test_what_the_design_allows(path, source):
    assert list(breaches(path, source)) == []
