"""A listener for a process that serves no clients: a few paths that tell how it is, one answer for each connection."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, NamedTuple, TypeAlias

import structlog

from voucherd.http import TEXT

HEAD_BYTES_MAX: Final = 8 * 1024
HEAD_S_MAX: Final = 5.0
"""Who asks says so at once."""
CONNECTIONS_MAX: Final = 32
_REASONS: Final = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}

logger = structlog.get_logger(__name__)


class StatusAnswer(NamedTuple):
    """What is told at a path."""

    status: int
    body: bytes
    content_type: bytes = TEXT


NOT_FOUND: Final = StatusAnswer(404, b"not found")
StatusPages: TypeAlias = Mapping[str, Callable[[bool], Awaitable[StatusAnswer]]]
"""By path; each is told whether the operator's token was brought."""


@asynccontextmanager
async def listening(
    address: tuple[str, int] | None, token: str | None, pages: StatusPages
) -> AsyncIterator[None]:
    """Answer at this address meanwhile. One that can't be had is logged: work matters more than watching it."""
    if address is None:
        yield
        return
    listener = _Listener(token, pages)
    try:
        server = await asyncio.start_server(listener.answer, *address, limit=HEAD_BYTES_MAX)
    except OSError as error:
        logger.warning("status_not_shown", host=address[0], port=address[1], error=error.strerror)
        yield
        return
    host, port = server.sockets[0].getsockname()[:2]
    logger.info("status_shown", host=host, port=port)
    try:
        yield
    finally:
        server.close()
        await listener.stop()


class _Listener:
    def __init__(self, token: str | None, pages: StatusPages) -> None:
        self._expected = None if token is None else b"Bearer " + token.encode()
        self._pages = pages
        self._tasks: set[asyncio.Task[None]] = set()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read one request's head, answer it, and close."""
        task = asyncio.current_task()
        assert task is not None
        if len(self._tasks) >= CONNECTIONS_MAX:
            writer.close()
            return
        self._tasks.add(task)
        try:
            with contextlib.suppress(OSError, TimeoutError, EOFError, asyncio.LimitOverrunError):
                async with asyncio.timeout(HEAD_S_MAX):
                    head = await reader.readuntil(b"\r\n\r\n")
                found = await self._found(head)
                reason = _REASONS[found.status].encode()
                writer.write(
                    b"HTTP/1.1 %d %b\r\ncontent-type: %b\r\ncontent-length: %d\r\ncache-control: no-store\r\n"
                    b"connection: close\r\n\r\n" % (found.status, reason, found.content_type, len(found.body))
                )
                if not head.startswith(b"HEAD "):
                    writer.write(found.body)
                async with asyncio.timeout(HEAD_S_MAX):
                    await writer.drain()
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _found(self, head: bytes) -> StatusAnswer:
        first, *lines = head.split(b"\r\n")
        method, _, rest = first.partition(b" ")
        page = self._pages.get(rest.partition(b" ")[0].partition(b"?")[0].decode("latin-1"))
        if page is None:
            return NOT_FOUND
        if method not in (b"GET", b"HEAD"):
            return StatusAnswer(405, b"method not allowed")
        pairs = [line.partition(b":") for line in lines]
        given = [value.strip() for name, _, value in pairs if name.strip().lower() == b"authorization"]
        trusted = self._expected is not None and hmac.compare_digest(b",".join(given), self._expected)
        try:
            return await page(trusted)
        except Exception:
            logger.exception("status_failed")
            return StatusAnswer(503, b"not ready")

    async def stop(self) -> None:
        """End the answers under way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
