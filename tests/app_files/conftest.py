"""An application with one bucket, ``fs``."""

import pytest

from tests.app_stock import Stock


@pytest.fixture
def stock(tmp_path):
    return Stock(tmp_path)


@pytest.fixture
def app(stock):
    return stock.app()


@pytest.fixture
def bucket(stock):
    return stock.buckets.open("fs")
