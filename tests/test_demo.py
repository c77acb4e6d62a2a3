"""``make serve``'s command: samples in, addresses that work, and a second run that doubles nothing."""

import os
import re
import signal
import socket
import subprocess
import urllib.request

import pytest
from PIL import Image

from cli.supervisor import python
from imaging.samples import SAMPLES
from tests.tree import ENVIRON, magazin


class Demo:
    def __init__(self, data, port):
        self.process = subprocess.Popen(
            [*python("cli.main"), "demo", "--listen", f"127.0.0.1:{port}", "--data", str(data)],
            env={name: value for name, value in ENVIRON.items() if "ALLOW_NETWORKS" not in name}
            | {"MAGAZIN_ACCESS_OPEN_LISTS": "true"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.shown = ""
        while "curl" not in self.shown:
            line = self.process.stdout.readline()
            assert line, self.process.stderr.read()
            self.shown += line

    def named(self, word):
        return re.search(rf"^  {word} +(\S+)$", self.shown, re.MULTILINE)[1]

    def end(self):
        os.killpg(self.process.pid, signal.SIGINT)
        _, err = self.process.communicate(timeout=90)
        return self.process.returncode, err


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def first(data):
    """The first run ended, with what its addresses answered."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        demo = Demo(data, port)
        pages = {}
        for word in ("page", "thumbnail", "original", "viewer", "manifest", "list"):
            with urllib.request.urlopen(demo.named(word), timeout=60) as answer:
                pages[word] = answer.headers.get_content_type(), answer.read()
    status, err = demo.end()
    return {"port": port, "pages": pages, "status": status, "err": err, "token": demo.named("token"), "demo": demo}


def test_it_takes_the_next_port_when_the_wanted_one_is_taken(first):
    assert 0 < int(first["demo"].named("page").rpartition(":")[2].strip("/")) - first["port"] < 50


def test_the_addresses_work(first, tmp_path):
    pages = first["pages"]
    assert pages["page"][0] == "text/html"
    assert pages["page"][1].count(b"<img") == len(SAMPLES)
    assert pages["list"][1].count(b'"OK"') == len(SAMPLES)
    assert pages["viewer"][0] == "text/html" and SAMPLES[0].name.encode() in pages["viewer"][1]
    assert pages["manifest"][0] == "application/ld+json"
    assert pages["manifest"][1].count(b'"Canvas"') == len(SAMPLES)
    for word, size in (("thumbnail", (440, 293)), ("original", (SAMPLES[0].width, SAMPLES[0].height))):
        kind, body = pages[word]
        (tmp_path / word).write_bytes(body)
        assert kind == "image/jpeg"
        assert Image.open(tmp_path / word).size == size


def test_ctrl_c_ends_it_cleanly(first):
    assert first["status"] == 0
    assert "Traceback" not in first["err"]


def test_only_its_own_samples_may_come_from_loopback(first, data):
    refused = magazin(data, "ingest", "-", text="http://127.0.0.1:9/x\n", environ={"MAGAZIN_FETCH_ALLOW_NETWORKS": ""})
    assert refused[0] == 1
    assert "127.0.0.0/8" in refused[1]


def test_a_second_run_doubles_nothing_and_keeps_the_token(first, data):
    demo = Demo(data, 0)
    with urllib.request.urlopen(demo.named("list"), timeout=60) as answer:
        assert answer.read() == first["pages"]["list"][1]
    assert demo.named("token") == first["token"]
    assert (data / "demo-token").stat().st_mode & 0o777 == 0o600
    assert demo.end()[0] == 0
