"""Rate limits: so many requests a minute for each key (OP-27), counted in this process.

A sliding window: the last window counts for the part of it that still lies within a minute of now. So no
burst at the turn of a minute gets twice the quota, and what is kept of a key is two counts, which processes
can add up once they share them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import ceil
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from voucherd.access.callers import Caller

WINDOW_S: Final = 60
TICK_S: Final = 0.001
"""Whoever waits as long as told must be past the boundary, not on it."""

WINDOWS_MAX: Final = 100_000
"""Keys that are counted at once; beyond it the one that was seen first starts anew."""


class Window:
    """The requests of one key: those of this window, and how many there were in the last one."""

    __slots__ = ("before", "count", "ends_at")

    def __init__(self) -> None:
        self.before = 0
        self.count = 0
        self.ends_at = 0.0


class Taken(NamedTuple):
    """Whether the request may pass, how many more may, and the seconds until that is worth asking again."""

    allowed: bool
    remaining: int
    reset_s: int


class RateLimiter:
    """Counts requests by key."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._windows: dict[int, Window] = {}

    def window(self, key_id: int) -> Window:
        """The key's counts. They outlive a look-up of the key, so a changed key keeps its past."""
        window = self._windows.get(key_id)
        if window is None:
            if len(self._windows) >= WINDOWS_MAX:
                del self._windows[next(iter(self._windows))]
            window = self._windows[key_id] = Window()
        return window

    def take(self, caller: Caller) -> Taken:
        """Count one request of this caller; a refused one is not counted."""
        now = self._clock()
        window = caller.window
        left_s = window.ends_at - now
        if left_s <= 0.0:
            left_s = _turn(window, now)
        limit = caller.rate_limit
        used = window.count + 1
        if window.before:
            # Rounded down, or a limit of one a minute would let one pass every other minute.
            used += int(window.before * left_s / WINDOW_S)
        if used <= limit:
            window.count += 1
            return Taken(True, limit - used, ceil(left_s))
        return Taken(False, 0, _wait_s(window, limit, left_s))


def _turn(window: Window, now: float) -> float:
    """Begin the window that now lies in; what is left of it."""
    if now < window.ends_at + WINDOW_S:
        window.before = window.count
        window.ends_at += WINDOW_S
    else:
        # Idle for a whole window: the next one begins with this request, not at some moment in the past.
        window.before = 0
        window.ends_at = now + WINDOW_S
    window.count = 0
    return window.ends_at - now


def _wait_s(window: Window, limit: int, left_s: float) -> int:
    """Whole seconds, at least one, until one more request fits."""
    if window.count < limit:
        # The last window's share must shrink below what this one leaves free.
        wait_s = left_s - WINDOW_S * (limit - window.count) / window.before
    else:
        wait_s = left_s + WINDOW_S * (1 - limit / window.count)
    return max(1, ceil(wait_s + TICK_S))


@lru_cache(maxsize=1024)
def policy(limit: int) -> bytes:
    """The value of RateLimit-Policy: the quota and its window."""
    return b'"default";q=%d;w=%d' % (limit, WINDOW_S)


def standing(taken: Taken) -> bytes:
    """The value of RateLimit: what remains of the quota, and the seconds until it is restored."""
    return b'"default";r=%d;t=%d' % (taken.remaining, taken.reset_s)
