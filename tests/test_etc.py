"""The samples in etc/: a gunicorn of one's own, systemd units, nginx."""

import configparser
import io
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from cli.front import options
from cli.settings import Settings
from tests.source import Source
from tests.source import http as answer
from tests.tree import ENVIRON, Tree, magazin

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


@pytest.fixture(scope="module")
def nginx():
    nginx = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if nginx is None:
        if os.environ.get("CI"):
            pytest.fail("nginx is missing; .ci/run installs it")
        pytest.skip("nginx is missing (Debian: apt install nginx-light)")
    return nginx


def test_nginx_takes_the_sample(nginx):
    done = subprocess.run([nginx, "-t", "-q", "-c", str(ETC / "nginx.conf")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def photo():
    file = io.BytesIO()
    Image.effect_noise((900, 600), 60).convert("RGB").save(file, "JPEG")
    return file.getvalue()


PHOTO = photo()


@pytest.fixture(scope="module")
def behind(nginx, tmp_path_factory):
    """A server with a picture, asked through nginx: the tree, a token, the picture's reference."""
    folder = tmp_path_factory.mktemp("nginx")
    token = magazin(folder / "data", "token")[1].split()[-1]
    with (
        Source({"/a.jpg": answer(PHOTO, Content_Type="image/jpeg")}) as source,
        Tree(folder / "data") as tree,
        socket.create_server(("127.0.0.1", 0)) as free,
    ):
        entry = tree.put(source.url("/a.jpg"), "c", token)
        own, port = tree.port, free.getsockname()[1]
        free.close()
        text = (ETC / "nginx.conf").read_text()
        for sample, ours in (("/tmp/magazin-nginx", f"{folder}/nginx"), (":8000", f":{own}"), (":8080", f":{port}")):
            assert sample in text
            text = text.replace(sample, ours)
        (folder / "nginx.conf").write_text(text)
        with subprocess.Popen([nginx, "-c", str(folder / "nginx.conf"), "-g", "daemon off; user root;"]) as process:
            tree.port = port
            try:
                until_answered(port, process)
                yield tree, token, entry["reference_id"]
            finally:
                process.terminate()


def until_answered(port, process):
    while process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            continue
        return
    pytest.fail("nginx ended")


@pytest.mark.parametrize(
    "path", ["/binary/{}/full/!440,330/0/default.jpg", "/iiif/3/{}/0,0,512,512/512,512/0/default.jpg"]
)
def test_nginx_keeps_images(behind, path):
    tree, _, reference = behind
    first, second = (tree.ask("GET", path.format(reference)) for _ in range(2))
    assert (first[0], first[1]["X-Cache"]) == (200, "MISS")
    assert (second[0], second[1]["X-Cache"]) == (200, "HIT")
    assert first[2] == second[2]
    assert second[1]["Access-Control-Allow-Origin"] == "*"


@pytest.mark.parametrize("path", ["/iiif/3/{}/info.json", "/iiif/2/{}/info.json", "/binary/{}/info.json"])
def test_nginx_keeps_addresses_for_each_host(behind, path):
    tree, _, reference = behind
    for host in ("evil.example", "museum.example", "evil.example"):
        told = json.loads(tree.ask("GET", path.format(reference), Host=host)[2])
        assert told.get("id", told.get("@id")).startswith(f"http://{host}/")


def test_nginx_passes_originals_and_their_ranges(behind):
    tree, _, reference = behind
    assert tree.ask("GET", f"/binary/{reference}")[2] == PHOTO
    status, headers, data = tree.ask("GET", f"/binary/{reference}", Range="bytes=-1000")
    assert (status, headers["Content-Range"]) == (206, f"bytes {len(PHOTO) - 1000}-{len(PHOTO) - 1}/{len(PHOTO)}")
    assert data == PHOTO[-1000:]


def test_nginx_passes_uploads_of_files(behind):
    tree, token, _ = behind
    data = os.urandom(3_000_000)
    status, _, _ = tree.ask("PUT", "/files/fs/large", data, Authorization=f"Bearer {token}")
    assert status == 201
    assert tree.ask("GET", "/files/fs/large")[2] == data


def test_nginx_refuses_a_reference_that_is_a_file(behind):
    tree, token, _ = behind
    status, _, _ = tree.ask("PUT", "/binaries", bytes(70_000), Authorization=f"Bearer {token}")
    assert status == 413
