"""An order of ten thousand codes: how long, how many bytes, how many rows, how much memory."""

from __future__ import annotations

from typing import Final

from bench import machine
from bench.figures import Row, judged
from bench.session import Session, sound

TABLES: Final = ("orders", "order_item", "outcome", "entry", "event", "waiting")
CONFIRM_MS_MAX: Final = 1_000


async def measure(session: Session) -> None:
    """Create and confirm it a few times, one after another."""
    plan = session.plan
    slug = await session.seeder.product("large", stock=plan.large_codes * plan.large_orders)
    async with session.stage.server() as server:
        rows_before = await _rows(session)
        memory_before = machine.rss_mb(server.pid)
        tally = sound(
            await server.load(
                keys=session.hot_keys,
                connections=1,
                operation="confirm",
                slug=slug,
                amount=plan.large_codes,
                rounds_max=plan.large_orders,
            )
        )
        written = (await _rows(session) - rows_before) / plan.large_orders
        grown = machine.peak_rss_mb(server.pid) - memory_before
    what = f"{plan.large_codes:,} codes in one order"
    session.add(Row(what=f"{what}: create", times=tally.first, more=f"{written:g} rows in all"))
    session.add(
        Row(
            what=f"{what}: confirm",
            times=tally.second,
            more=f"answer {tally.bytes_max / 1e6:.1f} MB, server +{grown:.0f} MB",
            goal=judged("< 1 s with the answer", tally.second.p50_ms < CONFIRM_MS_MAX),
        )
    )


async def _rows(session: Session) -> int:
    """All rows of the tables that an order writes to."""
    counts = " + ".join(f"(SELECT count(*) FROM {table})" for table in TABLES)  # noqa: S608 - Constants.
    return int(await session.stage.pool.fetchval(f"SELECT {counts}"))
