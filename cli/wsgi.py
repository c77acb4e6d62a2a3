"""gunicorn's entry: ``gunicorn -c etc/gunicorn.conf.py 'cli.wsgi:application()'``, or any other WSGI server's."""

from __future__ import annotations

from app.problems import App
from cli import sources
from cli.settings import Settings
from cli.wiring import Magazin


def application(settings: Settings | None = None) -> App:
    return Magazin(settings or sources.load()).application()
