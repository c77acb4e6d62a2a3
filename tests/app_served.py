"""What gunicorn serves in test_app_gunicorn: a library in memory, with originals that every process knows by name."""

import os
from pathlib import Path

from app.application import create_app
from app.options import Options
from ingest.records import reference_id_of
from storage.chunks import ChunkBlobs
from storage.memory import MemoryStore
from storage.schema import ORIGINALS_DATA
from tests.app_stock import Stock

PART = 64 * 1024
DATA = bytes(range(256)) * (5 * PART // 256)
LARGE = bytes(256 * PART)
NAMES = ("sound", "damaged", "cut", "large", "named")
IDS = {name: reference_id_of("ctx", f"http://source.example/{name}") for name in NAMES}


class Counting(ChunkBlobs):
    """Counts the parts that are handed out."""

    handed = 0

    def parts(self, blob, start, stop):
        for part in super().parts(blob, start, stop):
            self.handed += 1
            yield part


def make():
    """The app; under /unsized/ without the lengths that it sends; /handed counts parts, /process is the server's id."""
    store = MemoryStore()
    store.create([ORIGINALS_DATA])
    blobs = Counting(store, part_size=PART)
    stock = Stock(Path(os.environ["SERVED_FOLDER"]) / str(os.getpid()), store, blobs)
    for name in NAMES:
        filename = 'na"me\r\nSet-Cookie: x=1; Ü.txt' if name == "named" else name
        stock.put(LARGE if name == "large" else DATA, url=f"http://source.example/{name}", filename=filename)
    for name, part in (("damaged", 0), ("cut", 3)):
        original = stock.references.find(IDS[name])[1]
        held = store._data[ORIGINALS_DATA.name][(original.original_id, original.attempt, 0)]
        held.set((part,), held.rows[(part,)] | {"data": b"z" * PART})
    metrics = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    app = create_app(
        stock.library(), Options(loopback_writes=True, metrics=Path(metrics) if metrics else None), clock=stock.clock
    )

    def application(environ, start_response):
        shown = {"/handed": blobs.handed, "/process": os.getpid()}.get(environ["PATH_INFO"])
        if shown is not None:
            body = str(shown).encode()
            start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
            return [body]
        if not environ["PATH_INFO"].startswith("/unsized/"):
            return app(environ, start_response)

        def unsized(status, headers, exc_info=None):
            return start_response(status, [one for one in headers if one[0].lower() != "content-length"])

        cut = {name: environ[name].removeprefix("/unsized") for name in ("PATH_INFO", "RAW_URI")}
        return app(environ | cut, unsized)

    return application
