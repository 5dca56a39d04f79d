"""Requests to a hub: which redirects are followed, which answers are worth another attempt, and how long to wait.

Why not `huggingface_hub`, which gradio brings anyway (read in 2.4.0): it throws an unfinished file away, so a broken
transfer of gigabytes begins again; it can only be stopped from inside its progress bar, so not while nothing arrives;
it follows redirects to any address, sends a token it finds on the machine, and reads the environment on import. What
we need of it is three requests, so `httpx` makes them: asynchronous, because that can be stopped at any await.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx

from studio.engine.model_errors import HubRefused, HubUnreachable
from studio.settings import is_loopback

_TIMEOUT = httpx.Timeout(30.0, connect=10.0)
_REDIRECTS = 5
_BUSY = (408, 429, 500, 502, 503, 504)
_LONGEST_REQUESTED_WAIT = 60.0


@dataclass(frozen=True, kw_only=True)
class Patience:
    """When a transfer that breaks is given up, and how long it rests before it goes on: waits that double."""

    attempts: int = 5
    """Breaks in a row; one that brought new bytes begins the count again."""
    first_wait: float = 1.0
    """Seconds."""
    longest_wait: float = 16.0

    def wait(self, failures: int) -> float:
        """Seconds to wait after that many failures in a row."""
        return min(self.first_wait * 2 ** (failures - 1), self.longest_wait)


class BrokenTransfer(Exception):
    """The hub was busy or its answer broke off; worth another attempt. Never leaves the engine."""

    def __init__(self, reason: str, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.wait = wait
        """Seconds the hub asked us to wait."""


class Transport:
    """Requests to one hub, within one event loop. Use as `async with Transport(...) as transport`."""

    def __init__(self, hub: str, patience: Patience) -> None:
        """`hub` as `Settings.hub` has it: https, or http to this machine itself."""
        self.hub = hub
        self._patience = patience
        self._is_here = urlsplit(hub).scheme == "http"
        try:
            # A proxy of the environment is for the world outside; it would not find this machine.
            self._client = httpx.AsyncClient(timeout=_TIMEOUT, follow_redirects=False, trust_env=not self._is_here)
        except (ValueError, ImportError) as error:
            raise HubUnreachable(hub, f"the proxy set on this machine cannot be used: {error}") from error

    async def __aenter__(self) -> "Transport":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    @asynccontextmanager
    async def answer(
        self, method: str, path: str, *, start: int = 0
    ) -> AsyncIterator[tuple[httpx.Response, httpx.Headers]]:
        """The final answer with its body unread, and the headers of the first answer that named the commit, which is
        the hub's own; asks for the bytes from `start` on.

        Raises BrokenTransfer, also while the body is read; HubRefused for a status that will not change.
        """
        response = None
        try:
            response = await self._send(method, self.hub + path, start)
            described = response.headers
            for _ in range(_REDIRECTS):
                if not response.has_redirect_location or (method == "HEAD" and _is_described(described)):
                    break
                url = self._next_url(response)
                await response.aclose()
                response = await self._send(method, url, start)
                described = described if "X-Repo-Commit" in described else response.headers
            self._check_status(response, path.partition("?")[0])
            yield response, described
        except httpx.TransportError as error:
            raise BrokenTransfer(str(error) or type(error).__name__) from error
        finally:
            if response is not None:
                await response.aclose()

    async def rest(self, failures: int, error: BrokenTransfer) -> None:
        """Waits before the next attempt. Raises HubUnreachable where there were enough."""
        if failures >= self._patience.attempts:
            raise HubUnreachable(self.hub, str(error)) from error
        await asyncio.sleep(max(self._patience.wait(failures), error.wait))

    def refused(self, reason: str) -> HubRefused:
        return HubRefused(self.hub, reason)

    async def _send(self, method: str, url: str, start: int) -> httpx.Response:
        """Asks for the bytes as they are: a range or a size of compressed ones would mean something else."""
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-"} if start else {})
        return await self._client.send(self._client.build_request(method, url, headers=headers), stream=True)

    def _next_url(self, response: httpx.Response) -> str:
        """Raises HubRefused for a redirect to where somebody on the way could read or change what is sent."""
        try:
            url = response.url.join(response.headers["Location"])
        except httpx.InvalidURL as error:
            raise self.refused("it sends on to no address") from error
        if url.scheme == "https" or (self._is_here and url.scheme == "http" and is_loopback(url.host)):
            return str(url)
        raise self.refused(f"it sends on to {url.scheme}://{url.host}, which is not https")

    def _check_status(self, response: httpx.Response, what: str) -> None:
        status = response.status_code
        if status in _BUSY:
            raise BrokenTransfer(f"it answers {status} {response.reason_phrase}".strip(), _requested_wait(response))
        if status in (401, 403):
            raise self.refused(f"it does not let everybody have {what}")
        if status == 404:
            raise self.refused(f"it has no {what}")
        if status not in (200, 206) and not (response.is_redirect and _is_described(response.headers)):
            raise self.refused(f"it answers {status} for {what}")


def _is_described(headers: httpx.Headers) -> bool:
    """Whether an answer that only sends on already says what the file is."""
    return "X-Linked-Etag" in headers and "X-Linked-Size" in headers


def _requested_wait(response: httpx.Response) -> float:
    said = response.headers.get("Retry-After", "")
    return min(float(said), _LONGEST_REQUESTED_WAIT) if said.isascii() and said.isdigit() else 0.0
