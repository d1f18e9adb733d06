"""What a small company notices of a large one, and how evenly fifty equal ones are served."""

from __future__ import annotations

import asyncio
from typing import Final

from bench.figures import Row, judged
from bench.jobs import Tally, jain
from bench.session import SLUG, Session, sound
from bench.stage import Server
from voucherd.ids import State

CONNECTIONS_EACH: Final = 5
SLOWDOWN_MAX: Final = 2.0
JAIN_MIN: Final = 0.99
LARGE_CLIENTS: Final = 2


async def measure(session: Session) -> None:
    """A small company alone, then beside a backlog, then beside a stream of large orders; then fifty at once."""
    plan = session.plan
    (small,) = await session.seeder.buyers(1)
    (large,) = await session.seeder.buyers(1)
    # Sandbox codes never run out, so a stream of large orders needs no million codes on a shelf first.
    (streaming,) = await session.seeder.buyers(1, state=State.SANDBOX)
    stalled = await session.seeder.product("stalled", async_delivery=True)
    await session.fill_shelf()
    # The backlog's own calls are to come back at once, and leave their lines waiting.
    async with session.stage.server(confirm_wait_s=0.5) as server:
        alone = await _small_orders(session, server, small.keys)
        session.add(Row(what="small company alone: confirm", times=alone.second))
        sound(
            await server.load(
                keys=large.keys,
                connections=plan.backlog_orders,
                operation="confirm",
                slug=stalled,
                amount=plan.large_codes,
                ends_as="pending",
                rounds_max=1,
            )
        )
        beside = await _small_orders(session, server, small.keys)
        ratio = beside.second.p50_ms / alone.second.p50_ms
        lines = await session.stage.pool.fetchval("SELECT coalesce(sum(line_to - line_from), 0) FROM waiting")
        session.add(
            Row(
                what=f"· beside another's {lines:,} waiting lines",
                times=beside.second,
                more=f"{ratio:.2f} × alone",
                goal=judged("≤ 2 × alone", ratio <= SLOWDOWN_MAX),
            )
        )
        await _beside_large(session, server, small.keys, streaming.keys, alone)
        await _equal_companies(session, server)


async def _small_orders(session: Session, server: Server, keys: tuple[str, ...]) -> Tally:
    plan = session.plan
    return sound(
        await server.load(
            keys=keys, connections=1, operation="confirm", slug=SLUG, warm_s=plan.warm_s, load_s=plan.load_s
        )
    )


async def _beside_large(
    session: Session, server: Server, small: tuple[str, ...], large: tuple[str, ...], alone: Tally
) -> None:
    """A large answer is written in pieces: between two of them the small one gets its turn."""
    plan = session.plan
    other = server.load(
        keys=large,
        connections=LARGE_CLIENTS,
        operation="confirm",
        slug=SLUG,
        amount=plan.large_codes,
        outcome="finished",
        load_s=plan.load_s + 2 * plan.warm_s,
    )
    tally, streamed = await asyncio.gather(_small_orders(session, server, small), other)
    sound(streamed)
    session.add(
        Row(
            what=f"· beside {LARGE_CLIENTS} streams of {plan.large_codes:,}-code orders",
            times=tally.second,
            more=f"{tally.second.p50_ms / alone.second.p50_ms:.2f} × alone; {streamed.rate:.1f} large orders/s",
        )
    )


async def _equal_companies(session: Session, server: Server) -> None:
    plan = session.plan
    keys = list(session.keys_by_company.values())[: plan.fair_companies]
    await session.fill_shelf()
    tally = sound(
        await server.load(
            keys=keys,
            connections=len(keys) * CONNECTIONS_EACH,
            operation="confirm",
            slug=SLUG,
            warm_s=plan.warm_s,
            load_s=plan.load_s,
        )
    )
    index = jain(tally.rounds_by_key)
    session.add(
        Row(
            what=f"{len(keys)} equal companies, {CONNECTIONS_EACH} conn. each",
            rate=tally.rate,
            times=tally.second,
            tally=tally,
            more=f"Jain {index:.4f}",
            goal=judged("Jain ≥ 0.99", index >= JAIN_MIN),
        )
    )
