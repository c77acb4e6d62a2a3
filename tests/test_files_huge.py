"""5 GiB through HTTP, up and down: the bytes are the same, and memory stays flat."""

import json
import os
import shutil

import pytest

from bench import files, memory
from storage.bucket_tables import chunks_together
from tests.tree import Tree

LIMIT = 100 << 20  # bytes beyond what was in use before


@pytest.fixture
def data(tmp_path):
    """Not left to pytest, which would keep gigabytes for three runs."""
    yield tmp_path / "data"
    shutil.rmtree(tmp_path / "data")


@pytest.mark.stress
@pytest.mark.parametrize("megabytes", [files.HUGE])
def test_memory_stays_flat(data, megabytes):
    with Tree(data, "--no-worker", environ={"MAGAZIN_ACCESS_OPEN_WRITES": "loopback"}) as tree:
        address = f"127.0.0.1:{tree.port}"
        files.put(address, "/files/fs/warm", 32)
        files.receive(address, "/files/fs/warm")
        used = memory.set_back([*memory.tree([tree.process.pid]), os.getpid()])
        sent = files.put(address, "/files/fs/huge", megabytes)
        assert files.receive(address, "/files/fs/huge") == sent
        assert memory.grown(used) < LIMIT
        record = json.loads(tree.ask("GET", "/files/fs?filename=huge")[2])[0]
        assert (record["length"], record["sha256"]) == (megabytes << 20, sent)
        end = tree.ask("GET", "/files/fs/huge", Range="bytes=-9")
        assert (end[0], end[1]["Content-Range"]) == (
            206,
            f"bytes {record['length'] - 9}-{record['length'] - 1}/{record['length']}",
        )
        assert end[2] == files.BLOCK[-9:]
        assert tree.ask("DELETE", "/files/fs/huge?hard=true")[0] == 204
    assert chunks_together(record["chunkSizeBytes"]) * record["chunkSizeBytes"] < 64 << 20
