"""``magazin serve``: a supervisor over the HTTP server and one worker."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import click

from cli.kinds import Address
from cli.options import Failed, flag, say, with_settings
from cli.settings import Settings
from cli.supervisor import Child, Supervisor, python
from cli.wiring import Magazin
from ingest.owner import is_dead, this_process

MARGIN = 5.0  # seconds beyond the graceful timeout, for gunicorn to end its own workers


@click.command()
@flag("--listen", "server.listen")
@flag("--workers", "server.workers")
@flag("--threads", "server.threads")
@click.option("--no-worker", is_flag=True, help="Only answer requests; leave the queue to other machines.")
@with_settings
@click.pass_context
def serve(context: click.Context, settings: Settings, no_worker: bool) -> None:
    """Serve over HTTP and work the queue off, until SIGTERM or Ctrl-C.

    \b
    Examples:
      magazin serve
      magazin serve --listen 0.0.0.0:8000 --workers 4 --data /srv/magazin
      MAGAZIN_STORAGE_PLUGIN=cassandra magazin serve --listen [::1]:0
    """
    listener = bind(settings.server.listen)
    prepare(settings)
    announce(listener)
    sys.exit(run(settings, context.obj, listener, with_worker=not no_worker))


def bind(address: Address) -> socket.socket:
    """A listening socket. Raises Failed with a clear line."""
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, where = found[0]
        return socket.create_server(where[:2], family=family, backlog=2048)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno and error.errno > 0 else error
        raise Failed(f"can't listen on {address}: {why}") from error


def prepare(settings: Settings) -> None:
    """Make the embedded store's tables once, before several processes ask for them; read what the settings name."""
    magazin = Magazin(settings)
    try:
        _ = magazin.blobs, magazin.policy
    finally:
        magazin.close()


def announce(listener: socket.socket) -> None:
    host, port = listener.getsockname()[:2]
    say(f"listening on http://{Address(host, port)}")


def run(
    settings: Settings,
    environ: Mapping[str, str],
    listener: socket.socket,
    *,
    with_worker: bool = True,
) -> int:
    """Run the tree until it is told to end; the exit status."""
    children = [Child("server", python("cli.front", "--fd", str(listener.fileno())), (listener.fileno(),))]
    if with_worker:
        children.append(Child("worker", python("cli.main", "worker")))
    folder = metrics_folder(in_memory(settings.data))
    supervisor = Supervisor(
        children,
        # glibc keeps memory for each thread that decoded an image, unless it is told how many arenas there may be.
        environ={"MALLOC_ARENA_MAX": "2", **os.environ, **environ, "PROMETHEUS_MULTIPROC_DIR": str(folder)},
        grace=settings.server.graceful_timeout + MARGIN,
        stopping=listener.close,
    )
    try:
        return supervisor.run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def metrics_folder(parent: Path) -> Path:
    """A new folder in which the processes of this server count together; those of dead servers are removed."""
    for old in parent.glob("metrics-*"):
        with suppress(OSError):
            owner = (old / "owner").read_text(encoding="utf-8")
            if is_dead(owner):
                shutil.rmtree(old, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix="metrics-", dir=parent))
    (folder / "owner").write_text(this_process(), encoding="utf-8")
    return folder


def in_memory(data: Path, memory: Path = Path("/dev/shm")) -> Path:
    """A folder of this user's on a file system in memory; in the data folder where there is none.

    Metrics are mapped files: on a full disk the first touch of a new page kills the process (SIGBUS), so that in the
    data folder a full disk would end all delivery.
    """
    folder = memory / f"magazin-{os.getuid()}"
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and os.access(folder, os.W_OK):
            return folder
    (data / "run").mkdir(parents=True, exist_ok=True)
    return data / "run"
