"""One HTTP call to a supplier: bounded in time and size, and clear about whether the request ever left.

It works on the transport of httpx and not on its client. So there are no redirects, cookies, proxies or passwords
from the environment to turn off, no decompression, and no log line that holds an address with a key in it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, TypeAlias
from urllib.parse import SplitResult, urlsplit

import httpx
from msgspec import Struct

from voucherd import logs, traces

BODY_BYTES_MAX: Final = 16 * 1024 * 1024
"""No answer is read beyond this, whatever it is about."""
BODY_BYTES: Final = 256 * 1024
BYTES_A_CODE: Final = 8 * 1024
"""Room for all that suppliers say about one code. Reading 16 MiB of JSON can stop everything else for two seconds."""
CONNECTIONS_MAX: Final = 16
KEEP_ALIVE_S: Final = 2.0
"""Shorter than servers keep a connection: one that they close while we write leaves the purchase unclear."""
URL_CHARS_MAX: Final = 2_000
AGENT: Final = "voucherd"
_KINDS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (TimeoutError, "no answer in time"),
    (httpx.TimeoutException, "no answer in time"),
    (httpx.ConnectError, "no connection"),
    (httpx.NetworkError, "the connection broke"),
    (httpx.ProtocolError, "the connection broke"),
)
"""What is told of an error."""


def room_for(count: int) -> int:
    """How long an answer about so many codes may be."""
    return min(BODY_BYTES + BYTES_A_CODE * count, BODY_BYTES_MAX)


class Reply(Struct, frozen=True):
    """What the supplier answered. It may hold codes, so it is never shown."""

    status: int
    body: bytes

    def __repr__(self) -> str:
        return f"Reply({self.status}, {len(self.body)} bytes)"


class NotSent(Struct, frozen=True):
    """Not a byte of the request left: surely nothing happened."""

    text: str


class Lost(Struct, frozen=True):
    """The request left, and no whole answer came back."""

    text: str


Result: TypeAlias = Reply | NotSent | Lost


@cache
def _trusted() -> ssl.SSLContext:
    """Whose certificates are believed; read once, because it takes longer than a call."""
    return httpx.create_ssl_context(trust_env=False)


def _trace() -> dict[str, str]:
    """The trace that the supplier's part belongs to: ours, or that of the client on whose behalf we call."""
    found = None if traces.active is None else traces.active.traceparent()
    if found is None and (request := logs.current_request()) is not None:
        found = request.traceparent
    return {} if found is None else {"traceparent": found}


class _TooMuch(Exception):
    """The answer is not one that we read; the text says why."""


class SupplierExchange:
    """Calls to one supplier, over connections that are kept for a moment."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._transport = httpx.AsyncHTTPTransport(
            verify=_trusted(),
            trust_env=False,
            limits=httpx.Limits(max_connections=CONNECTIONS_MAX, keepalive_expiry=KEEP_ALIVE_S),
        )

    def deadline(self) -> float:
        """The moment, on the loop's clock, at which whatever starts now must have ended."""
        return asyncio.get_running_loop().time() + self._timeout_s

    async def call(
        self,
        ends_at: float,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        reply_max: int = BODY_BYTES_MAX,
    ) -> Result:
        """The answer, or why there is none. Never later than `ends_at`, and never an exception."""
        sent = False

        async def trace(event: str, _details: Mapping[str, Any]) -> None:
            nonlocal sent
            # Until the first event that is not about making a connection, nothing has been written to it.
            sent = sent or not event.startswith("connection.")

        try:
            async with asyncio.timeout_at(ends_at):
                request = httpx.Request(
                    method,
                    url,
                    headers={"accept-encoding": "identity", "user-agent": AGENT, **_trace(), **headers},
                    content=body,
                    extensions={"trace": trace},
                )
                return await self._send(request, reply_max)
        except _TooMuch as refusal:
            return Lost(str(refusal))
        # Only the kind of error is told: its text may quote what was sent.
        except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, OSError, ValueError) as error:
            kind = next((said for raised, said in _KINDS if isinstance(error, raised)), type(error).__name__)
            return Lost(kind) if sent else NotSent(kind)

    async def _send(self, request: httpx.Request, reply_max: int) -> Reply:
        response = await self._transport.handle_async_request(request)
        try:
            if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
                raise _TooMuch("the answer is compressed, which was not asked for")
            body = bytearray()
            async for part in response.aiter_raw():
                body += part
                if len(body) > reply_max:
                    raise _TooMuch(f"the answer is longer than {reply_max} bytes")
            return Reply(response.status_code, bytes(body))
        finally:
            await response.aclose()

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.aclose()


def check_url(key: str, url: object, *, plain_http: bool) -> str:
    """The address without its last slash; a ValueError naming the key if calls can't or shouldn't go there."""
    if not isinstance(url, str) or not 1 <= len(url) <= URL_CHARS_MAX or not url.isascii():
        raise ValueError(f"{key}: must be an address such as https://api.example.com")
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - Reading it checks it.
        httpx.URL(url)
    except (ValueError, httpx.InvalidURL):
        raise ValueError(f"{key}: is not a valid address") from None
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise ValueError(f"{key}: must start with https:// and name a host")
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError(f"{key}: must have no user, password, query or fragment in it")
    if parts.scheme == "http" and not plain_http and not _is_this_machine(parts):
        raise ValueError(
            f"{key}: must be https (plain_http = true allows http, for a network that you trust)"
        )
    return url.rstrip("/")


def _is_this_machine(parts: SplitResult) -> bool:
    if parts.hostname == "localhost":
        return True
    try:
        return ipaddress.ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return False


def check_secret(secret: str | None) -> str:
    """The secret as it can be sent; a ValueError if there is none, or if no header could carry it."""
    if not secret:
        raise ValueError("secret: is required")
    if not secret.isascii() or not secret.isprintable() or secret != secret.strip():
        raise ValueError("secret: must be printable ASCII without spaces around it")
    return secret
