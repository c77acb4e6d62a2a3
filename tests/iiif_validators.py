"""The two public validators of the IIIF Image API, each in an environment of its own, made once.

They are kept in ``~/.cache/magazin-validators`` (``MAGAZIN_TEST_VALIDATORS`` names another folder). With ``CI=true`` a
validator that can't be had fails the test, else it is skipped with a reason.
"""

import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import filelock
import pytest

CACHE = Path(os.environ.get("MAGAZIN_TEST_VALIDATORS") or Path.home() / ".cache" / "magazin-validators")
REQUIRED = os.environ.get("CI") == "true"
GENERIC = "class SizedGenerator[T]:"  # Python 3.12's syntax, which is all that keeps it from running on 3.11
OLDER = 'from typing import Generic, TypeVar\nT = TypeVar("T")\nclass SizedGenerator(Generic[T]):'


class Environment:
    """A virtual environment with one distribution in one version."""

    def __init__(self, name, version):
        self.folder = CACHE / f"{name}-{version}"
        CACHE.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(CACHE / f"{name}.lock"):
            if not (self.folder / "complete").exists():
                venv.create(self.folder, with_pip=True, clear=True)
                pip = [self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
                done = subprocess.run([*pip, f"{name}=={version}"], capture_output=True, text=True, timeout=300)
                if done.returncode:
                    missing(f"{name} {version} can't be installed: {done.stderr.strip().splitlines()[-1]}")
                self._mend()
                (self.folder / "complete").touch()

    @property
    def python(self):
        return str(self.folder / "bin" / "python")

    def file(self, pattern):
        return next(self.folder.glob(f"lib/python*/site-packages/{pattern}"))

    def run(self, *arguments):
        """Exit status and output."""
        done = subprocess.run(
            [self.python, *arguments], capture_output=True, text=True, timeout=300, env=os.environ | {"COLUMNS": "300"}
        )
        return done.returncode, done.stdout + done.stderr

    def _mend(self):
        if sys.version_info < (3, 12):
            for path in self.folder.glob("lib/python*/site-packages/iiif_validator/validate.py"):
                text = path.read_text()
                assert text.count(GENERIC) == 1
                path.write_text(text.replace(GENERIC, OLDER))


def missing(reason):
    if REQUIRED:
        pytest.fail(reason)
    pytest.skip(reason)


def first():
    return Environment("iiif-validator", "1.0.5")


def second():
    return Environment("iiif-validator-ng", "0.1.0")


def picture():
    """The test image, which the second's wheel brings."""
    return second().file("iiif_validator/validation_image.png")


def run_first(port, identifier, version):
    """How many tests it ran, and what it said of those that failed. Level 2: its own default is 1."""
    environment = first()
    status, said = environment.run(
        str(environment.folder / "bin" / "iiif-validate.py"),
        *("--server", f"127.0.0.1:{port}", "--prefix", f"iiif/{version}", "--identifier", identifier),
        *("--version", f"{version}.0", "--level", "2"),
    )
    counts = re.search(r"Done \((\d+) tests, (\d+) failures\)", said)
    assert counts, said
    assert (int(counts[2]) > 0) == (status != 0)
    return int(counts[1]), said if status else ""


def run_second(port, identifier, version):
    """How many checks passed, and what it said of those that failed: it exits with 0 whatever it found."""
    environment = second()
    status, said = environment.run("-c", "import pyvips")
    if status:  # that of pyvips-binary wouldn't do: it reads neither JPEG 2000 nor PDF
        missing(f"iiif-validator-ng wants a libvips (Debian: apt install libvips42): {said.strip().splitlines()[-1]}")
    _, said = environment.run(
        str(environment.folder / "bin" / "iiif-validator"),
        f"http://127.0.0.1:{port}/iiif/{version}",
        *("--validation-id", identifier),
        *(["--v2"] if version == 2 else []),
    )
    counts = re.search(r"✓ (\d+) ✗ (\d+)", said)
    assert counts, said
    return int(counts[1]), said if int(counts[2]) or "\n✗" in said else ""
