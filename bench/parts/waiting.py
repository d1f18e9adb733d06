"""Thousands of calls that wait for slow orders: what they cost in memory and in database connections."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from bench import machine
from bench.figures import Row, judged
from bench.session import SLUG, Session, sound
from voucherd.ids import State

SAMPLE_EVERY_S: Final = 0.05
PARKED_S_MAX: Final = 60.0
MEMORY_MB_MAX: Final = 300
MARGIN_S: Final = 15.0


async def measure(session: Session) -> None:
    """Confirm slow sandbox orders from as many connections, and look at the server while all of them wait."""
    plan = session.plan
    buyers = await session.seeder.buyers(min(100, plan.waiting_calls), state=State.SANDBOX)
    async with session.stage.server(confirm_wait_s=plan.waiting_slow_s + MARGIN_S) as server:
        before_mb = machine.rss_mb(server.pid)
        load = asyncio.create_task(
            server.load(
                keys=[buyer.keys[0] for buyer in buyers],
                connections=plan.waiting_calls,
                operation="confirm",
                slug=SLUG,
                outcome=f"slow:{plan.waiting_slow_s}",
                rounds_max=1,
                together=True,
                patience_s=plan.waiting_slow_s + MARGIN_S + PARKED_S_MAX,
            )
        )
        try:
            waiting_mb, busy = await _while_all_wait(session, server.pid, load)
            tally = sound(await load)
        finally:
            load.cancel()
        after_mb = machine.rss_mb(server.pid)
    held = sum(count > 0 for count in busy) / len(busy)
    session.add(
        Row(
            what=f"{plan.waiting_calls:,} calls waiting {plan.waiting_slow_s} s",
            more=f"server {before_mb:.0f} → {waiting_mb:.0f} MB, after {after_mb:.0f};"
            f" the last answer after {tally.second.max_ms / 1000:.1f} s",
            goal=judged("< 300 MB", waiting_mb < MEMORY_MB_MAX),
        )
    )
    session.add(
        Row(
            what="· database connections busy meanwhile",
            more=f"mean {sum(busy) / len(busy):.2f}, most {max(busy)}, any in {held:.0%} of {len(busy)} looks",
            goal=judged("none held", min(busy) == 0 and held < 0.5),
        )
    )


async def _while_all_wait(
    session: Session, server_pid: int, load: asyncio.Task[object]
) -> tuple[float, list[int]]:
    """The server's memory and its busy connections, look by look, from when all calls wait until one ends."""
    pool, calls = session.stage.pool, session.plan.waiting_calls
    deadline = time.monotonic() + PARKED_S_MAX
    while await pool.fetchval("SELECT count(*) FROM waiting WHERE state = 1") < calls:
        if load.done() or time.monotonic() > deadline:
            raise TimeoutError("the calls did not all wait at the same time")
        await asyncio.sleep(SAMPLE_EVERY_S)
    memory_mb = 0.0
    busy: list[int] = []
    while not load.done() and time.monotonic() < deadline:
        memory_mb = max(memory_mb, machine.rss_mb(server_pid))
        row = await pool.fetchrow(
            "SELECT (SELECT count(*) FROM pg_stat_activity WHERE application_name = 'voucherd'"
            " AND state <> 'idle' AND pid <> pg_backend_pid() AND datname = current_database()),"
            " EXISTS (SELECT FROM waiting WHERE state = 1 AND not_before <= now())"
        )
        assert row is not None
        if row[1] or not await pool.fetchval("SELECT EXISTS (SELECT FROM waiting WHERE state = 1)"):
            break
        busy.append(row[0])
        await asyncio.sleep(SAMPLE_EVERY_S)
    return memory_mb, busy or [0]
