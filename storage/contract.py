"""The suite that every storage plugin passes, shipped so that a third party's plugin can run it.

A plugin's tests subclass :class:`StoreContract` and give the fixture ``handles``, of scope class: a function that opens
another handle to one and the same empty store::

    class TestMyStore(StoreContract):
        @pytest.fixture(scope="class")
        @classmethod
        def handles(cls):
            return lambda: MyStore(...)

The tests make their own tables once, use keys of their own, and assume nothing about time. It needs pytest and
hypothesis (the extra ``tests``). Blob stores subclass :class:`BlobContract` in the same way.
"""

import pytest

for part in (
    "contract_rows",
    "contract_plain",
    "contract_reads",
    "contract_commits",
    "contract_model",
    "contract_blobs",
    "contract_readers",
):
    pytest.register_assert_rewrite(f"storage.{part}")

from storage.contract_commits import CommitContract  # noqa: E402
from storage.contract_model import ModelContract  # noqa: E402
from storage.contract_plain import PlainContract  # noqa: E402
from storage.contract_readers import BlobReadContract  # noqa: E402
from storage.contract_reads import ReadContract  # noqa: E402
from storage.contract_rows import TABLES  # noqa: E402

__all__ = ["TABLES", "BlobContract", "StoreContract"]


class StoreContract(PlainContract, ReadContract, CommitContract, ModelContract):
    """Every promise of :class:`storage.interface.Store`."""


class BlobContract(BlobReadContract):
    """Every promise of :class:`storage.blobs.BlobStore`."""
