"""Rate limits against a real database: processes share a key's quota (OP-27)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from voucherd.companies.model import Company
from voucherd.db import Pool
from voucherd.ids import State
from voucherd.keys.callers import Caller
from voucherd.keys.key_text import SCOPES_DEFAULT
from voucherd.limits import rate_limits, rate_store
from voucherd.limits.rate_limits import WINDOW_S, RateLimiter, Taken
from voucherd.limits.rate_store import Ask, Lender, Loan

COMPANY = Company(1, "Acme", "NL", None, active=True, verified=True, expose_costs=True)


class Time:
    """One clock for the database and all processes, which stands until it is moved."""

    def __init__(self) -> None:
        self.now_s = 60_000_000.0

    def __call__(self) -> float:
        return self.now_s

    def moment(self) -> datetime:
        """The same for the database."""
        return datetime.fromtimestamp(self.now_s, UTC)


class Fleet:
    """Several processes, each with its own limiter."""

    def __init__(self, pool: Pool, size: int, time: Time | None = None) -> None:
        self.time = time or Time()
        self.asks = 0
        self._lender = Lender(pool, self.time.moment)
        self.limiters = [RateLimiter(self._lend, self.time) for _ in range(size)]

    async def _lend(self, asks: Sequence[Ask]) -> list[Loan]:
        self.asks += len(asks)
        return await self._lender.lend(asks)

    async def take(self, at: int, key_id: int = 1, rate_limit: int = 5) -> Taken:
        """One request that this process gets."""
        limiter = self.limiters[at]
        who = Caller(
            key_id=key_id,
            company_id=1,
            state=State.LIVE,
            scopes=SCOPES_DEFAULT,
            company=COMPANY,
            rate_limit=rate_limit,
            window=limiter.window(key_id),
        )
        return limiter.take(who) or await limiter.borrow(who)

    async def settle(self) -> None:
        """Let every process get what it has asked for ahead."""
        for limiter in self.limiters:
            if limiter._borrowing is not None:
                await limiter._borrowing


async def test_the_request_after_the_last_of_the_quota_is_refused(pool: Pool) -> None:
    """OP-27: so many requests a minute for each key, over all processes; every key has its own."""
    fleet = Fleet(pool, 3)
    taken = [await fleet.take(at % 3) for at in range(6)]

    assert [one.allowed for one in taken] == [True] * 5 + [False]
    assert [one.remaining for one in taken] == [4, 3, 2, 1, 0, 0]
    assert 1 <= taken[0].reset_s <= taken[5].reset_s <= WINDOW_S + 1
    assert (await fleet.take(0, key_id=2)).allowed


async def test_whoever_waits_as_long_as_told_is_let_in(pool: Pool) -> None:
    """OP-27: `Retry-After` is a promise."""
    fleet = Fleet(pool, 1)
    for rate_limit in (1, 2, 5, 40):
        for step in range(5 * rate_limit):
            taken = await fleet.take(0, rate_limit, rate_limit)
            if not taken.allowed:
                fleet.time.now_s += taken.reset_s
                assert (await fleet.take(0, rate_limit, rate_limit)).allowed
            fleet.time.now_s += (step % 7) / 100


async def test_no_burst_at_the_turn_of_a_minute_gets_twice_the_quota(pool: Pool) -> None:
    """OP-27: the window slides over all processes: no six seconds have more than the quota and what they restore."""
    chance = random.Random(27)
    fleet = Fleet(pool, 4)
    for key_id in range(1, 31):
        rate_limit = chance.randint(1, 20)
        passed = []
        for _ in range(60):
            fleet.time.now_s += chance.choice([0.0, 0.0, 0.01, 0.5, 5.0, 29.9, 61.0])
            if (await fleet.take(chance.randrange(4), key_id, rate_limit)).allowed:
                passed.append(fleet.time.now_s)
        for moment in passed:
            within = [other for other in passed if moment <= other < moment + WINDOW_S / 10]
            assert len(within) <= rate_limit * 1.1 + 1
            minute = [other for other in passed if moment <= other < moment + WINDOW_S]
            assert len(minute) <= 2 * rate_limit


async def test_eight_processes_at_once_give_the_quota_out_once_and_nearly_all_of_it(pool: Pool) -> None:
    """OP-27: the sum never exceeds the limit, and what idle processes hold is a small part of it."""
    fleet = Fleet(pool, 8)
    for rate_limit in (7, 600, 5_000):
        fleet.asks = 0
        sent = rate_limit * 2
        taken = await asyncio.gather(*[fleet.take(at % 8, rate_limit, rate_limit) for at in range(sent)])
        passed = sum(one.allowed for one in taken)
        # Whoever holds something still gives it out.
        passed += sum([(await fleet.take(at % 8, rate_limit, rate_limit)).allowed for at in range(sent)])

        assert 0.9 * rate_limit <= passed <= rate_limit
        lent = await pool.fetchval("SELECT lent FROM rate_window WHERE key_id = $1", rate_limit)
        assert passed <= lent <= rate_limit
        assert fleet.asks <= 16 * rate_limit**0.5 + 40


async def test_a_busy_key_costs_a_write_for_many_requests_and_refusals_cost_none(pool: Pool) -> None:
    """OP-27: no write for a request; once the quota is gone, refusals are from memory."""
    fleet = Fleet(pool, 1)
    for _ in range(600):
        fleet.time.now_s += 0.001
        assert (await fleet.take(0, rate_limit=6_000)).allowed
    assert fleet.asks <= 10
    while (await fleet.take(0, rate_limit=6_000)).allowed:
        pass
    fleet.asks = 0

    refused = [await fleet.take(0, rate_limit=6_000) for _ in range(1_000)]

    assert not any(one.allowed for one in refused)
    assert fleet.asks == 0


async def test_what_a_minute_left_unused_does_not_count_in_the_next(pool: Pool) -> None:
    """OP-27: a loan that lay idle goes back, so a customer below his limit is never refused for it."""
    fleet = Fleet(pool, 2)
    for minute in range(5):
        for at in range(300):
            taken = await fleet.take(at % 2, rate_limit=320)
            assert taken.allowed, (minute, at)
            fleet.time.now_s += WINDOW_S / 300

    burst = [await fleet.take(at % 2, key_id=2, rate_limit=600) for at in range(40)]
    await fleet.settle()
    assert all(one.allowed for one in burst)
    assert await pool.fetchval("SELECT lent FROM rate_window WHERE key_id = 2") > 40
    fleet.time.now_s += WINDOW_S
    for at in range(2):
        await fleet.take(at, key_id=2, rate_limit=600)
    assert await pool.fetchval("SELECT before FROM rate_window WHERE key_id = 2") == 40


async def test_a_clock_that_is_set_back_lends_no_minute_twice(pool: Pool) -> None:
    """OP-27: the database's clock may be corrected."""
    fleet = Fleet(pool, 2)
    for _ in range(5):
        await fleet.take(0)
    fleet.time.now_s -= 90.0

    assert not (await fleet.take(1)).allowed


