"""Rate limits: so many requests a minute for each key (OP-27), over all processes together.

The database lends requests of a key's quota, a hundredth of it at first, and they are handed out from memory. Before
the last is used more is borrowed, so hardly any request waits for that; when nothing is left, requests are refused from
memory until there can be something again. The window slides: the last minute counts for the part of it that still lies
within a minute of now, so no burst at the turn gets twice the quota.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from functools import lru_cache
from math import ceil
from time import monotonic
from typing import Final, NamedTuple, Protocol

import structlog

from voucherd.limits.rate_store import Ask, Loan

WINDOW_S: Final = 60
TICK_S: Final = 0.001
"""A client that waits as long as told must be past the boundary, not on it."""

WINDOWS_MAX: Final = 100_000
"""Keys that are counted at once; beyond it the one that was seen first starts anew."""

LOAN_PART: Final = 100
LOAN_PART_MAX: Final = 20
"""A loan is a hundredth of the limit, and up to a twentieth while loans are used up within a second."""

QUICK_S: Final = 1.0
AHEAD_MIN: Final = 4
"""Loans that are smaller are not followed by another before it is needed: it might lie idle and be missed elsewhere."""

ASKS_MAX: Final = 1_000
WAIT_S_MAX: Final = 2.0
"""How long a request waits for a loan; past it this process counts by itself."""

REFUSED_S_MIN: Final = 0.25
ALONE_S: Final = 1.0
"""How long requests are refused before the database is asked again, once this process has counted a whole quota."""

_log = structlog.get_logger(__name__)


class RateWindow:
    """What this process has borrowed of one key's quota."""

    __slots__ = (
        "ahead_at",
        "asked",
        "ends_at",
        "free",
        "key_id",
        "left",
        "lent_at",
        "number",
        "refused_until",
        "size",
        "waiters",
    )

    def __init__(self, key_id: int) -> None:
        self.key_id = key_id
        self.number = -1
        self.left = 0
        self.free = 0
        self.ends_at = 0.0
        self.refused_until = 0.0
        self.ahead_at = -1
        self.size = 0
        self.lent_at = 0.0
        self.asked = False
        self.waiters: deque[tuple[Limited, asyncio.Future[Taken]]] = deque()


class Limited(Protocol):
    """A caller with a rate limit."""

    @property
    def window(self) -> RateWindow:
        """What this process has borrowed for the caller's key."""

    @property
    def rate_limit(self) -> int:
        """Requests a minute."""


class Taken(NamedTuple):
    """Whether the request may pass, how many more may, and the seconds until that is worth asking again."""

    allowed: bool
    remaining: int
    reset_s: int


