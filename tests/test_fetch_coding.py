import gzip

import pytest

from ingest.fetch.coding import gunzipped, to_undo
from ingest.fetch.failure import Failure
from ingest.fetch.outcome import Outcome

GZIP = gzip.compress(b"data", mtime=0)


@pytest.mark.parametrize(
    "coding, media_type, name, head, undo",
    [
        ("gzip", "text/csv", "a.csv", GZIP, True),
        ("X-GZip", "image/jpeg", "a", GZIP, True),
        ("gzip", "application/octet-stream", "a", GZIP, True),
        ("", "text/csv", "a.csv", GZIP, False),
        ("gzip", "text/csv", "a.csv.gz", GZIP, False),
        ("gzip", "image/svg+xml", "a.SVGZ", GZIP, False),
        ("gzip", "application/x-gzip", "download", GZIP, False),
        ("gzip", "text/csv", "a.csv", b"a,b", False),
        ("utf-8", "text/csv", "a.csv", GZIP, False),
        ("aws-chunked", "text/csv", "a.csv", b"a,b", False),
        ("aws-chunked, gzip", "text/csv", "a.csv", GZIP, True),
        ("identity", "text/csv", "a.csv", b"a,b", False),
    ],
)
def test_what_is_decoded_and_what_is_kept_as_it_came(coding, media_type, name, head, undo):
    assert to_undo(coding, media_type, name, head) is undo


@pytest.mark.parametrize("coding", ["br", "zstd", "deflate", "gzip, br", "gzip, gzip"])
def test_codings_that_cannot_be_undone_are_refused(coding):
    with pytest.raises(Failure) as caught:
        to_undo(coding, "text/csv", "a.csv", GZIP)
    assert (caught.value.outcome, caught.value.transient) == (Outcome.HTTP_ERROR, False)


@pytest.mark.parametrize("step", [1, 7, 10_000])
@pytest.mark.parametrize("size", [1, 4096, 1 << 20])
def test_decoding_in_any_pieces(step, size):
    data = bytes(range(256)) * 4 + bytes(4096 * 3)
    coded = gzip.compress(data) + gzip.compress(b"") + gzip.compress(b"second member") + bytes(9)
    pieces = list(gunzipped((coded[at : at + step] for at in range(0, len(coded), step)), size))
    assert b"".join(pieces) == data + b"second member"
    assert max(map(len, pieces)) <= size


def test_a_bomb_comes_in_small_pieces():
    bomb = gzip.compress(bytes(64 << 20))
    assert len(bomb) < 100_000
    pieces = gunzipped([bomb], 1000)
    assert [len(next(pieces)) for _ in range(5)] == [1000] * 5
    pieces.close()


@pytest.mark.parametrize(
    "coded", [GZIP[:-1], GZIP[:12], GZIP + GZIP[:5], GZIP[:-8] + bytes(8), GZIP[:10] + b"\xff" * 20, GZIP + b"rest"]
)
def test_a_damaged_or_cut_file_is_never_taken_for_whole(coded):
    with pytest.raises(Failure) as caught:
        list(gunzipped([coded], 4096))
    assert (caught.value.outcome, caught.value.transient) == (Outcome.TRUNCATED, True)