async def test_without_the_database_each_process_counts_by_itself(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-27: limits still hold in a process that lost the database, and are shared again when it is back."""
    fleet = Fleet(pool, 2)
    lend = fleet.limiters[0]._lend

    async def away(_asks: Sequence[Ask]) -> list[Loan]:
        raise OSError("no route")

    for limiter in fleet.limiters:
        monkeypatch.setattr(limiter, "_lend", away)
    taken = [await fleet.take(at % 2) for at in range(14)]
    assert [one.allowed for one in taken] == [True] * 10 + [False] * 4
    for limiter in fleet.limiters:
        monkeypatch.setattr(limiter, "_lend", lend)
    fleet.time.now_s += 61.0
    taken = [await fleet.take(at % 2) for at in range(14)]
    assert [one.allowed for one in taken] == [True] * 5 + [False] * 9


async def test_a_request_waits_for_a_slow_database_no_longer_than_it_may(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-27: a lock on the counts holds nobody up for long."""
    monkeypatch.setattr(rate_limits, "WAIT_S_MAX", 0.2)
    fleet = Fleet(pool, 1)
    async with pool.acquire() as conn, conn.transaction():
        await conn.execute("LOCK TABLE rate_window")
        began = asyncio.get_running_loop().time()
        assert (await fleet.take(0)).allowed
        assert asyncio.get_running_loop().time() - began < 2.0
    await fleet.limiters[0].stop()


async def test_counts_of_keys_that_are_not_used_are_swept(pool: Pool) -> None:
    """OP-27: a row for each key of the last minutes, not of all times."""
    lender = Lender(pool)
    await lender.lend([Ask(1, 5, 1), Ask(2, 5, 1)])
    await pool.execute("UPDATE rate_window SET number = number - 5 WHERE key_id = 2")

    assert await rate_store.sweep(pool) == 1
    assert await pool.fetchval("SELECT array_agg(key_id) FROM rate_window") == [1]
    later = Lender(pool, lambda: datetime.now(UTC) + timedelta(minutes=2))
    assert [(one.lent, one.before) for one in await later.lend([Ask(1, 5, 1)])] == [(1, 0)]
