"""The bridge to an ASGI server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from voucherd.http import STALL_S_MAX, Request, Response
from voucherd.server.http_service import HttpService

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class AsgiApp:
    """Turns ASGI messages into requests, and responses into ASGI messages."""

    def __init__(self, service: HttpService) -> None:
        self.service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        assert scope["type"] == "http"
        request = self.service.request(
            "GET" if scope["method"] == "HEAD" else scope["method"],
            scope["path"],
            scope["query_string"],
            list(scope["headers"]),
            scope["client"][0] if scope.get("client") else "",
        )
        request.body_wanted = scope["method"] != "HEAD"
        try:
            request.body = await self._body(request, receive)
        except _TooLarge:
            response = self.service.too_large(request)
        except _Gone:
            return
        else:
            response = await self.service.answer(request)
        await _send(response, receive, send, with_body=request.body_wanted)

    async def _body(self, request: Request, receive: Receive) -> bytes:
        """The whole body, refused as soon as it is known to be too large."""
        bytes_max = self.service.app.body_bytes_max(request)
        length = request.headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > bytes_max:
            raise _TooLarge
        parts: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _Gone
            part = message.get("body", b"")
            size += len(part)
            if size > bytes_max:
                raise _TooLarge
            parts.append(part)
            if not message.get("more_body"):
                return parts[0] if len(parts) == 1 else b"".join(parts)


class _Gone(Exception):
    """The client left before its request was complete."""


class _TooLarge(Exception):
    """The body is larger than it may be."""


async def _send(response: Response, receive: Receive, send: Send, *, with_body: bool) -> None:
    await send({"type": "http.response.start", "status": response.status, "headers": response.headers})
    body = response.body
    if isinstance(body, bytes):
        await send({"type": "http.response.body", "body": body if with_body else b""})
        return
    try:
        if with_body and response.endless:
            await _send_while_there(body, receive, send)
        elif with_body:
            async for part in body:
                await send({"type": "http.response.body", "body": part, "more_body": True})
    finally:
        await response.close()
    await send({"type": "http.response.body", "body": b""})


async def _send_while_there(body: AsyncIterator[bytes], receive: Receive, send: Send) -> None:
    """Send a body that has no end of its own; it ends when the client leaves or stops reading."""

    async def sending() -> None:
        async for part in body:
            async with asyncio.timeout(STALL_S_MAX):
                await send({"type": "http.response.body", "body": part, "more_body": True})

    async def leaving() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    tasks = [asyncio.create_task(sending()), asyncio.create_task(leaving())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
    if isinstance(done[0], Exception):
        # The head is out: an answer that is left unfinished is all that the server can still show.
        raise done[0]
