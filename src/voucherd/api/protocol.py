"""API calls answered straight from the parser, without ASGI in between: half of a call's cost was the bridge.

Everything that is not a plain HTTP/1.1 call of the API (pages, HEAD, pipelined calls, `Expect`) takes uvicorn's own
way through the ASGI app; both ways end in the same `Front`. The parser, the connection's limits and the graceful
stop are uvicorn's.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import structlog
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from voucherd.api.asgi import AsgiApp
from voucherd.http import STALL_S_MAX, Request, Response

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


class ApiProtocol(HttpToolsProtocol):
    """uvicorn's protocol with a short way for the API."""

    _call: _Call | None = None
    _endless: asyncio.Task[None] | None = None
    _idle_since: float | None = None

    def on_message_begin(self) -> None:
        """A request begins; what only ASGI needs is made when ASGI needs it."""
        self.url = b""
        self.headers = []
        self.expect_100_continue = False
        self._call = None

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
            self._to_asgi()
            return
        path, _, query = self.url.partition(b"?")
        app: Any = self.config.app
        assert isinstance(app, AsgiApp)
        request = app.front.request(
            method, path.decode("latin-1"), query, self.headers, self.client[0] if self.client else ""
        )
        length = request.headers.get(b"content-length")
        if length is not None and len(length) > 4 and int(length) > app.front.body_bytes_max:
            self._to_asgi()  # It refuses at once, where this way would read the body to its end first.
            return
        self._call = self.cycle = _Call(request, keep_alive=self.parser.should_keep_alive())  # type: ignore[assignment]

    def _to_asgi(self) -> None:
        url, headers, expect = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.url, self.expect_100_continue = url, expect
        self.headers.extend(headers)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        call = self._call
        if call is None:
            super().on_body(body)
        elif len(call.body) + len(body) > self.config.app.front.body_bytes_max:  # type: ignore[union-attr]
            call.too_large = True
        else:
            call.body = call.body + body if call.body else body

    def on_message_complete(self) -> None:
        """The request is whole: answer it."""
        call = self._call
        if call is None:
            super().on_message_complete()
            return
        call.request.body = call.body
        task = self.loop.create_task(self._answer(call))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _answer(self, call: _Call) -> None:
        front = self.config.app.front  # type: ignore[union-attr]
        response = front.too_large(call.request) if call.too_large else await front.answer(call.request)
        if call.disconnected or self.transport.is_closing():
            await response.close()
            return
        head = self._head(response, keep_alive=call.keep_alive)
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

    def _head(self, response: Response, *, keep_alive: bool) -> bytes:
        parts = [STATUS_LINE[response.status]]
        for name, value in self.server_state.default_headers:
            parts += (name, b": ", value, b"\r\n")
        for name, value in response.headers:
            parts += (name, b": ", value, b"\r\n")
        if not isinstance(response.body, bytes):
            parts.append(b"transfer-encoding: chunked\r\n")
        parts.append(b"\r\n" if keep_alive else b"connection: close\r\n\r\n")
        return b"".join(parts)

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
                    if response.endless:
                        async with asyncio.timeout(STALL_S_MAX):
                            await self.flow.drain()
                    else:
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

    def on_response_complete(self) -> None:
        """The call is answered. One timer a connection watches for idleness: uvicorn sets and cancels one a call."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)
            return
        self._idle_since = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self._close_if_idle)

    def _close_if_idle(self) -> None:
        self.timeout_keep_alive_task = None
        if self.transport.is_closing():
            return
        idle_s = 0.0 if self._idle_since is None else self.loop.time() - self._idle_since
        if idle_s >= self.timeout_keep_alive:
            self.transport.close()
        else:
            pause_s = self.timeout_keep_alive - idle_s
            self.timeout_keep_alive_task = self.loop.call_later(pause_s, self._close_if_idle)

    def _unset_keepalive_if_required(self) -> None:
        """Data came: not idle until the next answer."""
        self._idle_since = None

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone; an answer under way is finished for nobody."""
        super().connection_lost(exc)
        self._call = None
        if self._endless is not None:
            self._endless.cancel()
            self._endless = None
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None
