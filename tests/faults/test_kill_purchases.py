"""kill -9 of servers and workers while they buy from a supplier that misbehaves: every code is bought once and kept."""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.faults.processes import (
    REAL_SERVER,
    REAL_WORKER,
    SERVICE,
    WALLET_IS_ENDLESS,
    WORKER,
    Client,
    Ledger,
    Process,
    Server,
    environment,
    running,
)
from tests.faults.test_kill import assert_promises_kept, shop_of
from tests.patience import suppliers_are_well, until
from tests.shop import Shop
from tests.suppliers.warehouse import Warehouse, warehouse
from voucherd.catalogue.store import brand_of
from voucherd.db import Pool, transaction
from voucherd.ids import State
from voucherd.suppliers.store import SupplierDraft, add_offer, add_supplier

CLIENTS = 8
COMPANIES = 4
RESOLVE_LIMIT_S = 3.0
TIMEOUT_S = 1
SETTLE_S = 10
"""Much longer than a sale is late or hidden: a machine that stalls must not make a supplier later than that."""
LATE_S = 1.0
PURCHASES_MIN = 20
MISCHIEF_EVERY_S = 0.2
SLUGS = ("soon", "later")
SUPPLIERS = {"north": "9.00", "south": "9.10"}
MISCHIEF = (
    *("hang-before", "hang-after", "reset-before", "reset-after", "error-before", "error-after", "malformed"),
    *("cut-off", "slow", "late-sale", "duplicate", "partial", "too-many", "accepted", "accepted-then-fails"),
    *("yes-then-no", "same-code", "out-of-stock", "funds", "rejected", "honest", "honest"),
)


