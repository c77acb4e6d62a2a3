"""What gunicorn serves in test_app_files_gunicorn: a library over SQLite, which the test opens too."""

import os
from pathlib import Path

from app.application import create_app
from app.options import Options
from storage.sqlite import SqliteStore
from tests.app_stock import Stock


def make():
    folder = Path(os.environ["SERVED_FOLDER"])
    stock = Stock(folder / str(os.getpid()), SqliteStore(folder / "store.sqlite"))
    return create_app(stock.library(), Options(loopback_writes=True), clock=stock.clock)
