"""Collects calls in memory and writes them in batches: no call waits for the log, and a busy service drops from it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

import structlog
from msgspec import Struct

from voucherd.db import Pool
from voucherd.http import Request, Response, method_word
from voucherd.request_log import store
from voucherd.request_log.redaction import PATH_CHARS_MAX, kept_body, kept_text
from voucherd.request_log.store import Answered

EVERY_S: Final = 0.5
SECOND_MAX: Final = 20
"""Calls that one process takes down in a second; those beyond it are dropped, and counted."""
SECOND_OF_COMPANY_MAX: Final = 10
"""Of these the calls of one company that went well, and as many that were refused: those are looked for more often."""
WAITING_MAX: Final = 100
"""While the database hangs: each holds its bodies, which may be large."""
REQUEST_ID_CHARS_MAX: Final = 128
STOP_S_MAX: Final = 2.0
OWN: Final = ("/request", "/request/{id}")
"""How the routes of the log end: looks at it are not in it."""

logger = structlog.get_logger(__name__)


class _Noted(Struct, frozen=True):
    """What is held of a call until it is written: only bytes that are there anyway."""

    at: float
    request: Request
    status: int
    content_type: bytes | None
    body: object
    seconds: float


class RequestLog:
    """The calls of this process that are still to be written."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._waiting: deque[_Noted] = deque()
        self._second = 0
        self._taken = 0
        self._of_company: dict[tuple[int, bool], int] = {}
        self._writer: asyncio.Task[None] | None = None
        self.dropped = 0

    def note(self, request: Request, response: Response, seconds: float) -> None:
        """Take one call of a known key down, unless there are too many of them just now."""
        caller = request.caller
        if caller is None:
            return
        second = int(request.started + seconds)
        if second != self._second:
            self._second, self._taken = second, 0
            self._of_company.clear()
        if self._taken >= SECOND_MAX:
            self.dropped += 1
            return
        whose = caller.company_id, response.status < 400
        count = self._of_company.get(whose, 0)
        if count >= SECOND_OF_COMPANY_MAX or len(self._waiting) >= WAITING_MAX:
            self.dropped += 1
            return
        self._of_company[whose] = count + 1
        self._taken += 1
        body = response.body if isinstance(response.body, bytes) else None
        self._waiting.append(
            _Noted(time.time(), request, response.status, response.content_type, body, seconds)
        )

    def start(self) -> None:
        """Begin to write."""
        self._writer = asyncio.create_task(self._write())

    async def stop(self) -> None:
        """Write what waits, unless the database does not take it."""
        if self._writer is not None:
            self._writer.cancel()
            await asyncio.gather(self._writer, return_exceptions=True)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_S_MAX):
                await self.flush()

    async def flush(self) -> None:
        """Write what waits; a batch that can't be written is dropped."""
        calls = list(self._kept())
        if not calls:
            return
        try:
            await store.write(self._pool, calls)
        except Exception as error:  # noqa: BLE001 - A log that can't be written must not end the service.
            self.dropped += len(calls)
            logger.warning("request_log_not_written", calls=len(calls), error=repr(error))

    async def _write(self) -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            await self.flush()

    def _kept(self) -> Iterator[Answered]:
        for _ in range(len(self._waiting)):
            noted = self._waiting.popleft()
            if not noted.request.route.endswith(OWN):
                yield _kept(noted)


def _kept(noted: _Noted) -> Answered:
    """The call as it is written: redacted here, and not while its client waits."""
    request, caller = noted.request, noted.request.caller
    assert caller is not None, "only calls of known keys are noted"
    path = request.path
    if request.query:
        path = f"{path}?{request.query.decode('latin-1')}"
    return Answered(
        caller.company_id,
        int(caller.state),
        datetime.fromtimestamp(noted.at, UTC),
        kept_text(request.id, REQUEST_ID_CHARS_MAX),
        caller.key_id,
        method_word(request.method),
        kept_text(path, PATH_CHARS_MAX),
        noted.status,
        round(noted.seconds * 1000),
        kept_body(request.body, request.headers.get(b"content-type")),
        kept_body(noted.body, noted.content_type),
    )
