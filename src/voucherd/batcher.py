"""The batcher: calls gather while the last batch is in flight, and one batch serves them all.

There is no timer. Alone on an idle server a call is a batch of one and starts at once; under load the batches grow
by themselves. A batch is filled in turns by company: everyone's first call before anyone's second (OP-48). A call that
fails takes no other one along: when nothing of its batch was stored, the batch is tried again in parts. A batch whose
database does not answer ends at its limit, and calls that waited too long for their turn are told to come again.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context, copy_context
from math import inf
from time import perf_counter
from typing import Any, Final, Generic, TypedDict, TypeVar

import asyncpg

from voucherd import logs, traces
from voucherd.db import UNAVAILABLE, Undone
from voucherd.http import Request
from voucherd.settings import Settings

C = TypeVar("C")
A = TypeVar("A")

BATCH_MAX: Final = 256
IN_FLIGHT_MAX: Final = 2
SECOND_BATCH_FROM: Final = 64
"""A second batch starts beside the first only when this many wait: always two was slower."""

PARTS: Final = 8
"""A batch that failed is tried again in so many parts, and each of those again, until what fails is a single call."""

SIZES: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256)
SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
"""The upper ends of what batches are counted by: calls, and how long they took. One more is open."""

REFUSED: Final = (
    asyncpg.IntegrityConstraintViolationError,
    asyncpg.DataError,
    asyncpg.TransactionRollbackError,  # A deadlock, say.
)
"""The database looked at what a batch would store and undid it. After any other error of its own it may be stored."""


class BatcherFull(Exception):
    """Too many calls wait already; try again shortly."""


class BatchBounds(TypedDict):
    """How many calls may wait for their turn, how long each of them, and how long a batch may take."""

    waiting_max: int
    wait_s_max: float
    run_s_max: float | None


def bounds_of(settings: Settings) -> BatchBounds:
    """The operator's bounds."""
    return BatchBounds(
        waiting_max=settings.waiting_calls_max,
        wait_s_max=settings.answer_limit_s,
        run_s_max=settings.batch_limit_s,
    )


class Batcher(Generic[C, A]):
    """Turns single calls into fair batches."""

    def __init__(
        self,
        run: Callable[[Sequence[C]], Awaitable[Sequence[A]]],
        *,
        waiting_max: int,
        wait_s_max: float = inf,
        run_s_max: float | None = None,
        in_flight_max: int = IN_FLIGHT_MAX,
        stores: bool = True,
        name: str = "",
    ) -> None:
        """`stores` is False for a run that only reads: then any failure leaves nothing behind."""
        self._run = run
        self._name = name
        self._stores = stores
        self._in_flight_max = in_flight_max
        self._waiting_max = waiting_max
        self._wait_s_max = wait_s_max
        self._run_s_max = run_s_max
        self._lanes: dict[int, deque[tuple[C, asyncio.Future[A], Request | None, float]]] = {}
        self._turns: deque[int] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._launch_planned = False
        self.waiting = 0
        self.in_flight = 0
        self.batches = 0
        self.calls = 0
        self.sizes = [0] * (len(SIZES) + 1)
        self.took = [0] * (len(SECONDS) + 1)
        self.seconds = 0.0

    def submit(self, company_id: int, command: C) -> asyncio.Future[A]:
        """A future for the command's answer; refused when too many wait."""
        if self.waiting >= self._waiting_max:
            raise BatcherFull
        loop = asyncio.get_running_loop()
        future: asyncio.Future[A] = loop.create_future()
        lane = self._lanes.get(company_id)
        if lane is None:
            lane = self._lanes[company_id] = deque()
            self._turns.append(company_id)
        request = logs.current_request()
        lane.append((command, future, request, perf_counter()))
        if traces.active is not None:
            traces.active.wait(request)
        self.waiting += 1
        if not self._launch_planned and self._may_launch():
            # One turn of the loop later, so that calls that arrived together start together.
            self._launch_planned = True
            loop.call_soon(self._launch, context=_own_context())
        return future

    def _may_launch(self) -> bool:
        if self.in_flight == 0:
            return self.waiting > 0
        return self.in_flight < self._in_flight_max and self.waiting >= SECOND_BATCH_FROM

    def _launch(self) -> None:
        self._launch_planned = False
        while self._may_launch():
            batch = self._fill()
            if not batch:
                return
            self.in_flight += 1
            task = asyncio.get_running_loop().create_task(self._serve(batch))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _fill(self) -> list[tuple[C, asyncio.Future[A], Request | None]]:
        """The next batch: one call of each company in turn, round and round."""
        batch: list[tuple[C, asyncio.Future[A], Request | None]] = []
        turns, lanes = self._turns, self._lanes
        oldest = perf_counter() - self._wait_s_max
        while turns and len(batch) < BATCH_MAX:
            company_id = turns.popleft()
            lane = lanes[company_id]
            command, future, request, since = lane.popleft()
            self.waiting -= 1
            if lane:
                turns.append(company_id)
            else:
                del lanes[company_id]
            if future.done():  # A client that left before its turn asks for nothing any more.
                continue
            if since < oldest:
                future.set_exception(BatcherFull())
                continue
            batch.append((command, future, request))
        return batch

    async def _serve(self, batch: list[tuple[C, asyncio.Future[A], Request | None]]) -> None:
        began, size = perf_counter(), len(batch)
        for _, _, request in batch:
            if request is not None:
                request.batch = size
        try:
            if traces.active is None:
                await self._answer(batch)
            else:
                with traces.active.batch(self._name, [request for _, _, request in batch]):
                    await self._answer(batch)
        finally:
            took = perf_counter() - began
            self.in_flight -= 1
            self.batches += 1
            self.calls += size
            self.sizes[bisect_left(SIZES, size)] += 1
            self.took[bisect_left(SECONDS, took)] += 1
            self.seconds += took
            self._launch()

    async def _answer(self, batch: list[tuple[C, asyncio.Future[A], Request | None]]) -> None:
        try:
            async with asyncio.timeout(self._run_s_max):
                answers = await self._run([command for command, _, _ in batch])
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - It belongs to the callers that wait.
            cause = (error.__cause__ or error) if isinstance(error, Undone) else error
            if len(batch) == 1 or not self._may_try_again(error, cause):
                self._fail(batch, cause)
                return
        else:
            for (_, future, _), answer in zip(batch, answers, strict=True):
                if not future.done():
                    future.set_result(answer)
            return
        size = -(-len(batch) // PARTS)
        for start in range(0, len(batch), size):
            await self._answer(batch[start : start + size])

    def _may_try_again(self, error: BaseException, cause: BaseException) -> bool:
        """Whether nothing was stored, and another try could go better: not while the database is away."""
        if isinstance(cause, UNAVAILABLE) or not isinstance(cause, Exception):
            return False
        return not self._stores or isinstance(error, (Undone, *REFUSED))

    @staticmethod
    def _fail(batch: list[tuple[Any, asyncio.Future[Any], Any]], error: BaseException) -> None:
        for _, future, _ in batch:
            if not future.done():
                future.set_exception(error if isinstance(error, Exception) else RuntimeError("stopped"))

    async def drain(self) -> None:
        """Wait until nothing is waiting or in flight."""
        while self._launch_planned or self._tasks:
            await (asyncio.wait(self._tasks) if self._tasks else asyncio.sleep(0))


def _own_context() -> Context:
    """A context for a batch: it is of many requests, and its lines in the log are not the first one's."""
    made = copy_context()
    made.run(logs.bind_request, None)
    return made
