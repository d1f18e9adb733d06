"""Statements of a wallet with ten million movements: a page at both ends, each filter, and a file of many."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from bench import machine
from bench.figures import Row, judged
from bench.session import Session, sound
from voucherd.api.query import write_place

PAGE: Final = 50
TIMES_THE_FIRST_MAX: Final = 3.0
FILE_MB_MAX: Final = 20


async def measure(session: Session) -> None:
    """Page through a long statement, then write a part of it as CSV."""
    plan = session.plan
    (buyer,) = await session.seeder.buyers(1)
    await session.seeder.old_movements(buyer.company_id, plan.movements)
    pages = await _pages(session, buyer.company_id)
    async with session.stage.server() as server:
        first_ms = 0.0
        for name, path in pages.items():
            how = {"paths": [path], "warm_s": plan.warm_s, "load_s": plan.load_s}
            tally = sound(await server.load(keys=buyer.keys, connections=1, **how))
            first_ms = first_ms or tally.first.p50_ms
            ratio = tally.first.p50_ms / first_ms
            session.add(
                Row(
                    what=f"statement of {plan.movements:,}: {name}",
                    rate=tally.rate,
                    times=tally.first,
                    tally=tally,
                    more=f"{ratio:.2f} × the first page",
                    goal=judged(f"≤ {TIMES_THE_FIRST_MAX:g} × the first", ratio <= TIMES_THE_FIRST_MAX),
                )
            )
    await _file(session, buyer.company_id, buyer.keys[0])


async def _pages(session: Session, company_id: int) -> dict[str, str]:
    """The paths of pages that are far from one another, or that look for something."""
    pool, movements = session.stage.pool, session.plan.movements
    middle = await pool.fetchrow(
        "SELECT e.at, e.order_id FROM entry e JOIN wallet w ON w.id = e.wallet_id"
        " WHERE w.company_id = $1 AND e.seq = $2",
        *(company_id, movements // 2 + 500),
    )
    assert middle is not None
    start = f"/api/1.03/account/EUR/entry?limit={PAGE}"
    moment = quote(middle["at"].isoformat())
    return {
        "first page": start,
        "last page": f"{start}&cursor={write_place(PAGE + 1)}",
        "until a moment in the middle": f"{start}&dateTo={moment}",
        "top-ups, one in a thousand": f"{start}&kind=top-up",
        "one order": f"{start}&trx={session.seeder.ids.trx(middle['order_id'])}",
    }


async def _file(session: Session, company_id: int, key: str) -> None:
    """A part of the statement as CSV, to the last byte."""
    plan = session.plan
    since = await session.stage.pool.fetchval(
        "SELECT e.at FROM entry e JOIN wallet w ON w.id = e.wallet_id"
        " WHERE w.company_id = $1 AND e.seq = w.seq - $2 + 1",
        *(company_id, plan.movements_in_file),
    )
    path = f"/api/1.03/account/EUR/entry?format=csv&dateFrom={quote(since.isoformat())}"
    async with session.stage.server() as server:
        before_mb = machine.rss_mb(server.pid)
        tally = sound(
            await server.load(keys=[key], paths=[path], connections=1, rounds_max=1, patience_s=120)
        )
        grown_mb = machine.peak_rss_mb(server.pid) - before_mb
    rate = plan.movements_in_file / (tally.first.p50_ms / 1_000)
    session.add(
        Row(
            what=f"statement as CSV, {plan.movements_in_file:,} movements",
            rate=rate,
            times=tally.first,
            more=f"{tally.bytes_max / 1e6:.1f} MB, server +{grown_mb:.0f} MB",
            goal=judged(f"< {FILE_MB_MAX} MB more memory", grown_mb < FILE_MB_MAX),
        )
    )
