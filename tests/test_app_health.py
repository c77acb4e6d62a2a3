import pytest

from storage.errors import Unavailable
from storage.memory import MemoryStore
from tests.app_stock import Stock


class Moody(MemoryStore):
    down = False

    def get(self, table, key, columns=None):
        if self.down:
            raise Unavailable("no node")
        return super().get(table, key, columns)


@pytest.fixture
def stock(tmp_path):
    return Stock(tmp_path, Moody(strict=True))


def test_live_whatever_the_store_does_ready_only_with_it(stock):
    app = stock.app()
    assert app.get("/health/ready").json == {"status": "ready"}
    stock.store.down = True
    assert app.get("/health/live").json == {"status": "live"}
    assert app.head("/health/live").body == b""
    answer = app.get("/health/ready", status=503)
    assert (answer.headers["Retry-After"], answer.headers["Cache-Control"]) == ("5", "no-store")
    stock.store.down = False
    app.get("/health/ready", status=200)


def test_no_box_from_a_store_that_is_down(stock):
    reference_id = stock.put_image()
    stock.store.down = True
    stock.app().get(f"/binary/{reference_id}/full/!800,600/0/default.jpg", status=503)
