"""The command in a folder of its own, and the bucket that it fills."""

import logging

import pytest
from click.testing import CliRunner

from cli.main import main
from cli.settings import Settings
from cli.wiring import Magazin


@pytest.fixture
def magazin(tmp_path, monkeypatch):
    """Run ``magazin files …`` in a folder of its own: exit status, standard output as bytes, standard error."""
    monkeypatch.chdir(tmp_path)
    before = logging.root.handlers[:], logging.root.level

    def run(*arguments, data=None):
        words = ["files", *arguments, "--data", str(tmp_path / "data")]
        done = CliRunner().invoke(main, words, input=data, prog_name="magazin")
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, done.stdout_bytes, done.stderr

    yield run
    logging.root.handlers[:], logging.root.level = before


@pytest.fixture
def bucket(tmp_path):
    parts = Magazin(Settings(data=tmp_path / "data"))
    yield parts.buckets.open("fs")
    parts.close()
