"""The address under which a client knows this server, for what must be absolute."""

from __future__ import annotations

import re
from typing import Final

from falcon import Request

from app.problems import bad_field

HOST: Final = re.compile(r"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")


def base_address(req: Request, base_url: str) -> str:
    """``base_url`` where it is set, else scheme and Host of the request, without a slash at the end.

    Forwarded headers count as far as their sender is trusted (``app.forwarded``). 400 for a Host that is none.
    """
    if base_url:
        return base_url.rstrip("/")
    host = req.env.get("HTTP_HOST") or f"{req.env['SERVER_NAME']}:{req.env['SERVER_PORT']}"
    if not HOST.fullmatch(host):
        raise bad_field("Host", "malformed")
    return f"{req.scheme}://{host}{req.root_path}"
