import base64
import hashlib

import pytest

from ingest.fetch.digest import Tally, announced
from tests.test_fetch_freshness import headers

BODY = b"the body"
MD5, SHA256, SHA512 = (hashlib.new(name, BODY) for name in ("md5", "sha256", "sha512"))
B64 = {each.name: base64.b64encode(each.digest()).decode() for each in (MD5, SHA256, SHA512)}


@pytest.mark.parametrize(
    "fields, expected",
    [
        ({"Content_MD5": B64["md5"]}, {"md5": MD5.hexdigest()}),
        ({"Digest": f"SHA-256={B64['sha256']}"}, {"sha256": SHA256.hexdigest()}),
        (
            {"Digest": f"unixsum=30637, md5={B64['md5']},sha-256={B64['sha256']}"},
            {"md5": MD5.hexdigest(), "sha256": SHA256.hexdigest()},
        ),
        ({"Repr_Digest": f"sha-256=:{B64['sha256']}:"}, {"sha256": SHA256.hexdigest()}),
        (
            {"Repr_Digest": f"sha-512=:{B64['sha512']}:;x=1 , sha-256=:{B64['sha256']}:"},
            {"sha256": SHA256.hexdigest(), "sha512": SHA512.hexdigest()},
        ),
        ({"Content_Digest": f"sha-256=:{B64['sha256']}:"}, {"sha256": SHA256.hexdigest()}),
        ({"Repr_Digest": ("sha-512=:x:", f"sha-256=:{B64['sha256']}:")}, {"sha256": SHA256.hexdigest()}),
        ({}, {}),
        ({"Content_MD5": MD5.hexdigest()}, {}),  # hex is a common mistake; as base64 it has the wrong length
        ({"Content_MD5": "*" * 24}, {}),
        ({"Digest": f"sha-256={B64['md5']}"}, {}),
        ({"Digest": "crc32c=AAAAAA=="}, {}),
        ({"Repr_Digest": "sha-256"}, {}),
        ({"Repr_Digest": "a" * 60_000}, {}),
    ],
)
def test_announced_hashes(fields, expected):
    assert announced(headers(**fields)) == expected


def test_a_tally_counts_and_hashes():
    tally = Tally({"md5", "sha256"})
    tally.add(BODY[:3])
    tally.add(BODY[3:])
    assert (tally.size, tally.hex("md5"), tally.hex("sha256")) == (8, MD5.hexdigest(), SHA256.hexdigest())
