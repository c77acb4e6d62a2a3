import pytest
from falcon import inspect

from app.application import create_app
from app.openapi import PATHS
from app.options import Options
from tests.app_stock import Stock


@pytest.fixture
def stock(tmp_path):
    return Stock(tmp_path)


def test_the_document_names_every_route_and_method_and_no_other(stock):
    routes = inspect.inspect_routes(create_app(stock.library(), Options()))
    there = {
        (route.path.replace(":path", ""), method.method.lower())
        for route in routes
        for method in route.methods
        if not method.internal
    }
    assert {(path, method) for path, operations in PATHS.items() for method in operations} == there


def test_parameters_of_a_path_are_those_of_its_operations():
    for path, operations in PATHS.items():
        inside = {part.strip("{}") for part in path.split("/") if part.startswith("{")}
        for operation in operations.values():
            named = {one["name"] for one in operation["parameters"] if one["in"] == "path"}
            assert named == inside, path


def test_what_is_written_needs_a_token_there_and_here(stock):
    app = stock.app(Options())
    for path, operations in PATHS.items():
        for method, operation in operations.items():
            needs = operation.get("security") == [{"token": []}]
            status = app.request(path.replace("{", "").replace("}", ""), method=method.upper(), status="*").status_int
            assert (status == 403) is ("security" in operation), path
            assert not needs or method in ("put", "post", "patch", "delete")


def test_it_is_served(stock):
    answer = stock.app().get("/openapi.json")
    assert answer.json["openapi"].startswith("3.1.")
    assert answer.json["paths"] == PATHS
