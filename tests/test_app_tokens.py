import itertools

import pytest

from app.tokens import FORM, Token, Tokens
from storage.ids import Ids
from storage.memory import MemoryStore
from storage.schema import TOKENS


@pytest.fixture
def store():
    store = MemoryStore(strict=True)
    store.create([TOKENS])
    return store


def test_issued_valid_listed_revoked(store):
    tokens = Tokens(store, Ids(), lambda: 42)
    token = tokens.issue("laptop")
    token_id = FORM.fullmatch(token)[1]
    assert tokens.valid(token)
    assert list(tokens.list()) == [Token(token_id, "laptop", 42)]
    assert tokens.revoke(token_id)
    assert not tokens.valid(token)
    assert not tokens.revoke(token_id)
    assert list(tokens.list()) == []


def test_only_the_hash_is_kept(store):
    secret = Tokens(store, Ids(), lambda: 0).issue("x").rpartition("_")[2]
    rows, _ = store.scan(TOKENS)
    assert secret not in repr(rows)


def test_wrong_ones(store):
    tokens = Tokens(store, Ids(), lambda: 0)
    token = tokens.issue("x")
    other = tokens.issue("y")
    wrong = token[:-1] + ("0" if token[-1] != "0" else "1")
    mixed = token.rpartition("_")[0] + "_" + other.rpartition("_")[2]
    for text in (
        "",
        "mgz__",
        token[:-1],
        token + "0",
        token.upper(),
        token + "\n",
        wrong,
        mixed,
        "mgz_00000000_" + "0" * 32,
    ):
        assert not tokens.valid(text), text


def test_an_id_in_use_is_passed_over(store):
    numbers = itertools.chain([b"\0" * 16] * 3, (bytes([n] * 16) for n in itertools.count(1)))
    tokens = Tokens(store, Ids(entropy=lambda _: next(numbers)), lambda: 0)
    first, second = tokens.issue("a"), tokens.issue("b")
    assert first[:12] != second[:12]
    assert tokens.valid(first) and tokens.valid(second)
