"""The way to the real service, and what can happen on it: answers get lost, and proxies answer instead."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import httpx

from tests.patience import HANG_S
from tests.shop import Company
from tests.wire.test_sockets import Street
from voucherd.api.routes import match
from voucherd.ids import State
from voucherd_client import AsyncClient, Client, Retries

PLAYED = {
    ("POST", "sandbox/top-up"),
    ("GET", "sandbox/clock"),
    ("POST", "sandbox/clock/advance"),
    ("POST", "sandbox/clock/reset"),
    ("POST", "event/trigger"),
    ("GET", "request"),
    ("GET", "request/{id}"),
}
"""Operations of the sandbox and of the request log, which have tests of their own."""
QUICK = Retries(first_pause_s=0.01, pause_s_max=0.02)
Trouble = Callable[[httpx.Request, httpx.Response], httpx.Response]


def arrives(_request: httpx.Request, answer: httpx.Response) -> httpx.Response:
    """No trouble."""
    return answer


def lost(request: httpx.Request, _answer: httpx.Response) -> httpx.Response:
    """The service did it, and nobody was told."""
    raise httpx.ReadError("the connection broke", request=request)


def proxy_says(status: int, **headers: str) -> Trouble:
    """A proxy gave up on an answer that the service did give."""

    def answer(request: httpx.Request, _answer: httpx.Response) -> httpx.Response:
        return httpx.Response(status, headers=headers, text="<html>try again", request=request)

    return answer


class Road(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Carries every request to the service, and lets the next troubles happen to the answers, one each."""

    def __init__(self, *troubles: Trouble) -> None:
        self.troubles = list(troubles)
        self.requests: list[httpx.Request] = []
        self.answers: list[httpx.Response] = []
        """What the service itself answered."""
        self._blocking = httpx.HTTPTransport(verify=False)
        self._awaiting = httpx.AsyncHTTPTransport(verify=False)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """As a transport does."""
        answer = self._blocking.handle_request(request)
        answer.read()
        return self._passed(request, answer)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """As a transport does."""
        answer = await self._awaiting.handle_async_request(request)
        await answer.aread()
        return self._passed(request, answer)

    def _passed(self, request: httpx.Request, answer: httpx.Response) -> httpx.Response:
        self.requests.append(request)
        self.answers.append(answer)
        return self.troubles.pop(0)(request, answer) if self.troubles else answer

    @property
    def statuses(self) -> list[int]:
        """The status of each answer."""
        return [answer.status_code for answer in self.answers]

    @property
    def operations(self) -> set[tuple[str, str]]:
        """Method and path of each route that was answered well; nothing was refused."""
        found = set()
        for request, answer in zip(self.requests, self.answers, strict=True):
            matched = match(request.url.path)
            assert matched is not None
            assert answer.is_success, request.url
            found.add((request.method, matched.methods[request.method][0].path))
        return found

    @property
    def keys(self) -> list[str | None]:
        """The Idempotency-Key of each request."""
        return [request.headers.get("idempotency-key") for request in self.requests]

    def close(self) -> None:
        """As a transport does."""
        self._blocking.close()

    async def aclose(self) -> None:
        """As a transport does."""
        await self._awaiting.aclose()


def url_of(street: Street) -> str:
    """Where the service listens."""
    return f"http://127.0.0.1:{street.port}"


@contextmanager
def client_of(
    street: Street, company: Company, state: State = State.LIVE, road: Road | None = None
) -> Iterator[Client]:
    """A client that blocks; its thread must not be the service's."""
    with httpx.Client(transport=road or Road()) as http:
        yield Client(url_of(street), company.keys[state], http=http, timeout_s=HANG_S, retries=QUICK)


@asynccontextmanager
async def async_client_of(
    street: Street, company: Company, state: State = State.LIVE, road: Road | None = None
) -> AsyncIterator[AsyncClient]:
    """A client that awaits."""
    async with httpx.AsyncClient(transport=road or httpx.AsyncHTTPTransport(verify=False)) as http:
        yield AsyncClient(url_of(street), company.keys[state], http=http, timeout_s=HANG_S, retries=QUICK)
