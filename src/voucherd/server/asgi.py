"""The bridge to an ASGI server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, MutableMapping
from typing import Any, TypeAlias

from voucherd.http import STALL_S_MAX, HttpError, Request, Response
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
        body = _Body(self.service, request)
        try:
            response = await self._in_time(request, self.service.admit(request), request.started)
            if response is None:
                began = time.perf_counter()
                await body.read(receive)
                since = request.started + time.perf_counter() - began
                response = await self._in_time(request, self.service.answer(request), since)
                assert response is not None
        except HttpError as problem:
            response = self.service.refuse_body(request, problem)
        except _Gone:
            return
        finally:
            body.give_back()
        await self._send(request, response, receive, send)

    async def _in_time(
        self, request: Request, work: Coroutine[Any, Any, Response | None], since: float
    ) -> Response | None:
        in_time, response = await self.service.answer_limit.kept(request, work, since)
        return response if in_time else self.service.late(request)

    async def _send(self, request: Request, response: Response, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": response.status, "headers": response.headers})
        body = response.body
        if isinstance(body, bytes):
            await send({"type": "http.response.body", "body": body if request.body_wanted else b""})
            return
        piece_s_max = request.limit_s or self.service.answer_limit.limit_s
        try:
            if request.body_wanted and response.endless:
                await _send_while_there(body, receive, send)
            elif request.body_wanted:
                while (part := await self.service.next_piece(body, piece_s_max)) is not None:
                    await send({"type": "http.response.body", "body": part, "more_body": True})
        finally:
            await response.close()
        await send({"type": "http.response.body", "body": b""})


class _Body:
    """The body of an admitted call, as it arrives."""

    def __init__(self, service: HttpService, request: Request) -> None:
        self._service = service
        self._request = request
        self._collected = bytearray()
        self._held = 0

    async def read(self, receive: Receive) -> None:
        """Read it to its end; refused as soon as it is known to be too large, or not what is expected."""
        request = self._request
        bytes_max = self._service.app.body_bytes_max(request)
        length = request.headers.get(b"content-length", b"0")
        size = int(length) if length.isdigit() else 0
        if size > bytes_max:
            raise self._service.too_large(request)
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _Gone
            part, more = message.get("body", b""), message.get("more_body", False)
            size += len(part)
            if size > bytes_max:
                raise self._service.too_large(request)
            if part and request.method != "GET":
                self._keep(part)
        request.body = bytes(self._collected)

    def _keep(self, part: bytes) -> None:
        """Keep a part, or hand it to whoever reads it; a GET's is read over."""
        problem = self._service.bodies.take(self._request.client_ip, len(part))
        if problem is not None:
            raise problem
        self._held += len(part)
        if self._request.reader is None:
            self._collected += part
        else:
            self._request.reader.write(part)

    def give_back(self) -> None:
        """The call is over, one way or another."""
        self._service.bodies.give_back(self._request.client_ip, self._held)


class _Gone(Exception):
    """The client left before its request was complete."""


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
