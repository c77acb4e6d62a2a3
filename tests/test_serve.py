"""``magazin serve`` as a tree of real processes: it serves, it ends, and it leaves nobody behind."""

import http.client
import os
import random
import signal
import socket
from pathlib import Path

import pytest

from cli.serve import in_memory, metrics_folder
from tests.source import Source
from tests.source import http as answer
from tests.tree import Tree, magazin

LARGE = random.Random(7).randbytes(24 << 20)


@pytest.fixture(scope="module")
def source():
    source = Source({"/large": answer(LARGE, Content_Type="application/x-large")})
    yield source
    source.close()


@pytest.fixture
def token(tmp_path):
    status, out, _ = magazin(tmp_path, "token")
    assert status == 0
    return out.strip()


def test_sigterm_lets_a_running_answer_end_whole_and_refuses_new_ones(tmp_path, token, source):
    with Tree(tmp_path) as tree:
        entry = tree.put(source.url("/large"), "c", token)
        connection = tree.connect()
        connection.sock = socket.create_connection(("127.0.0.1", tree.port))
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        connection.request("GET", f"/binary/{entry['reference_id']}")
        response = connection.getresponse()
        body = response.read(1000)
        tree.process.send_signal(signal.SIGTERM)
        while True:  # until the last listening socket is closed
            try:
                with socket.create_connection(("127.0.0.1", tree.port), timeout=5):
                    pass
            except ConnectionResetError:
                pass  # closed while this one stood in line
            except ConnectionRefusedError:
                break
        assert tree.process.poll() is None
        body += response.read()
        assert body == LARGE
        assert tree.process.wait(60) == 0
        assert tree.ended(5)


def test_kill_9_of_the_supervisor_ends_all_of_them_within_5_seconds(tmp_path, token, source):
    with Tree(tmp_path) as tree:
        entry = tree.put(source.url("/large"), "c", token)
        connection = tree.connect()
        connection.request("GET", f"/binary/{entry['reference_id']}")
        response = connection.getresponse()
        tree.process.kill()
        assert tree.ended(5)
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            assert len(response.read()) < len(LARGE)


@pytest.mark.parametrize("module", ["cli.front", "cli.main"])
def test_a_child_that_dies_is_started_again(tmp_path, module):
    with Tree(tmp_path) as tree:
        tree.ask("GET", "/health/ready")
        first = tree.children()
        os.kill(first[module], signal.SIGKILL)
        while tree.children().get(module) in (first[module], None):
            pass
        assert tree.ask("GET", "/health/ready")[0] == 200
        assert tree.terminate() == 0


def counts_folder(tree):
    """Where the processes of a tree count."""
    child = Path(f"/proc/{tree.process.pid}/task/{tree.process.pid}/children").read_text().split()[0]
    environ = dict(line.split("=", 1) for line in Path(f"/proc/{child}/environ").read_text().split("\0") if line)
    return Path(environ["PROMETHEUS_MULTIPROC_DIR"])


def test_ctrl_c_ends_the_whole_group_cleanly(tmp_path):
    with Tree(tmp_path, "--no-worker") as tree:
        tree.ask("GET", "/health/ready")
        assert set(tree.children()) == {"cli.front"}
        counts = counts_folder(tree)
        assert counts.is_dir()
        os.killpg(tree.process.pid, signal.SIGINT)
        assert tree.process.wait(60) == 0
        assert tree.ended(5)
        assert not counts.exists()


def test_all_workers_count_together(tmp_path):
    with Tree(tmp_path, "--workers", "2", environ={"MAGAZIN_ACCESS_OPEN_LISTS": "true"}) as tree:
        for _ in range(20):
            tree.ask("GET", "/health/live")
        text = tree.ask("GET", "/metrics")[2].decode()
        assert 'magazin_http_requests_total{method="GET",route="/health/live",status="200"} 20.0' in text


def test_a_taken_port_is_one_clear_line(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, out, err = magazin(tmp_path, "serve", "--listen", f"127.0.0.1:{port}")
    assert (status, out) == (1, "")
    assert err == f"Error: can't listen on 127.0.0.1:{port}: Address already in use\n"


def test_a_wrong_setting_is_one_clear_line(tmp_path):
    status, _, err = magazin(tmp_path, "serve", environ={"MAGAZIN_SERVER_WORKRES": "2"})
    assert status == 2
    assert err == "Error: MAGAZIN_SERVER_WORKRES: unknown variable; the nearest known one is MAGAZIN_SERVER_WORKERS\n"


def test_metrics_are_kept_in_memory_since_a_full_disk_kills_who_maps_a_file_on_it(tmp_path):
    memory, data = tmp_path / "shm", tmp_path / "data"
    memory.mkdir()
    folder = in_memory(data, memory)
    assert (folder.parent, folder.stat().st_mode & 0o777) == (memory, 0o700)
    assert in_memory(data, memory) == folder
    assert not data.exists()


def test_metrics_go_to_the_data_folder_where_memory_cannot_be_had_or_trusted(tmp_path):
    memory, data = tmp_path / "shm", tmp_path / "data"
    assert in_memory(data, memory) == data / "run"
    memory.mkdir()
    (memory / f"magazin-{os.getuid()}").symlink_to(tmp_path)  # planted by another user
    assert in_memory(data, memory) == data / "run"


def test_folders_of_dead_servers_go_and_those_of_living_ones_stay(tmp_path):
    mine, dead = metrics_folder(tmp_path), tmp_path / "metrics-dead"
    dead.mkdir()
    machine, pid, _, random_part = (mine / "owner").read_text().split("|")
    (dead / "owner").write_text("|".join([machine, pid, "1", random_part]))  # a pid that was used before
    other = metrics_folder(tmp_path)
    assert {one.name for one in tmp_path.iterdir()} == {mine.name, other.name}


def test_a_watermark_that_is_no_image_is_told_before_anything_listens(tmp_path):
    (tmp_path / "mark.png").write_bytes(b"no image")
    for mark in (tmp_path / "mark.png", tmp_path / "missing.png"):
        status, out, err = magazin(tmp_path / "data", "serve", environ={"MAGAZIN_ACCESS_WATERMARKS": f"shop={mark}"})
        assert (status, out) == (2, "")
        assert err.startswith("Error: [access] watermarks: ")
