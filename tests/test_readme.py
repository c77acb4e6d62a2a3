"""The README and the other pages: their commands run, what they point to is there, and nothing is left out."""

import importlib
import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import click
import falcon.inspect
import pytest
from click.testing import CliRunner

from app.application import create_app
from app.metrics import Metrics
from app.options import Options
from cli.main import COMMANDS, main
from tests.app_stock import Stock

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_readme_is_short():
    assert README.count("\n") <= 110


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_points_to_is_there(page):
    text = page.read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#\s]+)", text) if "://" not in link]
    files = re.findall(r"`((?:etc|docs|tests|app|cli|ingest|imaging|storage)/[\w./-]+\.\w+)`", text)
    missing = [link for link in links if not (page.parent / link).exists()]
    missing += [name for name in files if not (ROOT / name).exists()]
    assert missing == []


def test_the_two_commands_are_targets_of_make():
    commands = re.findall(r"^```\n(make \w+)\n```$", README, re.MULTILINE)
    assert commands == ["make serve", "make test"]
    for command in [*commands, "make lint", "make stress"]:
        done = subprocess.run([*shlex.split(command), "--dry-run"], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "commands.md"], ids=lambda page: page.name)
def test_every_magazin_command_on_a_page_parses(page):
    """Each is parsed with its options and arguments; nothing is run."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```(?:console|sh)?\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    found = [
        shlex.split(line.removeprefix("$ "), comments=True)
        for block in blocks
        for line in block.replace("\\\n", " ").splitlines()
        if re.match(r"(\$ )?(MAGAZIN_\S+ )*magazin ", line)
    ]
    for words in found:
        words = words[words.index("magazin") + 1 :]
        group = main.make_context("magazin", words[:1], resilient_parsing=True)
        command = main.get_command(group, words[0])
        assert command is not None, words
        context = command.make_context(words[0], words[1:], parent=group)
        if isinstance(command, click.Group):
            inner = command.get_command(context, words[1])
            assert inner is not None, words
            inner.make_context(words[1], words[2:], parent=context)
    if page.name == "README.md":
        assert {words[1] for words in found} == {"token", "serve", "ingest", "check"}


def test_every_command_is_on_the_page_of_commands_and_in_the_changelog():
    page = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for name in COMMANDS:
        assert f"## magazin {name}\n" in page
        assert re.search(rf"\b{name}\b", changes)


def test_the_help_names_every_command():
    shown = CliRunner().invoke(main, ["--help"]).stdout
    assert re.findall(r"^  (\w+)  ", shown, re.MULTILINE) == list(COMMANDS)


def test_every_route_is_on_the_page_of_http(tmp_path):
    page = (ROOT / "docs/http.md").read_text(encoding="utf-8")
    app = create_app(Stock(tmp_path).library(), Options())
    routes = falcon.inspect.inspect_routes(app)
    assert len(routes) > 10
    for route in routes:
        path = route.path.replace(":path", "")
        assert f"`{path}`" in page, path
        for method in route.methods:
            if not method.internal and method.method in ("GET", "PUT", "DELETE", "POST"):
                rows = page[page.index(f"| `{path}` |") :].partition("\n| `")[0]  # rows without a path go on with it
                assert method.method in rows, (route.path, method.method)


def test_every_metric_is_on_the_page_of_operating():
    page = (ROOT / "docs/operating.md").read_text(encoding="utf-8")
    names = [family.name for family in Metrics()._registry.collect()]
    assert len(names) >= 4
    assert [name for name in names if f"`{name}" not in page] == []


def test_the_version_is_one():
    setup = (ROOT / "setup.py").read_text(encoding="utf-8")
    assert re.search(r'version="([^"]+)"', setup)[1] == importlib.metadata.version("magazin")
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]


def test_the_lock_names_exact_versions_and_nothing_of_a_place():
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    assert [line for line in lock if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!+-]+", line)] == []
    from packaging.requirements import Requirement

    locked = {line.partition("==")[0].lower().replace("_", "-"): line.partition("==")[2] for line in lock}
    for text in importlib.metadata.requires("magazin"):
        wanted = Requirement(text)
        name = wanted.name.lower().replace("_", "-")
        assert wanted.specifier.contains(locked[name], prereleases=True), text
