"""The HTTP server: gunicorn with our settings. ``python -m cli.front --fd N`` serves on an inherited socket."""

from __future__ import annotations

import argparse
import logging
import os
import signal
from collections.abc import Callable
from typing import Any

from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from gunicorn.glogging import Logger

from cli import lifeline, logs, sources
from cli.settings import Settings
from cli.threads import Threads
from cli.wsgi import application

Wsgi = Callable[..., Any]


class Lines(Logger):  # type: ignore[misc]
    """gunicorn's own lines, through the log of the process."""

    def setup(self, cfg: Any) -> None:
        for logger in (self.error_log, self.access_log):
            logger.handlers, logger.propagate = [], True
        self.error_log.setLevel(logging.INFO if cfg.loglevel == "debug" else logging.WARNING)


def options(settings: Settings) -> dict[str, Any]:
    """gunicorn's settings from ours; also what etc/gunicorn.conf.py uses."""
    server = settings.server
    return {
        "worker_class": f"{Threads.__module__}.{Threads.__name__}",
        "logger_class": f"{__name__}.{Lines.__name__}",
        "loglevel": settings.log.level,
        "workers": server.workers,
        "threads": server.threads,
        "worker_connections": max(server.connections, server.threads + 1),
        "keepalive": round(server.keep_alive),
        "graceful_timeout": round(server.graceful_timeout),
        "timeout": 120,  # a heartbeat of the process, not a limit of requests: gthread beats beside its threads
        "limit_request_line": 8190,
        "control_socket_disable": True,
        "when_ready": _ignore_interrupt,
        "post_fork": _watch,
        "post_worker_init": _ignore_interrupt,
        "child_exit": _forget,
    }


def _ignore_interrupt(_server: Any) -> None:
    # Ctrl-C reaches the whole process group; the supervisor turns it into SIGTERM. gunicorn would cut running answers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _watch(_arbiter: Any, _worker: Any) -> None:
    lifeline.watch()


def _forget(_arbiter: Any, worker: Any) -> None:
    if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        from prometheus_client import multiprocess

        multiprocess.mark_process_dead(worker.pid)


class Front(BaseApplication):  # type: ignore[misc]
    """A gunicorn that takes its settings from us and looks for none of its own."""

    def __init__(self, options: dict[str, Any], load: Callable[[], Wsgi]) -> None:
        self._options, self._load = options, load
        super().__init__()

    def load_config(self) -> None:
        for name, value in self._options.items():
            self.cfg.set(name, value)

    def load(self) -> Wsgi:
        return self._load()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fd", type=int, required=True, help="a listening socket that was inherited")
    descriptor = parser.parse_args().fd
    lifeline.watch()
    settings = sources.load()
    logs.configure(settings.log)

    Arbiter(Front({**options(settings), "bind": [f"fd://{descriptor}"]}, lambda: application(settings))).run()


if __name__ == "__main__":
    main()
