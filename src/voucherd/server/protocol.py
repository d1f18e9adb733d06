"""API calls answered straight from the parser, without ASGI in between: half of a call's cost was the bridge.

Everything that is not a plain HTTP/1.1 call of the API (pages, HEAD, pipelined calls, `Expect`) takes uvicorn's own
way through the ASGI app; both ways end in the same `HttpService`. What a client may do to a connection is bounded in
`guarded.py`; the parser and the graceful stop are uvicorn's.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import structlog
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from voucherd.http import STALL_S_MAX, Request, Response
from voucherd.server.asgi import AsgiApp
from voucherd.server.bounds import BODY, NOTHING
from voucherd.server.guarded import GuardedProtocol

logger = structlog.get_logger(__name__)

_METHODS: Final = {b"GET": "GET", b"POST": "POST", b"PATCH": "PATCH", b"DELETE": "DELETE", b"PUT": "PUT"}


class _Call:
    """A call under way, with what uvicorn's protocol asks of its own cycles."""

    __slots__ = (
        "body",
        "disconnected",
        "keep_alive",
        "message_event",
        "request",
        "response_complete",
        "too_large",
    )

    def __init__(self, request: Request, *, keep_alive: bool) -> None:
        self.request = request
        self.keep_alive = keep_alive
        self.body = b""
        self.too_large = False
        self.disconnected = False
        self.response_complete = False
        self.message_event = _NO_EVENT


class _NoEvent:
    """Nobody waits for a call's body: it is answered when it is whole."""

    def set(self) -> None:
        """Nothing to tell."""


_NO_EVENT: Final = _NoEvent()


class ApiProtocol(GuardedProtocol):
    """uvicorn's protocol with a short way for the API."""

    _call: _Call | None = None
    _endless: asyncio.Task[None] | None = None

    def on_headers_complete(self) -> None:
        """Choose the way."""
        method = _METHODS.get(self.parser.get_method())
        busy = self.cycle is not None and not self.cycle.response_complete
        if (
            busy
            or method is None
            or not self.url.startswith(b"/api/")
            or b"%" in self.url
            or self.expect_100_continue
            or self.parser.get_http_version() != "1.1"
            or self.parser.should_upgrade()
        ):
            self.check_head(None)
            self._to_asgi(behind=busy)
            return
        path, _, query = self.url.partition(b"?")
        app: Any = self.config.app
        assert isinstance(app, AsgiApp)
        request = app.service.request(
            method, path.decode("latin-1"), query, self.headers, self.client[0] if self.client else ""
        )
        self.check_head(len(request.headers))
        length = request.headers.get(b"content-length")
        if length is not None and len(length) > 4 and int(length) > app.service.body_bytes_max:
            self._to_asgi(
                behind=False
            )  # It refuses at once, where this way would read the body to its end first.
            return
        self._call = self.cycle = _Call(request, keep_alive=self.parser.should_keep_alive())  # type: ignore[assignment]
        self.stage = BODY

    def _to_asgi(self, *, behind: bool) -> None:
        """Take uvicorn's own way, behind calls that wait for their answers or at once."""
        if behind:
            self.queue_call()
        self._call = None
        url, headers, expect = self.url, self.headers, self.expect_100_continue
        HttpToolsProtocol.on_message_begin(self)
        self.url, self.expect_100_continue = url, expect
        self.headers.extend(headers)
        super().on_headers_complete()
        self.stage = BODY

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        call = self._call
        if call is None:
            super().on_body(body)
            return
        self._silent = 0
        if len(call.body) + len(body) > self.config.app.service.body_bytes_max:  # type: ignore[union-attr]
            call.too_large = True
        else:
            call.body = call.body + body if call.body else body

    def on_message_complete(self) -> None:
        """The request is whole: answer it."""
        self.stage = NOTHING
        call = self._call
        if call is None:
            super().on_message_complete()
            return
        call.request.body = call.body
        task = self.loop.create_task(self._answer(call))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _answer(self, call: _Call) -> None:
        service = self.service
        response = service.too_large(call.request) if call.too_large else await service.answer(call.request)
        if call.disconnected or self.transport.is_closing():
            await response.close()
            return
        head = self.head(response, keep_alive=call.keep_alive)
        if isinstance(response.body, bytes):
            self.transport.write(head + response.body)
        elif response.endless:
            self._endless = asyncio.current_task()
            if not await self._stream(call, head, response):
                return
            self._endless = None
        elif not await self._stream(call, head, response):
            return
        call.response_complete = True
        if not call.keep_alive:
            self.transport.close()
        self.on_response_complete()

    async def _stream(self, call: _Call, head: bytes, response: Response) -> bool:
        """Write a body piece by piece, as fast as the client reads; False if it left or broke on the way."""
        assert not isinstance(response.body, bytes)
        try:
            async for part in response.body:
                if call.disconnected:
                    return False
                if part:
                    self.transport.write(head + b"%x\r\n" % len(part) + part + b"\r\n")
                    head = b""
                    if self.flow.write_paused:
                        async with asyncio.timeout(STALL_S_MAX):
                            await self.flow.drain()
        except TimeoutError:
            logger.info("stream_stalled", request_id=call.request.id)
            self.transport.abort()
            return False
        except Exception:
            # The head is out: all that is left to say is that the body is not whole.
            logger.exception("stream_failed", request_id=call.request.id)
            self.transport.abort()
            return False
        finally:
            await response.close()
        self.transport.write(head + b"0\r\n\r\n")
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone; an answer under way is finished for nobody."""
        super().connection_lost(exc)
        self._call = None
        if self._endless is not None:
            self._endless.cancel()
            self._endless = None