@dataclass
class Town:
    """A shop of several processes, and the wholesaler that it buys from."""

    shop: Shop
    wholesaler: Warehouse
    servers: list[Server]
    workers: list[Process]
    ledger: Ledger = field(default_factory=Ledger)
    kills: dict[str, int] = field(default_factory=lambda: {"server": 0, "worker": 0})

    async def storm(self, kills: int, seed: int) -> None:
        """Clients at work and a supplier in a bad mood while processes are killed, one after another."""
        stop, calm, chance = asyncio.Event(), asyncio.Event(), random.Random(seed)
        companies = [await self.shop.company(balance=WALLET_IS_ENDLESS) for _ in range(COMPANIES)]
        async with asyncio.TaskGroup() as group:
            group.create_task(self._mischief(calm, random.Random(seed + 1)))
            for at in range(CLIENTS):
                whose = companies[at % COMPANIES]
                client = Client(self.servers, whose, self.ledger, seed + at, SLUGS, operations=(4, 4, 2))
                group.create_task(client.buy_until(stop))
            for _ in range(kills):
                await asyncio.sleep(chance.uniform(0.5, 1.5))
                await self._kill_one(chance, group)
            calm.set()
            await self._until_bought(PURCHASES_MIN)
            stop.set()

    async def _until_bought(self, purchases: int) -> None:
        async def bought() -> bool:
            await suppliers_are_well(self.shop.pool)
            made = await self.shop.pool.fetchval("SELECT count(*) FROM attempt WHERE status = 3")
            return int(made) >= purchases

        await until(bought, "nothing is bought any more")

    async def _kill_one(self, chance: random.Random, group: asyncio.TaskGroup) -> None:
        """Kill one of two that are up, and start it again while the storm goes on."""

        async def up() -> list[Sequence[Process]]:
            return [pair for pair in (self.servers, self.workers) if all(one.is_up for one in pair)]

        pairs = await until(up)
        process = chance.choice(chance.choice(pairs))
        await process.kill()
        self.kills["server" if process in self.servers else "worker"] += 1
        group.create_task(process.start())

    async def _mischief(self, calm: asyncio.Event, chance: random.Random) -> None:
        skus = [f"{supplier}-{slug}" for supplier in SUPPLIERS for slug in SLUGS]
        while not calm.is_set():
            # Later than the time limit of a call, but within the settling time.
            seconds = chance.uniform(0.1, TIMEOUT_S + LATE_S)
            await self.wholesaler.behave(
                chance.choice(skus),
                chance.choice(MISCHIEF),
                seconds=seconds,
                hidden_s=chance.choice([0, 0, LATE_S]),
                times=chance.randint(1, 4),
            )
            await asyncio.sleep(MISCHIEF_EVERY_S)
        await self.wholesaler.be_honest()

    async def settle_down(self) -> None:
        """Wait until every order has ended and nothing is being bought any more."""

        async def quiet() -> bool:
            await suppliers_are_well(self.shop.pool)
            return not await self.shop.pool.fetchval(
                "SELECT EXISTS (SELECT FROM orders WHERE status = 1)"
                " OR EXISTS (SELECT FROM attempt WHERE status < 2)"
            )

        try:
            await until(quiet)
        except AssertionError:
            raise AssertionError(await self._still_open()) from None
        assert await self.shop.pool.fetchval("SELECT count(*) FROM waiting") == 0
        assert await self.shop.pool.fetchval("SELECT sum(held_minor) FROM wallet") == 0
        assert await self.shop.pool.fetchval("SELECT count(*) FROM attempt WHERE status = 2") == 0

    async def _still_open(self) -> list[dict[str, Any]]:
        rows = await self.shop.pool.fetch(
            "SELECT a.status, a.look_ups, a.reason, a.ask_at - now() AS asks_in, a.settles_at - now() AS settles_in,"
            " o.status AS order_status, w.supplier_id, w.ask_at, w.tried, w.rounds FROM orders o"
            " LEFT JOIN attempt_line l ON l.order_id = o.id LEFT JOIN attempt a ON a.id = l.attempt_id AND a.status < 2"
            " LEFT JOIN waiting w ON w.order_id = o.id WHERE o.status = 1 OR a.status < 2"
        )
        return [dict(row) for row in rows[:20]]

    async def assert_sales_are_ours(self) -> dict[str, int]:
        """What the wholesaler sold under our references is in the vault or kept apart; the figures of it all."""
        assert await self.wholesaler.repeats() == []
        pool, sealer = self.shop.pool, self.shop.sealer
        brands = {}
        async with pool.acquire() as conn:
            for slug in SLUGS:
                brands[slug] = await brand_of(conn, self.shop.products[slug].product_id)
        vault = await pool.fetch(
            "SELECT c.blind, l.attempt_id FROM code c JOIN lot l ON l.id = c.lot_id WHERE l.attempt_id IS NOT NULL"
        )
        apart = await pool.fetch("SELECT blind, attempt_id FROM quarantined_code")
        kept = {(row["blind"], row["attempt_id"]) for row in vault}
        quarantined = {(row["blind"], row["attempt_id"]) for row in apart}
        rows = await pool.fetch("SELECT id, status, codes FROM attempt")
        status = {row["id"]: row["status"] for row in rows}
        sold, taken_back = set(), 0
        for reference, sale in (await self.wholesaler.sales()).items():
            assert UUID(reference) in status, "a purchase that nobody wrote down"
            brand_id = brands[sale["sku"].partition("-")[2]]
            ours = {(sealer.blind(brand_id, code), UUID(reference)) for code in sale["codes"]}
            if sale["status"] == "done":
                assert ours <= kept | quarantined, f"codes of {reference} are lost"
                assert not ours or status[UUID(reference)] == 3
            else:
                taken_back += len(ours - kept - quarantined)
            sold |= ours
        assert kept <= sold, "codes that nobody sold"
        return {
            "purchases": len(rows),
            "bought": sum(row["status"] == 3 for row in rows),
            "codes": len(kept),
            "quarantined": len(quarantined),
            "takenBack": taken_back,
        }

    async def assert_nothing_was_bought_twice(self) -> None:
        """A purchase whose lines all got codes elsewhere would have been one too many."""
        twice = await self.shop.pool.fetch(
            """
            SELECT a.id, a.count, a.codes, a.spare FROM attempt a
            WHERE a.status = 3 AND NOT a.urgent AND a.spare > greatest(a.codes - a.count, 0)
              AND NOT EXISTS (SELECT FROM attempt_line l JOIN orders o ON o.id = l.order_id
                              WHERE l.attempt_id = a.id AND o.lines_cancelled > 0)
            """
        )
        assert twice == []


