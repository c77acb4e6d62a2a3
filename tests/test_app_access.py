import pytest
from falcon import Request
from falcon.testing import create_environ

from app.access import Access, is_local
from app.options import Options
from app.problems import Problem
from app.tokens import Tokens
from storage.ids import Ids
from storage.memory import MemoryStore
from storage.schema import TOKENS

LOCAL = {"SERVER_NAME": "127.0.0.1", "REMOTE_ADDR": "127.0.0.1", "HTTP_HOST": "127.0.0.1:8000"}


@pytest.fixture
def tokens():
    store = MemoryStore(strict=True)
    store.create([TOKENS])
    return Tokens(store, Ids(), lambda: 0)


def request(env=LOCAL, **headers):
    environ = create_environ(headers=headers)
    environ.pop("HTTP_HOST", None)
    return Request(environ | env)


def verdict(check, request):
    """0 when let in, else the status."""
    try:
        check(request)
    except Problem as problem:
        return problem.status_code, problem.description, dict(problem.headers)
    return 0, "", {}


def test_a_write_needs_a_token(tokens):
    access = Access(tokens, Options())
    status, detail, _ = verdict(access.check_write, request())
    assert status == 403
    assert "magazin token" in detail
    token = tokens.issue("x")
    assert verdict(access.check_write, request(Authorization=f"Bearer {token}"))[0] == 0
    assert verdict(access.check_write, request(Authorization=f"bearer  {token}"))[0] == 0


@pytest.mark.parametrize("value", ["Bearer mgz_00000000_" + "0" * 32, "Bearer", "Basic eDp5", "", "Bearer a b"])
def test_a_wrong_token_gets_401_even_where_none_is_needed(tokens, value):
    access = Access(tokens, Options(loopback_writes=True))
    status, _, headers = verdict(access.check_write, request(Authorization=value))
    assert status == 401
    assert 'error="invalid_token"' in headers["WWW-Authenticate"]
    assert not access.may_list(request(Authorization=value))


def test_lists_follow_writes_unless_they_are_open(tokens):
    assert verdict(Access(tokens, Options()).check_list, request())[0] == 403
    assert verdict(Access(tokens, Options(loopback_writes=True)).check_list, request())[0] == 0
    open_lists = Access(tokens, Options(open_lists=True))
    assert verdict(open_lists.check_list, request({**LOCAL, "REMOTE_ADDR": "192.0.2.7"}))[0] == 0
    assert verdict(open_lists.check_write, request())[0] == 403


@pytest.mark.parametrize(
    "env",
    [
        {},
        {"HTTP_HOST": "localhost:8000"},
        {"HTTP_HOST": "LOCALHOST"},
        {"HTTP_HOST": "[::1]:8000", "SERVER_NAME": "::1", "REMOTE_ADDR": "::1"},
        {"HTTP_HOST": "127.9.9.9", "SERVER_NAME": "127.9.9.9"},
        {"HTTP_SEC_FETCH_SITE": "none"},
        {"HTTP_SEC_FETCH_SITE": "same-origin"},
    ],
)
def test_local(env):
    assert is_local({**LOCAL, **env})


@pytest.mark.parametrize(
    "env",
    [
        {"SERVER_NAME": "0.0.0.0"},
        {"SERVER_NAME": "::"},
        {"SERVER_NAME": "192.0.2.1"},
        {"SERVER_NAME": ""},
        {"REMOTE_ADDR": "192.0.2.7"},
        {"REMOTE_ADDR": ""},
        {"HTTP_HOST": "media.example.org"},
        {"HTTP_HOST": "127.0.0.1.example.org"},
        {"HTTP_HOST": "localhost.example.org"},
        {"HTTP_HOST": "localhost@example.org"},
        {"HTTP_HOST": "192.0.2.1"},
        {"HTTP_HOST": "0.0.0.0"},
        {"HTTP_HOST": "2130706433"},
        {"HTTP_HOST": ""},
        {"HTTP_ORIGIN": "http://127.0.0.1:8000"},
        {"HTTP_ORIGIN": "null"},
        {"HTTP_SEC_FETCH_SITE": "cross-site"},
        {"HTTP_SEC_FETCH_SITE": "same-site"},
        {"HTTP_FORWARDED": "for=127.0.0.1"},
        {"HTTP_X_FORWARDED_FOR": "127.0.0.1"},
        {"HTTP_X_FORWARDED_PROTO": "https"},
        {"HTTP_X_FORWARDED_ANYTHING": ""},
        {"HTTP_VIA": "1.1 proxy"},
        {"HTTP_X_REAL_IP": "127.0.0.1"},
    ],
)
def test_not_local(env, tokens):
    assert not is_local({**LOCAL, **env})
    access = Access(tokens, Options(loopback_writes=True))
    assert verdict(access.check_write, request({**LOCAL, **env}))[0] == 403