class RateLimiter:
    """Counts requests by key. Stop it after use."""

    def __init__(
        self, lend: Callable[[Sequence[Ask]], Awaitable[list[Loan]]], clock: Callable[[], float] = monotonic
    ) -> None:
        self._lend = lend
        self._clock = clock
        self._windows: dict[int, RateWindow] = {}
        self._wanted: dict[int, tuple[RateWindow, int]] = {}
        self._borrowing: asyncio.Task[None] | None = None

    def window(self, key_id: int) -> RateWindow:
        """The key's counts. They outlive a look-up of the key, so a changed key keeps its past."""
        window = self._windows.get(key_id)
        if window is None:
            if len(self._windows) >= WINDOWS_MAX:
                del self._windows[next(iter(self._windows))]
            window = self._windows[key_id] = RateWindow(key_id)
        return window

    def take(self, caller: Limited) -> Taken | None:
        """Count one request of this caller; None if that takes another loan: then `borrow`."""
        window = caller.window
        now = self._clock()
        left = window.left
        if left and now < window.ends_at:
            window.left = left = left - 1
            if left == window.ahead_at:
                self._ask(window, caller.rate_limit)
            return Taken(True, window.free + left, ceil(window.ends_at - now))
        if now < window.refused_until:
            return Taken(False, 0, ceil(window.refused_until - now))
        return None

    async def borrow(self, caller: Limited) -> Taken:
        """Count one request when more was borrowed; without the database in time, by ourselves."""
        waiter: asyncio.Future[Taken] = asyncio.get_running_loop().create_future()
        caller.window.waiters.append((caller, waiter))
        self._ask(caller.window, caller.rate_limit)
        return await waiter

    async def stop(self) -> None:
        """End the borrowing; calls that still wait for a loan are counted here."""
        if self._borrowing is not None:
            self._borrowing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._borrowing

    def _ask(self, window: RateWindow, limit: int) -> None:
        """Borrow more soon: one question for all who wait for the answer."""
        if window.asked:
            return
        window.asked = True
        self._wanted[window.key_id] = window, limit
        if self._borrowing is None or self._borrowing.done():
            # Its lines in the log are not those of the request that happens to be the first.
            self._borrowing = asyncio.get_running_loop().create_task(self._borrow_all(), context=Context())

    async def _borrow_all(self) -> None:
        """Borrow for all keys that ask; while one question is under way the next one gathers."""
        while self._wanted:
            keys = sorted(self._wanted)[:ASKS_MAX]
            wanted = {key_id: self._wanted.pop(key_id) for key_id in keys}
            asked_at = self._clock()
            loans: list[Loan] = []
            try:
                async with asyncio.timeout(WAIT_S_MAX):
                    loans = await self._lend([self._worded(*wanted[key_id], asked_at) for key_id in keys])
            except Exception as error:  # noqa: BLE001 - Whatever befalls the database, limits must outlive it.
                _log.warning("rate_limits_counted_alone", keys=len(keys), error=repr(error))
            finally:
                for loan in loans:
                    window, limit = wanted.pop(loan.key_id)
                    self._hold(window, limit, loan, asked_at)
                    self._serve(window, limit)
                for window, limit in wanted.values():
                    self._count_alone(window, limit)
                    self._serve(window, limit)

    def _serve(self, window: RateWindow, limit: int) -> None:
        """Answer those who waited, the first first; if it is not enough for all, more is asked for."""
        window.asked = False
        waiters = window.waiters
        while waiters:
            caller, waiter = waiters[0]
            if not waiter.done():
                taken = self.take(caller)
                if taken is None:
                    self._ask(window, limit)
                    return
                waiter.set_result(taken)
            waiters.popleft()

    def _worded(self, window: RateWindow, limit: int, now: float) -> Ask:
        """How much to ask for; what a minute that is over left unused goes back."""
        least, most = max(1, limit // LOAN_PART), limit // LOAN_PART_MAX
        quick = now - window.lent_at < QUICK_S
        window.size = max(least, min(most, window.size * 2 if quick else least))
        want = max(window.size, len(window.waiters))
        if now < window.ends_at:
            return Ask(window.key_id, limit, want)
        back, window.left = window.left, 0
        return Ask(window.key_id, limit, want, back, window.number)

    def _hold(self, window: RateWindow, limit: int, loan: Loan, asked_at: float) -> None:
        """Take note of a loan. The minute ends no later than counted from the question, whatever the answer took."""
        now = self._clock()
        if loan.number != window.number:
            window.left = 0
            window.number = loan.number
        left_s = loan.left_ms / 1000
        window.ends_at = asked_at + left_s
        window.lent_at = now
        window.left += loan.given
        window.free = max(0, limit - loan.lent - int(loan.before * min(left_s, WINDOW_S) / WINDOW_S))
        window.ahead_at = loan.given // 2 if loan.given >= AHEAD_MIN else -1
        if not loan.given:
            window.refused_until = now + max(REFUSED_S_MIN, _wait_s(loan, limit, left_s))

    def _count_alone(self, window: RateWindow, limit: int) -> None:
        """Lend ourselves the whole quota, once a minute: the database is away, and answers hardly anything anyway."""
        now = self._clock()
        if window.number >= 0 or now >= window.ends_at:
            window.number = -1
            window.left = limit
            window.ends_at = now + WINDOW_S
        window.free = 0
        # Asked for again before long: the database may be back.
        window.ahead_at = max(0, window.left - max(1, limit // LOAN_PART))
        if not window.left:
            window.refused_until = now + ALONE_S


def _wait_s(loan: Loan, limit: int, left_s: float) -> float:
    """Seconds until one more request fits."""
    if loan.lent < limit and loan.before:
        # The last minute's share must shrink below what this one leaves free.
        return left_s - WINDOW_S * (limit - loan.lent) / loan.before + TICK_S
    return left_s + WINDOW_S * max(0.0, 1 - limit / max(1, loan.lent)) + TICK_S


@lru_cache(maxsize=1024)
def policy(limit: int) -> bytes:
    """The value of RateLimit-Policy: the quota and its window."""
    return b'"default";q=%d;w=%d' % (limit, WINDOW_S)


def standing(taken: Taken) -> bytes:
    """The value of RateLimit: what remains of the quota, and the seconds until it is restored."""
    return b'"default";r=%d;t=%d' % (taken.remaining, taken.reset_s)