@asynccontextmanager
async def town(pool: Pool, database_url: str, folder: Path, *, real: bool) -> AsyncIterator[Town]:
    """Two servers, two workers, two suppliers (both the same wholesaler), two products."""
    limits = {"resolve_limit_s": RESOLVE_LIMIT_S, "confirm_wait_s": 1.0}
    surroundings = environment(database_url, folder, **limits) | {"LEASE_MARGIN_S": "1.5"}
    serving, working = (REAL_SERVER, REAL_WORKER) if real else ((*SERVICE, "--no-worker"), WORKER)
    servers = [Server(serving, surroundings, folder / f"server-{at}.log") for at in range(2)]
    workers = [Process(working, surroundings, folder / f"worker-{at}.log") for at in range(2)]
    async with shop_of(pool, folder) as shop, warehouse(folder) as wholesaler:
        for slug in SLUGS:
            await shop.product(slug, price="9.50 EUR", async_delivery=slug == "later")
        for name, price in SUPPLIERS.items():
            draft = SupplierDraft(
                *(name, "http", State.LIVE, wholesaler.description()),
                secret=wholesaler.key,
                timeout_s=TIMEOUT_S,
                settle_s=SETTLE_S,
                quote_age_s=4,
            )
            async with transaction(pool) as tx:
                row = await add_supplier(tx, draft, shop.sealer)
                for slug in SLUGS:
                    await wholesaler.stock(f"{name}-{slug}", price=price, stock=1_000_000)
                    product_id = shop.products[slug].product_id
                    await add_offer(tx, row, product_id, sku=f"{name}-{slug}", face_minor=1_000)
        async with running(*servers, *workers):
            yield Town(shop, wholesaler, servers, workers)


@pytest.mark.parametrize(
    ("kills", "real"),
    [pytest.param(2, False), pytest.param(200, True, marks=pytest.mark.soak)],
    ids=["2 kills", "200 kills"],
)
async def test_whoever_is_killed_while_codes_are_bought_none_is_bought_twice_and_none_is_lost(
    pool: Pool, database_url: str, tmp_path: Path, kills: int, real: bool
) -> None:
    """OP-44 to OP-46, invariants 1 to 4: after the storm every order has ended and every sale is in our books."""
    async with town(pool, database_url, tmp_path, real=real) as here:
        await here.storm(kills, seed=kills)
        await here.settle_down()
        figures = await here.assert_sales_are_ours()
        await here.assert_nothing_was_bought_twice()
        await assert_promises_kept(here.shop, here.servers[0], here.ledger)
        audited = await _audit(database_url, tmp_path) if real else {"ok": True}
        orders = await pool.fetchval("SELECT count(*) FROM orders WHERE status IN (2, 3)")
    assert audited["ok"], audited
    assert figures["bought"] >= kills, figures
    told = (
        figures
        | here.kills
        | dict(here.ledger.answers)
        | {"orders": orders, "slowest": here.ledger.resolve_s}
    )
    sys.stdout.write(f"\n{json.dumps(told)}\n")


async def _audit(database_url: str, folder: Path) -> dict[str, Any]:
    """What `voucherd audit` says."""
    audit = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "voucherd.cli", "audit", "--json"),
        env=environment(database_url, folder),
        stdout=asyncio.subprocess.PIPE,
    )
    said, _ = await audit.communicate()
    return dict(json.loads(said))
