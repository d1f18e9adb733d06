"""What is dear to find out and may be a little old: asked by many at once, it is found out once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Final, TypeVar

from msgspec import Struct

AGE_S_MAX: Final = 30.0
KEPT_MAX: Final = 64

T = TypeVar("T")


class _Found(Struct):
    """One answer, or the lock behind which it is being found."""

    lock: asyncio.Lock
    at: float = -AGE_S_MAX
    answer: Any = None


class ReportCache:
    """Answers by what was asked, none older than half a minute."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._found: dict[Hashable, _Found] = {}

    async def get(self, asked: Hashable, find: Callable[[], Awaitable[T]]) -> T:
        """The answer, found out now unless it is young enough; a failure is not kept."""
        found = self._found.setdefault(asked, _Found(asyncio.Lock()))
        try:
            async with found.lock:
                if self._now() - found.at >= AGE_S_MAX:
                    found.answer = await find()
                    found.at = self._now()
                answer: T = found.answer
        finally:
            self._forget()
        return answer

    def _forget(self) -> None:
        """Drop reports that are too old, and the oldest beyond the number that is kept."""
        oldest = self._now() - AGE_S_MAX
        idle = {asked: one.at for asked, one in self._found.items() if not one.lock.locked()}
        surplus = len(self._found) - KEPT_MAX
        for at, (asked, age) in enumerate(sorted(idle.items(), key=lambda pair: pair[1])):
            if age <= oldest or at < surplus:
                del self._found[asked]
