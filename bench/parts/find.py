"""Find and Find all: one order at a time, and a page at the top and far down a long list."""

from __future__ import annotations

from typing import Final

from bench.figures import Row, judged
from bench.session import SLUG, Session, sound
from voucherd.api.requests import cursor_of

CONNECTIONS: Final = 64
ORDERS: Final = 2_000
PAGE: Final = 50
PAGE_SERVER_US_MAX: Final = 1_000


async def measure(session: Session) -> None:
    """Look at orders that were confirmed, then page through a company's many."""
    async with session.stage.server() as server:
        keys = list(session.keys_by_company.values())
        await session.fill_shelf()
        rounds = -(-ORDERS // CONNECTIONS)
        sound(
            await server.load(
                keys=keys, connections=CONNECTIONS, operation="confirm", slug=SLUG, rounds_max=rounds
            )
        )
        rows = await session.stage.pool.fetch(
            "SELECT id, company_id FROM orders WHERE status = 2 AND lines = 1 AND company_id = ANY($1::int[])"
            " ORDER BY created_at DESC LIMIT $2",
            *(list(session.keys_by_company), ORDERS),
        )
        paths = [f"/api/1.03/order/{session.seeder.ids.trx(row['id'])}" for row in rows]
        owners = [session.keys_by_company[row["company_id"]] for row in rows]
        plan = session.plan
        tally = sound(
            await server.load(
                keys=owners, paths=paths, connections=CONNECTIONS, warm_s=plan.warm_s, load_s=plan.load_s
            )
        )
        session.add(Row(what=f"find, {CONNECTIONS} conn.", rate=tally.rate, times=tally.first, tally=tally))
        key, pages = await _long_list(session, rows[0]["id"])
        for name, path in pages.items():
            tally = sound(
                await server.load(
                    keys=[key], paths=[path], connections=1, warm_s=plan.warm_s, load_s=plan.load_s
                )
            )
            used_us = tally.cpu_us(tally.server_cpu_s)
            goal = judged(f"server < {PAGE_SERVER_US_MAX:,} µs", used_us < PAGE_SERVER_US_MAX)
            session.add(
                Row(what=f"find all, {name}", rate=tally.rate, times=tally.first, tally=tally, goal=goal)
            )


async def _long_list(session: Session, template_id: int) -> tuple[str, dict[str, str]]:
    """A company with many orders: its key, and the paths of pages at both ends of its list."""
    depth = session.plan.deep_orders
    await session.seeder.old_orders(template_id, depth + PAGE)
    company_id = await session.stage.pool.fetchval("SELECT company_id FROM orders WHERE id = $1", template_id)
    deep = await session.stage.pool.fetchrow(
        "SELECT created_at, id FROM orders WHERE company_id = $1 AND (id & 1) = 0"
        " ORDER BY created_at DESC, id DESC OFFSET $2 LIMIT 1",
        *(company_id, depth),
    )
    assert deep is not None
    return session.keys_by_company[company_id], {
        "first page": f"/api/1.03/order?limit={PAGE}&cursor=",
        f"cursor {depth:,} deep": f"/api/1.03/order?limit={PAGE}&cursor={cursor_of(session.seeder.ids, *deep)}",
        f"first page with the total of {depth:,}": f"/api/1.03/order?limit={PAGE}",
    }
