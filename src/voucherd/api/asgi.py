"""The bridge to an ASGI server."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, MutableMapping
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, Final, TypeAlias

from voucherd.api import errors
from voucherd.api.app import Api, RequestIds
from voucherd.api.errors import HttpError
from voucherd.api.http import Request, Response
from voucherd.api.metrics import Metrics
from voucherd.settings import Settings

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_NO_STORE: Final = (b"cache-control", b"no-store")
"""Answers hold prices and bearer secrets: no cache keeps any."""


class AsgiApp:
    """Turns ASGI messages into requests, and responses into ASGI messages."""

    def __init__(self, api: Api, settings: Settings, metrics: Metrics) -> None:
        self._api = api
        self._metrics = metrics
        self._body_bytes_max = settings.body_bytes_max
        self._trusted_proxies = settings.trusted_proxies
        self._ids = RequestIds()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        assert scope["type"] == "http"
        started = time.perf_counter()
        request = Request(
            method="GET" if scope["method"] == "HEAD" else scope["method"],
            path=scope["path"],
            query=scope["query_string"],
            headers=dict(scope["headers"]),
            body=b"",
            client_ip=scope["client"][0] if scope.get("client") else "",
            id=self._ids.next(),
        )
        try:
            if self._trusted_proxies:
                request.client_ip = self._behind_proxies(request)
            request.body = await self._body(request, receive)
        except HttpError as problem:
            response = errors.http_error(request, problem)
        except _Gone:
            return
        else:
            response = await self._api.answer(request)
        await self._send(response, request, send, with_body=scope["method"] != "HEAD")
        self._metrics.observe(request.method, response.status, time.perf_counter() - started)

    async def _body(self, request: Request, receive: Receive) -> bytes:
        """The whole body, refused as soon as it is known to be too large (OP-14)."""
        too_large = HttpError(413, "body_too_large", f"the body must be at most {self._body_bytes_max} bytes")
        length = request.headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self._body_bytes_max:
            raise too_large
        parts: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _Gone
            part = message.get("body", b"")
            size += len(part)
            if size > self._body_bytes_max:
                raise too_large
            parts.append(part)
            if not message.get("more_body"):
                return parts[0] if len(parts) == 1 else b"".join(parts)

    @staticmethod
    async def _send(response: Response, request: Request, send: Send, *, with_body: bool) -> None:
        headers = [(b"x-request-id", request.id.encode()), _NO_STORE, *response.headers]
        if response.content_type is not None:
            headers.append((b"content-type", response.content_type))
        body = response.body
        if isinstance(body, bytes):
            if response.status != 204:
                headers.append((b"content-length", str(len(body)).encode()))
            await send({"type": "http.response.start", "status": response.status, "headers": headers})
            await send({"type": "http.response.body", "body": body if with_body else b""})
            return
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        if with_body:
            async for part in body:
                await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    def _behind_proxies(self, request: Request) -> str:
        """The nearest address that is no proxy of ours: what stands further left anyone may have written."""
        hops = [
            hop.strip() for hop in request.headers.get(b"x-forwarded-for", b"").decode("latin-1").split(",")
        ]
        address = request.client_ip
        for hop in reversed(hops):
            if not self._is_trusted(address) or not _is_address(hop):
                return address
            address = hop
        return address

    def _is_trusted(self, address: str) -> bool:
        if not _is_address(address):
            return False
        parsed = _plain(address)
        return any(
            parsed.version == network.version and parsed in network for network in self._trusted_proxies
        )


class _Gone(Exception):
    """The client left before its request was complete."""


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _plain(text: str) -> IPv4Address | IPv6Address:
    address = ip_address(text)
    return address.ipv4_mapped or address if isinstance(address, IPv6Address) else address
