"""What carries steps out: one engine that blocks, and one that awaits. Everything else is the same for both."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from typing import Final, Generic, TypeVar
from urllib.parse import urlsplit

import httpx
from msgspec import Struct

from voucherd_client.shapes.pages import Page
from voucherd_client.steps import Outcome, Pause, Request, Steps
from voucherd_client.stream import SILENCE_S_MAX, Stream

VERSION: Final = "0.1.0"
API: Final = "/api/1.03/"
TIMEOUT_S: Final = 45.0
"""Longer than the service takes for anything: Resolve answers within 30 seconds, Confirm within 40."""
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")

T = TypeVar("T")


class Walk(Struct, Generic[T], frozen=True):
    """A list in pages: where it begins, and how the page at a cursor is asked for."""

    cursor: str
    page: Callable[[str], Steps[Page[T]]]


class Address(Struct, frozen=True):
    """Where the service is, and who calls it."""

    url: str
    key: str

    @classmethod
    def of(cls, url: str, key: str, *, allow_http: bool) -> Address:
        """Refuses an address to which a key would travel in the open, and a key that is none."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("url: must begin with https:// and name a host")
        if parts.scheme == "http" and parts.hostname not in _LOOPBACK and not allow_http:
            raise ValueError("url: the key would travel unencrypted; take https, or say allow_http=True")
        if not key.isascii() or not key.isprintable() or not key.strip():
            raise ValueError("key: must be an API key, such as vk_test_…")
        return cls(url.rstrip("/"), key.strip())

    def headers(self) -> dict[str, str]:
        """What every request carries."""
        return {
            "Authorization": f"Bearer {self.key}",
            "Accept": "application/json, application/problem+json",
            "User-Agent": f"voucherd-client/{VERSION} (Python)",
        }

    def __repr__(self) -> str:
        return f"Address({self.url!r})"


def _built(
    http: httpx.Client | httpx.AsyncClient, address: Address, request: Request, timeout_s: float
) -> httpx.Request:
    headers = address.headers() | dict(request.headers)
    if request.body is not None:
        headers["Content-Type"] = "application/json"
    return http.build_request(
        request.method,
        f"{address.url}{API}{request.path}",
        params=request.query or None,
        headers=headers,
        content=request.body,
        timeout=timeout_s,
    )


class Pages(Generic[T]):
    """A list, one after another; `pages()` gives it a page at a time."""

    def __init__(self, engine: Engine, walk: Walk[T]) -> None:
        self._engine = engine
        self._walk = walk

    def pages(self) -> Iterator[Page[T]]:
        """The pages, each with its `next_cursor`."""
        cursor: str | None = self._walk.cursor
        while cursor is not None:
            page = self._engine.run(self._walk.page(cursor))
            yield page
            cursor = page.next_cursor

    def __iter__(self) -> Iterator[T]:
        for page in self.pages():
            yield from page.data


class AsyncPages(Generic[T]):
    """A list, one after another; `pages()` gives it a page at a time."""

    def __init__(self, engine: AsyncEngine, walk: Walk[T]) -> None:
        self._engine = engine
        self._walk = walk

    async def pages(self) -> AsyncIterator[Page[T]]:
        """The pages, each with its `next_cursor`."""
        cursor: str | None = self._walk.cursor
        while cursor is not None:
            page = await self._engine.run(self._walk.page(cursor))
            yield page
            cursor = page.next_cursor

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for one in page.data:
                yield one


class Engine:
    """Blocks until an answer is there. Threads may share it."""

    def __init__(self, address: Address, http: httpx.Client, timeout_s: float) -> None:
        self._address = address
        self._http = http
        self._timeout_s = timeout_s

    def run(self, steps: Steps[T]) -> T:
        """Carry the steps out to their result."""
        outcome: Outcome = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as end:
                result: T = end.value
                return result
            outcome = self._carry_out(step)

    def _carry_out(self, step: Request | Pause) -> Outcome:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
            return None
        try:
            return self._http.send(
                _built(self._http, self._address, step, self._timeout_s + step.wait_s), follow_redirects=False
            )
        except httpx.RequestError as error:
            return error

    def pages(self, walk: Walk[T]) -> Pages[T]:
        """A list."""
        return Pages(self, walk)

    def stream(self, stream: Stream[T]) -> Generator[T, None, None]:
        """What comes, for as long as it can be heard."""
        reading = stream.begin()
        while True:
            request = _built(self._http, self._address, reading.request, SILENCE_S_MAX)
            outcome: Outcome = None
            try:
                answer = self._http.send(request, stream=True, follow_redirects=False)
                try:
                    if answer.is_success:
                        for chunk in answer.iter_bytes():
                            yield from reading.heard(chunk)
                    else:
                        answer.read()
                        outcome = answer
                finally:
                    answer.close()
            except httpx.RequestError as error:
                outcome = error
            time.sleep(reading.pause_s(outcome))


class AsyncEngine:
    """Awaits answers, in a loop of asyncio."""

    def __init__(self, address: Address, http: httpx.AsyncClient, timeout_s: float) -> None:
        self._address = address
        self._http = http
        self._timeout_s = timeout_s

    async def run(self, steps: Steps[T]) -> T:
        """Carry the steps out to their result."""
        outcome: Outcome = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as end:
                result: T = end.value
                return result
            outcome = await self._carry_out(step)

    async def _carry_out(self, step: Request | Pause) -> Outcome:
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
            return None
        try:
            return await self._http.send(
                _built(self._http, self._address, step, self._timeout_s + step.wait_s), follow_redirects=False
            )
        except httpx.RequestError as error:
            return error

    def pages(self, walk: Walk[T]) -> AsyncPages[T]:
        """A list."""
        return AsyncPages(self, walk)

    async def stream(self, stream: Stream[T]) -> AsyncGenerator[T, None]:
        """What comes, for as long as it can be heard."""
        reading = stream.begin()
        while True:
            request = _built(self._http, self._address, reading.request, SILENCE_S_MAX)
            outcome: Outcome = None
            try:
                answer = await self._http.send(request, stream=True, follow_redirects=False)
                try:
                    if answer.is_success:
                        async for chunk in answer.aiter_bytes():
                            for one in reading.heard(chunk):
                                yield one
                    else:
                        await answer.aread()
                        outcome = answer
                finally:
                    await answer.aclose()
            except httpx.RequestError as error:
                outcome = error
            await asyncio.sleep(reading.pause_s(outcome))
