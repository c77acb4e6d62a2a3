"""``magazin worker``."""

from __future__ import annotations

import signal

import click

from cli import lifeline
from cli.options import flag, with_settings
from cli.settings import Settings
from cli.stopping import stop_at
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
    stop = stop_at(signal.SIGTERM, signal.SIGINT)
    Magazin(settings).worker().run(stop)  # left open: a sweep may still run, and is cut by the end of the process
