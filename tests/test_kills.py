"""kill -9 at random moments: whatever was under way, everything ends OK, RETRY or ERROR and is consistent."""

import io
import json
import random
import signal
import subprocess
import threading

from PIL import Image

from cli.supervisor import python
from ingest.records import Status
from tests.source import Source
from tests.source import http as answer
from tests.tree import ENVIRON, Tree, magazin

FILES = 50
KILLS = 20


def image(number):
    file = io.BytesIO()
    Image.effect_noise((400 + number, 300), 70).convert("RGB").save(file, "JPEG")
    return file.getvalue()


def slowly(data, pause):
    def send(connection, request):
        whole = answer(data, Content_Type="image/jpeg")
        connection.sendall(whole[: len(whole) // 2])
        pause.wait(0.1)
        return whole[len(whole) // 2 :]

    return send


def worker(data):
    return subprocess.Popen(
        [*python("cli.main"), "worker", "--data", str(data)],
        env=ENVIRON | {"MAGAZIN_WORKER_THREADS": "3"},
        stderr=subprocess.DEVNULL,
    )


def outcomes(data):
    status, out, err = magazin(data, "status", "--json")
    assert status == 0, err
    return json.loads(out)


def test_workers_killed_at_random_moments_leave_everything_consistent(tmp_path):
    data, pick, never = tmp_path / "data", random.Random(11), threading.Event()
    images = {f"/{number}.jpg": image(number) for number in range(FILES)}
    with Source({target: slowly(body, never) for target, body in images.items()}) as source:
        lines = "".join(f"{source.url(target)}\n" for target in images)
        feeder = subprocess.Popen(
            [*python("cli.main"), "ingest", "-", "--no-work", "--context", "ctx", "--data", str(data)],
            env=ENVIRON,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        feeder.stdin.write(lines)
        feeder.stdin.close()
        for _ in range(KILLS):
            process = worker(data)
            try:
                process.wait(pick.uniform(0.8, 2))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL
        last = worker(data)
        assert feeder.wait(240) in (0, 1)  # 1: some ended ERROR, because three workers died at them
        last.terminate()
        assert last.wait(60) in (0, -signal.SIGTERM)  # all may have been done before it had begun
    status, out, _ = magazin(data, "check", "--json")
    report = json.loads(out)
    assert (status, report["wrong"]) == (0, {}), out
    assert report["originals"] == report["references"] == FILES
    assert set(report["statuses"]) <= {Status.OK, Status.ERROR}
    assert report["statuses"]["OK"] >= FILES * 3 // 4
    status, out, _ = magazin(data, "sweep", "--grace", "0", "--json")
    assert status == 0
    status, out, _ = magazin(data, "rm", "--context", "ctx")
    assert status == 0
    status, out, _ = magazin(data, "sweep", "--grace", "0", "--json")
    assert json.loads(out)["originals"] == FILES
    assert [path.name for path in (data / "blobs").rglob("*") if path.is_file()] == []


def test_the_whole_tree_killed_during_ingest_comes_back_whole(tmp_path):
    data, pick, never = tmp_path / "data", random.Random(12), threading.Event()
    _, out, _ = magazin(data, "token")
    token = out.split()[-1]
    images = {f"/{number}.jpg": image(number) for number in range(20)}
    entries = {}
    with Source({target: slowly(body, never) for target, body in images.items()}) as source:
        for begin in range(0, len(images), 5):
            with Tree(data) as tree:
                for target in list(images)[begin : begin + 5]:
                    entries[target] = tree.put(source.url(target), "ctx", token, wait=0)
                threading.Event().wait(pick.uniform(0, 0.6))
                tree.process.kill()
        with Tree(data) as tree:
            for target in images:
                entry = tree.put(source.url(target), "ctx", token, wait=60)
                assert entry["reference_id"] == entries[target]["reference_id"]
                assert entry["status"] == "OK"
                assert tree.ask("GET", f"/binary/{entry['reference_id']}")[2] == images[target]
            assert tree.terminate() == 0
    status, out, _ = magazin(data, "check", "--json")
    assert (status, json.loads(out)["wrong"]) == (0, {})
