"""One run: what the parts share, and the rows they add."""

from __future__ import annotations

import sys
from typing import Final

from bench.figures import Row
from bench.jobs import Tally
from bench.plan import Plan
from bench.seed import Seeder
from bench.stage import Stage

SLUG: Final = "plain"
RATE_MAX: Final = 15_000
"""Lifecycles a second that no measurement exceeds: so much stock is there before each."""
HISTORY_CLIENTS: Final = 64
PATIENCE_S: Final = 120.0


class LoadFailed(Exception):
    """Calls failed under load, so their figures mean nothing."""


class Session:
    """The stage, the plan and the rows so far."""

    def __init__(self, stage: Stage, seeder: Seeder, plan: Plan, connections: tuple[int, ...]) -> None:
        self.stage = stage
        self.seeder = seeder
        self.plan = plan
        self.connections = connections
        self.rows: list[Row] = []
        self.keys_by_company: dict[int, str] = {}
        self.hot_keys: tuple[str, ...] = ()

    async def prepare(self) -> None:
        """What most parts need: many wallets, a hot one, and a product on a full shelf."""
        buyers = await self.seeder.buyers(self.plan.wallets)
        self.keys_by_company = {buyer.company_id: buyer.keys[0] for buyer in buyers}
        # One key may not ask more than a million times a minute, and one wallet is to be hotter than that.
        (hot,) = await self.seeder.buyers(1, keys=self.plan.hot_keys)
        self.hot_keys = hot.keys
        await self.seeder.product(SLUG, stock=self.plan.stock)
        await self._grow_old()

    @property
    def wallets(self) -> dict[str, list[str]]:
        """The two ways to spread requests over wallets, and the keys of each."""
        return {
            f"{self.plan.wallets:,} wallets": list(self.keys_by_company.values()),
            "one hot wallet": list(self.hot_keys),
        }

    async def _grow_old(self) -> None:
        """Some orders of the past, and statistics about them: on empty tables every plan is another one."""
        async with self.stage.server() as server:
            rounds = -(-self.plan.history // HISTORY_CLIENTS)
            keys = list(self.keys_by_company.values())
            how = {"operation": "confirm", "slug": SLUG, "rounds_max": rounds}
            sound(await server.load(keys=keys, connections=HISTORY_CLIENTS, patience_s=PATIENCE_S, **how))
        await self.stage.pool.execute("VACUUM ANALYZE")

    async def fill_shelf(self) -> None:
        """Enough stock for the next measurement, so that none ends on an empty shelf."""
        if await self.seeder.left(SLUG) < RATE_MAX * (self.plan.load_s + self.plan.warm_s):
            await self.seeder.stock(SLUG, self.plan.stock)

    def rate(self, what: str) -> float:
        """The rate of a row that is there already; zero where it was not measured."""
        return next((row.rate or 0.0 for row in self.rows if row.what == what), 0.0)

    def add(self, row: Row) -> None:
        """Add a row, and say that there is news."""
        self.rows.append(row)
        times = row.times
        news = [row.what]
        if row.rate is not None:
            news.append(f"{row.rate:,.0f}/s")
        if times is not None:
            news.append(f"p50 {times.p50_ms:.2f} ms, p99 {times.p99_ms:.2f} ms")
        sys.stderr.write(" · ".join([*news, row.more] if row.more else news) + "\n")


def sound(tally: Tally) -> Tally:
    """The tally, unless calls failed."""
    if tally.failures or not tally.rounds:
        raise LoadFailed(f"{tally.failures} of {tally.first.calls + tally.second.calls}: {tally.failure}")
    return tally
