"""Both public validators against a real server: no failure, for every format and feature that is claimed."""

import json
import urllib.request

import pytest

from tests import iiif_validators
from tests.tree import Tree, magazin

EVERY_FORMAT = {"jpg", "png", "webp", "tif", "gif", "avif", "jp2", "pdf"}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The port of a server, and the id of the validators' own picture in it."""
    data = tmp_path_factory.mktemp("validators") / "data"
    picture = iiif_validators.picture()
    status, said, errors = magazin(data, "ingest", str(picture), "--allow-files", "--context", "validators")
    assert status == 0, said + errors
    with Tree(data, "--no-worker", environ={"MAGAZIN_ACCESS_OPEN_LISTS": "true"}) as tree:
        with urllib.request.urlopen(f"http://127.0.0.1:{tree.port}/binaries/validators") as answer:
            [entry] = json.load(answer)
        yield tree.port, entry["reference_id"]


@pytest.mark.parametrize(("version", "least"), [(2, 30), (3, 33)])
def test_iiif_validator(served, version, least):
    ran, failures = iiif_validators.run_first(*served, version)
    assert failures == ""
    assert ran >= least


@pytest.mark.parametrize("version", [2, 3])
def test_iiif_validator_ng(served, version):
    passed, failures = iiif_validators.run_second(*served, version)
    assert failures == ""
    assert passed >= 120


def test_every_format_is_claimed_so_that_it_is_validated(served):
    port, identifier = served
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/iiif/3/{identifier}/info.json") as answer:
        assert {"jpg", "png", *json.load(answer)["extraFormats"]} == EVERY_FORMAT
