"""Turns away what a foreign web page caused: DNS rebinding by the Host header, forged writes by their origin."""

import ipaddress
import socket
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from studio.settings import is_loopback

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_READING = frozenset({"GET", "HEAD", "OPTIONS"})


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def host_name(netloc: str) -> str:
    """The name in a Host header or the middle of an address: no port, no brackets, lower case."""
    try:
        return urlsplit(f"//{netloc}").hostname or ""
    except ValueError:
        return ""


class Guard:
    """ASGI middleware over the whole app, the page's own routes included.

    Without a password only names that cannot be pointed here by a stranger's name server are served: addresses, and
    the names of this machine. With a password the login cookie, which belongs to one host name, does that work.
    """

    def __init__(self, app: ASGIApp, *, host: str, has_password: bool) -> None:
        self._app = app
        self._any_host = has_password
        self._names = {*LOOPBACK_NAMES, host.strip("[]").lower()}
        self._addresses = not is_loopback(host_name(host) or host)
        if self._addresses:
            machine = socket.gethostname().lower()
            self._names |= {machine, f"{machine}.local", socket.getfqdn().lower()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope["method"], Headers(scope=scope)) if scope["type"] == "http" else None
        if refusal is None:
            await self._app(scope, receive, send)
        else:
            await JSONResponse({"error": refusal}, status_code=403)(scope, receive, send)

    def _refusal(self, method: str, headers: Headers) -> str | None:
        name = host_name(headers.get("host", ""))
        if not (self._any_host or name in self._names or (self._addresses and _is_address(name))):
            return "This studio does not answer under that name. Open it by its address, or start it with a password."
        if method not in _READING and not _same_origin(headers):
            return "This request came from another web page. Use the studio's own page."
        return None


def _same_origin(headers: Headers) -> bool:
    """Browsers say where a request comes from; a program that is no browser sends neither header and may pass."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = headers.get("origin")
    if origin is None:
        return True
    return urlsplit(origin).netloc in (headers.get("host"), headers.get("x-forwarded-host"))
