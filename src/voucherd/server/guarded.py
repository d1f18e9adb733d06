"""A connection with bounds on all that a client may send, hold open or leave unread.

No call pays for a timer: once a second `look` is asked of every connection, and a connection that has been in the same
state for too long is ended. What can't be read is refused in its turn, after the answers to the calls before it.
"""

from __future__ import annotations

import asyncio
from typing import Any

import httptools
import structlog
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from voucherd.http import HttpError, Response
from voucherd.server.bounds import (
    AMBIGUOUS,
    BODY,
    CHUNK_BYTES_MIN,
    CHUNKS_MIN,
    DROPPED_BYTES_MAX,
    FIELDS_MAX,
    FULL,
    HEAD,
    HEAD_BYTES_MAX,
    LARGE_HEAD,
    LONG_URL,
    MANY_CHUNKS,
    NO_HOST,
    NOTHING,
    ONCE,
    OTHER_CODING,
    PIPELINED,
    PIPELINED_MAX,
    SLOW,
    UNREADABLE,
    URL_BYTES_MAX,
    ConnectionState,
    patience_s,
)
from voucherd.server.http_service import HttpService

logger = structlog.get_logger(__name__)


class _RequestRefused(Exception):
    """Raised inside of the parser, to get out of it."""

    def __init__(self, problem: HttpError) -> None:
        super().__init__(problem.text)
        self.problem = problem


class GuardedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with bounds."""

    stage = NOTHING
    messages = 0
    _drained = 0
    _piece = 0
    _silent = 0
    _head_bytes = 0
    _chunks = 0
    _chunk_bytes = 0
    _judging = False
    _deaf = False
    _lingering = False
    _held = False
    _entered = ""
    _running: Any = None
    _watched: tuple[ConnectionState, int, int] | None = None
    _watched_at = 0.0

    @property
    def service(self) -> HttpService:
        """What makes answers."""
        service: HttpService = self.config.app.service  # type: ignore[union-attr]
        return service

    # ── coming and going ──────────────────────────────────────────────────────────────────────────────

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Let the client in, or say that there is no room."""
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        if self.service.connections.enter(address):
            self._entered = address or "?"
            return
        self._deaf = True
        response = self.service.refuse(FULL)
        assert isinstance(response.body, bytes)
        transport.write(self.head(response, keep_alive=False) + response.body)
        transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        super().connection_lost(exc)
        self.pipeline.clear()
        if self._running is not None:
            # uvicorn tells only the newest call that nobody waits for it.
            self._running.disconnected = True
            self._running.message_event.set()
        if self._entered:
            self.service.connections.leave(self.client[0] if self.client else "")
            self._entered = ""

    def shutdown(self) -> None:
        """The server stops."""
        super().shutdown()
        if self._lingering:
            self.transport.close()

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────

    def data_received(self, data: bytes) -> None:
        """Some bytes; a head or body that is too large is noticed before it is whole."""
        if self._deaf:
            return
        self._piece = size = len(data)
        self._silent += size
        before = self.cycle
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # Nothing else is spoken here: the call is answered as it is, and what follows it is not read.
            self._deaf = True
            self.cycle.keep_alive = False
            return
        except httptools.HttpParserError as error:
            cause = error.__context__
            self.refuse(cause.problem if isinstance(cause, _RequestRefused) else UNREADABLE)
            return
        if self.stage == HEAD and self.cycle is before:
            self._head_bytes += size
            if self._head_bytes > HEAD_BYTES_MAX:
                self.refuse(LONG_URL if len(self.url) > URL_BYTES_MAX else LARGE_HEAD)
        elif self._silent > HEAD_BYTES_MAX:
            # Lines before a request, extensions of chunks, fields after a body: nobody needs that many.
            self.refuse(LARGE_HEAD)
        elif self.stage == BODY:
            self.before_body()

    def before_body(self) -> None:
        """A head is read and its body is not, or not to its end; ASGI judges the call by itself."""

    def on_message_begin(self) -> None:
        """A request begins; what only ASGI needs is made when ASGI needs it."""
        self.url = b""
        self.headers = []
        self.expect_100_continue = False
        self.stage = HEAD
        self.messages += 1
        self._silent = 0
        self._head_bytes = 0
        self._chunks = 0

    def check_head(self, fields: dict[bytes, bytes]) -> None:
        """Refuse a head that is too large, or not clear; `fields` are the last of each name."""
        if len(self.url) > URL_BYTES_MAX:
            raise _RequestRefused(LONG_URL)
        if len(self.headers) > FIELDS_MAX:
            raise _RequestRefused(LARGE_HEAD)
        # Only where it may be: adding up costs more than all other checks.
        if self._piece + self._head_bytes > HEAD_BYTES_MAX:
            size = len(self.url) + sum([len(name) + len(value) + 4 for name, value in self.headers])
            if size > HEAD_BYTES_MAX:
                raise _RequestRefused(LARGE_HEAD)
        if b"host" not in fields and self.parser.get_http_version() == "1.1":
            raise _RequestRefused(NO_HOST)
        coding = fields.get(b"transfer-encoding")
        if coding is not None and (coding.lower() != b"chunked" or self.parser.get_http_version() != "1.1"):
            raise _RequestRefused(OTHER_CODING)
        if len(fields) < len(self.headers):
            names = [name for name, _ in self.headers if name in ONCE]
            if len(names) > len(set(names)):
                raise _RequestRefused(AMBIGUOUS)

    def queue_call(self) -> None:
        """Before a call is put behind others that wait for their answers."""
        if len(self.pipeline) >= PIPELINED_MAX:
            raise _RequestRefused(PIPELINED)
        if not self.pipeline:
            self._running = self.cycle

    def on_chunk_header(self) -> None:
        """A chunk begins."""
        self._chunk_bytes = self._chunk_bytes if self._chunks else 0
        self._chunks += 1
        if self._chunks > CHUNKS_MIN + self._chunk_bytes // CHUNK_BYTES_MIN:
            raise _RequestRefused(MANY_CHUNKS)

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        self._silent = 0
        self._chunk_bytes += len(body)
        super().on_body(body)

    # ── refusing ──────────────────────────────────────────────────────────────────────────────────────

    def refuse(self, problem: HttpError) -> None:
        """Read nothing more. The client is told why, unless it waits for the answers to earlier calls: then it is
        told these, and the connection is closed."""
        if self._deaf:
            return
        self._deaf = True
        earlier, silent = self._earlier()
        if earlier is not None:
            earlier.keep_alive = False
            self.flow.pause_reading()
            return
        if not silent:
            response = self.service.refuse(problem)
            assert isinstance(response.body, bytes)
            self.transport.write(self.head(response, keep_alive=False) + response.body)
        self.linger()

    def linger(self) -> None:
        """Read over what still comes, for a while: closed at once, the client might lose the answer."""
        self._deaf = self._lingering = True
        if not self.transport.is_closing():
            self.flow.resume_reading()
            self.transport.write_eof()

    def rest_is_small(self) -> bool:
        """Whether what is left of the body is known to be little."""
        length = next((value for name, value in self.headers if name == b"content-length"), None)
        return length is not None and int(length) <= DROPPED_BYTES_MAX

    def _earlier(self) -> tuple[Any, bool]:
        """The newest call that is whole and waits for its answer; and whether one was given for what is being read."""
        cycle: Any = self.cycle
        if self.stage != BODY:
            return (None if cycle is None or cycle.response_complete else cycle), False
        self.stage = NOTHING
        if self.pipeline and self.pipeline[0][0] is cycle:
            self.pipeline.popleft()
            return (self.pipeline[0][0] if self.pipeline else self._running), False
        cycle.disconnected = True
        cycle.message_event.set()
        return None, getattr(cycle, "response_started", False)

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────

    def head(self, response: Response, *, keep_alive: bool) -> bytes:
        """The status line and the headers of an answer."""
        parts = [STATUS_LINE[response.status]]
        for name, value in self.server_state.default_headers:
            parts += (name, b": ", value, b"\r\n")
        for name, value in response.headers:
            parts += (name, b": ", value, b"\r\n")
        if not isinstance(response.body, bytes):
            parts.append(b"transfer-encoding: chunked\r\n")
        parts.append(b"\r\n" if keep_alive else b"connection: close\r\n\r\n")
        return b"".join(parts)

    def pause_writing(self) -> None:
        """The client does not read as fast as we write: it need not ask for more, either."""
        super().pause_writing()
        self.flow.pause_reading()

    def resume_writing(self) -> None:
        """The client has read."""
        super().resume_writing()
        self._drained += 1
        if self._held:
            self._held = False
            self._next()
        elif not self.pipeline and not self._deaf:
            self.flow.resume_reading()

    def on_response_complete(self) -> None:
        """The call is answered; the next one is, when the client has taken most of this one."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        if self.stage == BODY and self.cycle.response_complete and not self.rest_is_small():
            self.linger()
        elif self.flow.write_paused:
            self._held = True
        else:
            self._next()

    def _next(self) -> None:
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._running = cycle
            self._start_asgi_task(cycle, app)
        elif not self._deaf:
            self.flow.resume_reading()

    # ── time ──────────────────────────────────────────────────────────────────────────────────────────

    def look(self, now: float) -> None:
        """End a connection that has been in one state for longer than it may."""
        state = self._state()
        watched = (state, self.messages, self._drained)
        if watched != self._watched:
            self._watched, self._watched_at = watched, now
            return
        if now - self._watched_at < patience_s(self.timeout_keep_alive, self.service.body_bytes_max)[state]:
            return
        if state in (ConnectionState.HEAD, ConnectionState.BODY):
            self.refuse(SLOW)
        elif state in (ConnectionState.STALLED, ConnectionState.CLOSING):
            logger.info("client_stalled", client=self.client[0] if self.client else "")
            self.transport.abort()
        else:
            self.transport.close()

    def _state(self) -> ConnectionState:
        if self.transport.is_closing():
            return ConnectionState.CLOSING
        if self.flow.write_paused:
            return ConnectionState.STALLED
        if self._lingering:
            return ConnectionState.LINGERING
        if self.stage != NOTHING and not self._deaf and (self._judging or not self.flow.read_paused):
            return ConnectionState.HEAD if self.stage == HEAD else ConnectionState.BODY
        if self.cycle is None:
            return ConnectionState.NEW
        return (
            ConnectionState.IDLE
            if self.cycle.response_complete and not self.pipeline
            else ConnectionState.BUSY
        )

    def _unset_keepalive_if_required(self) -> None:
        """There is no timer to unset."""
