"""Work that a page begins and does not wait for: a few at a time, and none outlives the process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import structlog

logger = structlog.get_logger(__name__)

AT_ONCE_MAX: Final = 2


class BackgroundJobs:
    """The jobs of this process."""

    def __init__(self) -> None:
        self._room = asyncio.Semaphore(AT_ONCE_MAX)
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Callable[[], Awaitable[Any]]) -> None:
        """Begin when there is room."""
        task = asyncio.create_task(self._run(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """End the jobs: a transaction in one is undone."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def settled(self) -> None:
        """Wait until nothing is under way."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self, work: Callable[[], Awaitable[Any]]) -> None:
        async with self._room:
            try:
                await work()
            except Exception as error:  # noqa: BLE001 - Nobody waits for it.
                logger.error("job_failed", error=repr(error))
