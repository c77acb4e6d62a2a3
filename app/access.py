"""Who may write, and who may see lists, logs, metrics and the gallery. Delivery is open and never comes here."""

from __future__ import annotations

import ipaddress
import re
from http import HTTPStatus
from typing import Any, Final

from falcon import Request

from app.options import Options
from app.problems import Problem
from app.tokens import Tokens

BEARER: Final = re.compile(r"bearer +([A-Za-z0-9._~+/=-]{1,200})", re.IGNORECASE)
HOST: Final = re.compile(r"(localhost|[0-9.]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?", re.IGNORECASE)
OF_PROXIES: Final = ("HTTP_FORWARDED", "HTTP_VIA", "HTTP_X_REAL_IP")
CHALLENGE: Final = {"WWW-Authenticate": 'Bearer realm="magazin"'}
NEEDS_TOKEN: Final = (
    "This needs a token: `magazin token` prints a new one, to be sent as `Authorization: Bearer …`. "
    "For trials, MAGAZIN_ACCESS_OPEN_WRITES=loopback takes requests of this machine itself without one."
)


class Access:
    def __init__(self, tokens: Tokens, options: Options) -> None:
        self._tokens, self._options = tokens, options

    def check_write(self, req: Request) -> None:
        """Raise 403 without a token, 401 with one that isn't valid."""
        if self._has_token(req) or (self._options.loopback_writes and is_local(req.env)):
            return
        raise Problem(HTTPStatus.FORBIDDEN, NEEDS_TOKEN, headers=CHALLENGE)

    def check_list(self, req: Request) -> None:
        """Like a write, unless lists are open to everyone."""
        if not self._options.open_lists:
            self.check_write(req)

    def check_manifest(self, req: Request) -> None:
        """Like a list, unless manifests are open to everyone."""
        if not self._options.open_manifests:
            self.check_list(req)

    def may_list(self, req: Request) -> bool:
        try:
            self.check_list(req)
        except Problem:
            return False
        return True

    def _has_token(self, req: Request) -> bool:
        """Whether there is a valid token; 401 for one that isn't."""
        header = req.env.get("HTTP_AUTHORIZATION")
        if header is None:
            return False
        match = BEARER.fullmatch(header.strip())
        if match is None or not self._tokens.valid(match[1]):
            headers = {"WWW-Authenticate": 'Bearer realm="magazin", error="invalid_token"'}
            detail = "The token is not valid; `magazin token` prints a new one."
            raise Problem(HTTPStatus.UNAUTHORIZED, detail, headers=headers)
        return True


def is_local(env: dict[str, Any]) -> bool:
    """Whether a request comes from this machine itself, and from no web page and through no proxy that says so.

    Listener, peer and Host must be loopback (a name that resolves to 127.0.0.1 is a page's way in: DNS rebinding).
    Browsers send Origin with what pages ask for, and Sec-Fetch-Site with everything.
    """
    if any(name in env for name in OF_PROXIES) or any(name.startswith("HTTP_X_FORWARDED") for name in env):
        return False
    if "HTTP_ORIGIN" in env or env.get("HTTP_SEC_FETCH_SITE", "none") not in ("none", "same-origin"):
        return False
    host = HOST.fullmatch(env.get("HTTP_HOST", ""))
    if host is None or not _is_loopback(host[1].strip("[]")):
        return False
    return _is_loopback(env.get("SERVER_NAME", "")) and _is_loopback(env.get("REMOTE_ADDR", ""))


def _is_loopback(name: str) -> bool:
    if name.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
