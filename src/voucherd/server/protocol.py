"""API calls answered straight from the parser, without ASGI in between: half of a call's cost was the bridge.

Everything that is not a plain HTTP/1.1 call of the API (pages, HEAD, pipelined calls, `Expect`) takes uvicorn's own
way through the ASGI app; both ways end in the same `HttpService`. What a client may do to a connection is bounded in
`guarded.py`; the parser and the graceful stop are uvicorn's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from time import perf_counter
from typing import Any, Final

import structlog
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from voucherd.http import STALL_S_MAX, HttpError, Request, Response
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
        "held",
        "judged",
        "keep_alive",
        "message_event",
        "problem",
        "protocol",
        "request",
        "response_complete",
        "since",
        "task",
        "whole",
    )

    def __init__(self, protocol: ApiProtocol, request: Request, *, keep_alive: bool) -> None:
        self.protocol = protocol
        self.request = request
        self.since = request.started
        self.task: asyncio.Task[None] | None = None
        self.keep_alive = keep_alive
        self.body: bytes | bytearray = b""
        self.held = 0
        self.judged = False
        self.whole = False
        self.problem: HttpError | None = None
        self.disconnected = False
        self.response_complete = False
        self.message_event = _NO_EVENT

    def give_up(self) -> None:
        """It takes too long: answer in its place."""
        self.protocol.give_up(self)


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
            self.check_head(dict(self.headers))
            self._to_asgi(behind=busy)
            return
        path, _, query = self.url.partition(b"?")
        app: Any = self.config.app
        assert isinstance(app, AsgiApp)
        request = app.service.request(
            method, path.decode("latin-1"), query, self.headers, self.client[0] if self.client else ""
        )
        self.check_head(request.headers)
        length = request.headers.get(b"content-length")
        if length is not None and len(length) > 4 and int(length) > app.service.body_bytes_max:
            self._to_asgi(
                behind=False
            )  # It refuses at once, where this way would read the body to its end first.
            return
        self._call = self.cycle = _Call(self, request, keep_alive=self.parser.should_keep_alive())  # type: ignore[assignment]
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
        self._chunk_bytes += len(body)
        if call.body or call.problem is not None or call.response_complete:
            self._collect(call, body)
        elif len(body) > self.config.app.service.body_bytes_max:  # type: ignore[union-attr]
            call.problem = self.service.too_large(call.request)
        else:
            call.body = body

    def _collect(self, call: _Call, body: bytes) -> None:
        """Keep one more part of a body that comes in parts; the rest of a refused one is read over."""
        if call.problem is not None or call.response_complete:
            return
        if len(call.body) + len(body) > self.service.body_bytes_max:
            call.problem = self.service.too_large(call.request)
            self._forget_body(call)
            return
        if isinstance(call.body, bytes):
            call.body = bytearray(call.body)
        call.body += body

    def _forget_body(self, call: _Call) -> None:
        self.service.bodies.give_back(call.request.client_ip, call.held)
        call.body, call.held = b"", 0

    def before_body(self) -> None:
        """Judge a call whose body does not come along with its head; until then nothing more is read."""
        call = self._call
        if call is None:
            return
        if len(call.body) > call.held:
            call.problem = self.service.bodies.take(call.request.client_ip, len(call.body) - call.held)
            if call.problem is None:
                call.held = len(call.body)
            else:
                self._forget_body(call)
        if call.judged:
            return
        call.judged = self._judging = True
        self.flow.pause_reading()
        self._start(call, self._judge(call))

    async def _judge(self, call: _Call) -> None:
        answer_limit = self.service.answer_limit
        answer_limit.begin(call)
        try:
            refusal = await self.service.admit(call.request)
        finally:
            answer_limit.end(call)
        if call.response_complete:
            return
        self._judging = False
        if call.disconnected or self.transport.is_closing():
            return
        if refusal is not None:
            self._turn_away(call, refusal)
        elif call.whole:
            await self._answer_held(call)
        else:
            # The time that the body takes to come is its sender's.
            call.since -= perf_counter()
            if not self.flow.write_paused:
                self.flow.resume_reading()

    def _turn_away(self, call: _Call, refusal: Response) -> None:
        """Answer a call whose body is still to come."""
        assert isinstance(refusal.body, bytes)
        self._forget_body(call)
        keep_alive = call.keep_alive and self.rest_is_small()
        self.transport.write(self.head(refusal, keep_alive=keep_alive) + refusal.body)
        call.response_complete = True
        self.on_response_complete()
        if not keep_alive:
            self.linger()

    def give_up(self, call: _Call) -> None:
        """Answer in place of a call that takes too long; its work ends, or goes on for nobody."""
        assert call.task is not None
        self.service.answer_limit.abandon(call.request, call.task)
        if call.disconnected or self.transport.is_closing():
            return
        self._judging = False
        response = self.service.late(call.request)
        if not call.whole:
            self._turn_away(call, response)
            return
        assert isinstance(response.body, bytes)
        self.transport.write(self.head(response, keep_alive=call.keep_alive) + response.body)
        self._end(call)

    def _end(self, call: _Call) -> None:
        """The call is answered."""
        call.response_complete = True
        if not call.keep_alive:
            self.transport.close()
        self.on_response_complete()

    def on_message_complete(self) -> None:
        """The request is whole: answer it."""
        self.stage = NOTHING
        call = self._call
        if call is None:
            super().on_message_complete()
            return
        call.whole = True
        if not self._judging and not call.response_complete:
            if call.judged:
                call.since += perf_counter()
            self._start(call, self._answer_held(call) if call.held else self._answer(call))

    def _start(self, call: _Call, work: Coroutine[Any, Any, None]) -> None:
        call.task = task = self.loop.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _answer_held(self, call: _Call) -> None:
        """Answer a call whose body came in parts, which are held until then."""
        try:
            await self._answer(call)
        finally:
            self._forget_body(call)

    async def _answer(self, call: _Call) -> None:
        service, problem = self.service, call.problem
        call.request.body = bytes(call.body)
        if problem is None:
            service.answer_limit.begin(call)
            try:
                response = await service.answer(call.request)
            finally:
                service.answer_limit.end(call)
        else:
            response = service.refuse_body(call.request, problem)
        if call.response_complete or call.disconnected or self.transport.is_closing():
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
        self._end(call)

    async def _stream(self, call: _Call, head: bytes, response: Response) -> bool:
        """Write a body piece by piece, as fast as the client reads; False if it left or broke on the way."""
        body = response.body
        assert not isinstance(body, bytes)
        piece_s_max = None if response.endless else call.request.limit_s or self.service.answer_limit.limit_s
        try:
            whole = False
            while not whole:
                part = await self.service.next_piece(body, piece_s_max)
                if call.disconnected or self.transport.is_closing():
                    return False
                whole = part is None
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
        if self._call is not None and not self._call.whole:
            self._forget_body(self._call)
        self._call = None
        if self._endless is not None:
            self._endless.cancel()
            self._endless = None
