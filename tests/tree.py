"""A real ``magazin serve`` on a free port, and the command beside it, for tests."""

import http.client
import json
import os
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

from cli.supervisor import python

ENVIRON = {name: value for name, value in os.environ.items() if not name.startswith("MAGAZIN_")} | {
    "MAGAZIN_FETCH_ALLOW_NETWORKS": "127.0.0.0/8",
    "MAGAZIN_SERVER_WORKERS": "1",
    "MAGAZIN_LOG_ACCESS": "false",
}


def magazin(data, *arguments, environ=None, text=None, timeout=120):
    """Run a command to its end: its exit status, standard output, standard error."""
    done = subprocess.run(
        [*python("cli.main"), *arguments, "--data", str(data)],
        env=ENVIRON | (environ or {}),
        input=text,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    return done.returncode, done.stdout, done.stderr


class Tree:
    """``with Tree(folder) as tree``: killed at the end, if it isn't gone by itself."""

    def __init__(self, data, *arguments, environ=None):
        self.data = Path(data)
        self.process = subprocess.Popen(
            [*python("cli.main"), "serve", "--listen", "127.0.0.1:0", "--data", str(data), *arguments],
            env=ENVIRON | (environ or {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        line = self.process.stdout.readline()
        found = re.fullmatch(r"listening on http://127\.0\.0\.1:(\d+)\n", line)
        assert found, line + self.process.stderr.read()
        self.port = int(found[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.ended(30)
        self.process.stdout.close()
        self.process.stderr.close()

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def ask(self, method, path, body=None, **headers):
        """Status, headers and whole body of one request."""
        connection = self.connect()
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, fields)
        answer = connection.getresponse()
        found = answer.status, answer.headers, answer.read()
        connection.close()
        return found

    def put(self, url, context, token, wait=60):
        """The entry that PUT answers with, its outcome waited for."""
        body = json.dumps({"url": url, "context": context})
        status, _, answer = self.ask(
            "PUT",
            "/binaries",
            body,
            Content_Type="application/json",
            Authorization=f"Bearer {token}",
            Prefer=f"wait={wait}",
        )
        assert status in (200, 202), answer
        return json.loads(answer)

    def children(self):
        """Process ids of the supervisor's children, by the module that they run."""
        found = {}
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                try:
                    parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                    words = (folder / "cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                if parent == self.process.pid and b"-P" in words:  # not yet so between fork and exec
                    found[words[words.index(b"-m") + 1].decode()] = int(folder.name)
        return found

    def ended(self, seconds):
        """Whether every process of the tree is gone: all of them hold the other end of this pipe."""
        while select.select([self.process.stderr], [], [], seconds)[0]:
            if not os.read(self.process.stderr.fileno(), 65536):
                return True
        return False

    def terminate(self):
        """SIGTERM; the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(90)


assert sys.platform == "linux", "the tests of the tree read /proc"
