"""What every way into the program does with a request, whichever server brought it."""

from __future__ import annotations

import asyncio
import itertools
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Protocol
from urllib.parse import urlsplit

import structlog

from voucherd import logs, traces
from voucherd.http import REQUEST_ID, HttpError, Request, Response
from voucherd.server.answer_limit import AnswerLimit
from voucherd.server.bodies import BodyBytes
from voucherd.server.bounds import LATE, LATE_WRITE
from voucherd.server.connections import ConnectionCount
from voucherd.server.proxies import client_behind
from voucherd.settings import Settings

logger = structlog.get_logger(__name__)


class Application(Protocol):
    """What a server serves."""

    def admit(self, request: Request) -> Awaitable[Response | None]:
        """The refusal of a request whose body is still to come, None if that may be read; it never raises."""

    def answer(self, request: Request) -> Awaitable[Response]:
        """The answer to a whole request, whether it was admitted before or not; it never raises."""

    def body_bytes_max(self, request: Request) -> int:
        """How large the body of this request may be: known before it is read."""

    def refuse(self, request: Request, problem: HttpError) -> Response:
        """The answer to a request that is refused before it is read."""


class RequestIds:
    """Ids that no other process gives out: a random start and a count."""

    def __init__(self) -> None:
        self._prefix = secrets.token_hex(6)
        self._count = itertools.count(1)

    def next(self) -> str:
        """The id of the next request."""
        return f"req_{self._prefix}{next(self._count):08x}"

    def of(self, given: bytes) -> str:
        """The id that the client gave its request (OP-123); one of ours where it can't be one."""
        return given.decode() if REQUEST_ID.fullmatch(given) else self.next()


class HttpService:
    """Makes requests and counts their answers."""

    def __init__(
        self,
        app: Application,
        settings: Settings,
        observe: Callable[[Request, Response, float], None],
        release_waiting_calls: Callable[[], None] = lambda: None,
    ) -> None:
        self.app = app
        self.release_waiting_calls = release_waiting_calls
        self._observe = observe
        self._trusted_proxies = settings.trusted_proxies
        self._root = urlsplit(settings.public_url).path.rstrip("/")
        self._ids = RequestIds()
        self._turn = asyncio.Lock()
        self.body_bytes_max = settings.body_bytes_max
        self.answer_limit = AnswerLimit(settings.answer_limit_s)
        self.bodies = BodyBytes(settings.body_bytes_held_max, settings.body_bytes_held_of_address_max)
        self.connections = ConnectionCount(
            settings.connections_max, settings.connections_of_address_max, settings.trusted_proxies
        )

    def request(
        self, method: str, path: str, query: bytes, headers: Sequence[tuple[bytes, bytes]], peer: str
    ) -> Request:
        """A call whose body is still to come."""
        client_ip = peer
        if self._trusted_proxies:
            client_ip = client_behind(self._trusted_proxies, peer, headers)
        named = dict(headers)
        given = named.get(b"x-request-id")
        request_id = self._ids.next() if given is None else self._ids.of(given)
        request = Request(method, path, query, named, b"", client_ip, request_id, time.perf_counter())
        if self._root:
            request.root = self._root
        return request

    async def admit(self, request: Request) -> Response | None:
        """The refusal of a call whose body is still to come; None if that may be read."""
        logs.bind_request(request)
        refusal = await self.app.admit(request)
        return None if refusal is None else self._finished(request, refusal)

    async def answer(self, request: Request) -> Response:
        """The answer to a whole call."""
        logs.bind_request(request)
        if traces.active is None:
            return self._finished(request, await self.app.answer(request))
        with traces.active.call(request) as told:
            response = self._finished(request, await self.app.answer(request))
            told(response.status)
            return response

    async def next_piece(self, body: AsyncIterator[bytes], wait_s_max: float | None) -> bytes | None:
        """The next piece of a body, None at its end; a TimeoutError if it does not come."""
        if wait_s_max is None:  # It has no end of its own, and its pieces are small.
            return await anext(body, None)
        async with asyncio.timeout(wait_s_max):
            # Long answers take turns, piece by piece, and between two pieces the loop sees to everything else. A
            # hundred of them at once would otherwise hold it up for seconds, with the locks of a sale under way.
            async with self._turn:
                await asyncio.sleep(0)
            return await anext(body, None)

    def late(self, request: Request) -> Response:
        """The answer in place of one that takes too long (OP-109)."""
        logger.warning("call_late", request_id=request.id, method=request.method, goes_on=request.goes_on)
        problem = LATE if request.method == "GET" else LATE_WRITE
        response = self._finished(request, self.app.refuse(request, problem))
        request.given_up = True
        return response

    def too_large(self, request: Request) -> HttpError:
        """Why a body that is larger than it may be is refused (OP-14)."""
        text = f"the body must be at most {self.app.body_bytes_max(request)} bytes"
        return HttpError(413, "body_too_large", text)

    def refuse_body(self, request: Request, problem: HttpError) -> Response:
        """The answer to a call whose body is refused."""
        return self._finished(request, self.app.refuse(request, problem))

    def refuse(self, problem: HttpError) -> Response:
        """The answer to what is no request, or comes where there is no room for one; it has an id all the same."""
        request = Request("", "", b"", {}, b"", "", self._ids.next(), time.perf_counter())
        logger.debug("request_refused", request_id=request.id, status=problem.status, why=problem.text)
        return self._finished(request, self.app.refuse(request, problem))

    def _finished(self, request: Request, response: Response) -> Response:
        headers = [
            *response.headers,
            (b"x-request-id", request.id.encode()),
            (b"cache-control", response.cache_control),
        ]
        if response.content_type is not None:
            headers.append((b"content-type", response.content_type))
        if isinstance(response.body, bytes) and response.status not in (204, 304):
            headers.append((b"content-length", b"%d" % len(response.body)))
        response.headers = headers
        if not request.given_up:
            self._observe(request, response, time.perf_counter() - request.started)
        return response
