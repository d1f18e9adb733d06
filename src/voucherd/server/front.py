"""The front: what every way into the service does with a call, whichever server brought it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import structlog

from voucherd import logs
from voucherd.api import errors
from voucherd.api.app import Api, RequestIds
from voucherd.api.metrics import Metrics
from voucherd.http import HttpError, Request, Response
from voucherd.server.connections import ConnectionCount
from voucherd.server.proxies import client_behind
from voucherd.settings import Settings

logger = structlog.get_logger(__name__)


class Front:
    """Makes requests and counts their answers."""

    def __init__(
        self, api: Api, settings: Settings, metrics: Metrics, let_go: Callable[[], None] = lambda: None
    ) -> None:
        self._api = api
        self.let_go = let_go
        self._metrics = metrics
        self._trusted_proxies = settings.trusted_proxies
        self._ids = RequestIds()
        self.body_bytes_max = settings.body_bytes_max
        self.doors = ConnectionCount(
            settings.connections_max, settings.connections_of_address_max, settings.trusted_proxies
        )

    def request(
        self, method: str, path: str, query: bytes, headers: Sequence[tuple[bytes, bytes]], peer: str
    ) -> Request:
        """A call whose body is still to come."""
        client_ip = peer
        if self._trusted_proxies:
            client_ip = client_behind(self._trusted_proxies, peer, headers)
        return Request(
            method, path, query, dict(headers), b"", client_ip, self._ids.next(), time.perf_counter()
        )

    async def answer(self, request: Request) -> Response:
        """The answer to a whole call."""
        logs.bind_request(request.id)
        return self._finished(request, await self._api.answer(request))

    def bytes_max(self, request: Request) -> int:
        """How large the body of this call may be; pages that take files take more than others."""
        if request.path.startswith("/api/"):
            return self.body_bytes_max
        return self._api.site.body_bytes_max(request)

    def too_large(self, request: Request) -> Response:
        """The answer to a call whose body is larger than it may be (OP-14)."""
        text = f"the body must be at most {self.bytes_max(request)} bytes"
        problem = HttpError(413, "body_too_large", text)
        if request.path.startswith("/api/"):
            return self._finished(request, errors.http_error(request, problem))
        return self._finished(request, self._api.site.refuse(request, problem))

    def refuse(self, problem: HttpError) -> Response:
        """The answer to what is no request, or comes where there is no room for one; it has an id all the same."""
        request = Request("", "", b"", {}, b"", "", self._ids.next(), time.perf_counter())
        logger.debug("request_refused", request_id=request.id, status=problem.status, why=problem.text)
        return self._finished(request, errors.http_error(request, problem))

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
        self._metrics.observe(request.method, response.status, time.perf_counter() - request.started)
        return response
