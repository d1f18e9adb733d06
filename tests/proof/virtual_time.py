"""An event loop whose clock is a number: it waits for nothing, and the same program always takes the same course."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

RESOLUTION_S: Final = 1e-6


class Stuck(AssertionError):
    """Everybody waits, and nobody will ever wake them."""


class _Nothing(selectors.SelectSelector):
    """A selector without sockets: where it would wait, the time jumps."""

    now_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Let the time pass."""
        if timeout is None:
            raise Stuck
        self.now_s += max(timeout, 0.0)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time."""

    def __init__(self) -> None:
        self._virtual = _Nothing()
        super().__init__(self._virtual)
        self._clock_resolution = RESOLUTION_S

    def time(self) -> float:
        """Seconds since this loop began."""
        return self._virtual.now_s


def run(work: Coroutine[Any, Any, T]) -> T:
    """What the work gives, in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)
