"""The samples in etc/: a gunicorn of one's own, systemd units, nginx."""

import configparser
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli.front import options
from cli.settings import Settings
from tests.tree import ENVIRON

ETC = Path(__file__).parent.parent / "etc"


def test_a_gunicorn_of_ones_own_starts_with_the_sample(tmp_path):
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "gunicorn",
            "-c",
            str(ETC / "gunicorn.conf.py"),
            "--print-config",
            "cli.wsgi:application()",
        ],
        env=ENVIRON | {"MAGAZIN_DATA": str(tmp_path), "MAGAZIN_SERVER_LISTEN": "127.0.0.1:8765", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    shown = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    shown = {name.strip(): value.strip() for name, value in shown.items()}
    assert done.returncode == 0, done.stderr
    assert shown["bind"] == "['127.0.0.1:8765']"
    assert shown["threads"] == str(Settings().server.threads)
    assert shown["control_socket_disable"] == "True"


def test_gunicorn_gets_every_setting_of_the_server():
    found = options(Settings())
    server = Settings().server
    assert found["workers"] == server.workers
    assert found["threads"] == server.threads
    assert found["graceful_timeout"] == server.graceful_timeout
    assert found["worker_connections"] == server.connections
    assert found["keepalive"] == server.keep_alive


@pytest.mark.parametrize("unit", sorted(ETC.glob("*.service")), ids=lambda unit: unit.name)
def test_a_unit_ends_later_than_the_server_wants_to(unit):
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str
    parser.read(unit)
    service = parser["Service"]
    command = service["ExecStart"].split()
    assert command[0].endswith("/magazin")
    assert command[1] in ("serve", "worker")
    if command[1] == "serve":
        assert int(service["TimeoutStopSec"]) > Settings().server.graceful_timeout + 5


def test_nginx_takes_the_sample():
    nginx = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if nginx is None:
        if os.environ.get("CI"):
            pytest.fail("nginx is missing; .ci/run installs it")
        pytest.skip("nginx is missing (Debian: apt install nginx-light)")
    done = subprocess.run([nginx, "-t", "-q", "-c", str(ETC / "nginx.conf")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
