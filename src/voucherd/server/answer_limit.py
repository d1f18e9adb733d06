"""The answer limit: whoever calls is answered in time, whatever the database does.

No call pays for a timer. The calls under way are in one set, which is looked through ten times a second; a call that
takes longer than it may is answered for, and what it waits for is not waited for any more. How long that is counts from
the arrival of the call, without the time that its own body took to come.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from time import perf_counter
from typing import Any, Final, Protocol

from voucherd.http import Request, Response

LOOK_EVERY_S: Final = 0.1
MARGIN_S_MAX: Final = 0.25
"""A call is answered for this long before its limit, so that the answer is there in time."""


class PendingCall(Protocol):
    """A call under way."""

    request: Request
    since: float

    def give_up(self) -> None:
        """Answer in its place."""


class AnswerLimit:
    """Knows the calls under way, and gives up those that take too long."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self._calls: set[PendingCall] = set()
        self._abandoned: set[asyncio.Task[Any]] = set()
        self._looking = False

    def begin(self, call: PendingCall) -> None:
        """The call is under way, until it ends."""
        self._calls.add(call)
        if not self._looking:
            self._looking = True
            asyncio.get_running_loop().call_later(LOOK_EVERY_S, self._look)

    def end(self, call: PendingCall) -> None:
        """The call is answered."""
        self._calls.discard(call)

    def _look(self) -> None:
        """Give up the calls that are late; look again as long as there are any under way."""
        if not self._calls:
            self._looking = False
            return
        asyncio.get_running_loop().call_later(LOOK_EVERY_S, self._look)
        now = perf_counter()
        for call in [one for one in self._calls if now - one.since >= self._patience_s(one.request)]:
            self._calls.discard(call)
            call.give_up()

    def _patience_s(self, request: Request) -> float:
        limit_s = request.limit_s or self.limit_s
        return limit_s - min(MARGIN_S_MAX, limit_s / 4)

    async def kept(
        self, request: Request, work: Coroutine[Any, Any, Response | None], since: float
    ) -> tuple[bool, Response | None]:
        """Whether the work ended in time, and what came of it."""
        waiting = _Waiting(request, since)
        task = asyncio.get_running_loop().create_task(work)
        self.begin(waiting)
        try:
            await asyncio.wait((task, waiting.given_up), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self.abandon(request, task)
            task.cancel()
            raise
        finally:
            self.end(waiting)
        if task.done():
            return True, task.result()
        self.abandon(request, task)
        return False, None

    def abandon(self, request: Request, task: asyncio.Task[Any]) -> None:
        """Nobody waits for this work any more: it ends here, unless it has to end by itself."""
        self._abandoned.add(task)
        task.add_done_callback(self._ended)
        if not request.goes_on:
            task.cancel()

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._abandoned.discard(task)
        made = None if task.cancelled() or task.exception() is not None else task.result()
        if isinstance(made, Response) and not isinstance(made.body, bytes):
            closing = asyncio.get_running_loop().create_task(made.close())
            self._abandoned.add(closing)
            closing.add_done_callback(self._abandoned.discard)


class _Waiting:
    """A call that somebody waits for in a task of its own."""

    def __init__(self, request: Request, since: float) -> None:
        self.request = request
        self.since = since
        self.given_up = asyncio.get_running_loop().create_future()

    def give_up(self) -> None:
        """Wake who waits."""
        if not self.given_up.done():
            self.given_up.set_result(None)
