"""``magazin worker``."""

from __future__ import annotations

import signal
import threading

import click

from cli import lifeline
from cli.options import flag, with_settings
from cli.settings import Settings
from cli.wiring import Magazin


@click.command()
@flag("--threads", "worker.threads")
@with_settings
def worker(settings: Settings) -> None:
    """Work the queue off: fetch, check, scale, sweep. Any number of workers may run, on any number of machines.

    Running jobs that can't end at once are given back to the queue at SIGTERM or Ctrl-C.

    \b
    Examples:
      magazin worker --threads 8
      magazin worker --data /srv/magazin --set sweep.interval=0s
    """
    lifeline.watch()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    Magazin(settings).worker().run(stop)  # left open: a sweep may still run, and is cut by the end of the process
