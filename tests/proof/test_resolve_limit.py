"""Resolve is answered within its limit, every single time, by suppliers that answer shortly before and after it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from tests.faults.processes import SERVICE, WALLET_IS_ENDLESS, WORKER, Process, Server, environment, running
from tests.faults.test_kill import shop_of
from tests.patience import suppliers_are_well, until
from tests.proof import buyers
from tests.proof.buyers import Caller
from tests.shop import Company, Shop
from tests.suppliers.warehouse import warehouse
from voucherd.db import Pool, transaction
from voucherd.ids import State
from voucherd.suppliers.store import SupplierDraft, add_offer, add_supplier

STEPS: Final = 11
"""Products, each from a supplier that takes a little longer than the one before."""
RESOLVES_SOAK: Final = int(os.environ.get("VOUCHERD_SOAK_RESOLVES", "10000"))
PROBE_EVERY_S: Final = 0.02


@dataclass(frozen=True)
class Pace:
    """How long things take."""

    limit_s: float
    first_s: float
    last_s: float
    at_once: int

    def seconds(self, step: int) -> float:
        """When the supplier of this product answers."""
        return self.first_s + (self.last_s - self.first_s) * step / (STEPS - 1)


SHORT: Final = Pace(limit_s=4.0, first_s=0.5, last_s=5.5, at_once=22)
LONG: Final = Pace(limit_s=30.0, first_s=25.0, last_s=35.0, at_once=440)


@dataclass
class Times:
    """How long the answers took, and what they were."""

    took_s: list[float] = field(default_factory=list)
    ended: dict[str, int] = field(default_factory=dict)
    probe_s: float = 0.0
    """The longest that the machine took for a call that does nothing."""

    def note(self, took_s: float, ended: str) -> None:
        """Remember an answer."""
        self.took_s.append(took_s)
        self.ended[ended] = self.ended.get(ended, 0) + 1


@asynccontextmanager
async def open_market(
    pool: Pool, database_url: str, folder: Path, pace: Pace
) -> AsyncIterator[tuple[Shop, list[Server]]]:
    """Two servers, two workers, and a wholesaler that keeps everybody waiting."""
    surroundings = environment(database_url, folder, resolve_limit_s=pace.limit_s, confirm_wait_s=1.0)
    surroundings |= {"LEASE_MARGIN_S": "10"}
    servers = [
        Server((*SERVICE, "--no-worker"), surroundings, folder / f"server-{at}.log") for at in range(2)
    ]
    workers = [Process(WORKER, surroundings, folder / f"worker-{at}.log") for at in range(2)]
    async with shop_of(pool, folder) as shop, warehouse(folder) as wholesaler:
        draft = SupplierDraft(
            *("late", "http", State.LIVE, wholesaler.description()),
            secret=wholesaler.key,
            timeout_s=round(pace.last_s) + 5,
            settle_s=round(2 * pace.last_s) + 10,
            concurrency_max=100,
        )
        async with transaction(pool) as tx:
            rows = [
                await add_supplier(tx, _named(draft, f"late-{number}"), shop.sealer)
                for number in range(STEPS)
            ]
        for step, row in enumerate(rows):
            slug = f"goods-{step}"
            await shop.product(slug, price="9.50 EUR", async_delivery=True)
            await wholesaler.stock(slug, price="9.00", stock=1_000_000)
            await wholesaler.behave(slug, "late-sale", seconds=pace.seconds(step))
            async with transaction(pool) as tx:
                await add_offer(tx, row, shop.products[slug].product_id, sku=slug, face_minor=1_000)
        async with running(*servers, *workers):
            await until(lambda: _quoted(pool), "the suppliers name no price")
            yield shop, servers


async def _quoted(pool: Pool) -> bool:
    """Whether every supplier has named its price."""
    return not await pool.fetchval("SELECT EXISTS (SELECT FROM offer WHERE quoted_at IS NULL)")


def _named(draft: SupplierDraft, name: str) -> SupplierDraft:
    return SupplierDraft(**({key: getattr(draft, key) for key in draft.__struct_fields__} | {"name": name}))


async def resolve_one(server: Server, company: Company, step: int, times: Times) -> None:
    """Create an order, resolve it, and look at the clock."""
    caller = Caller(server)
    headers = company.bearer() | {"content-type": "application/json"}
    body = {"items": [{"productSlug": f"goods-{step}", "amount": 1}], "paymentCurrency": "EUR"}
    status, answer = await caller.call("POST", "/api/1.03/order", headers, json.dumps(body).encode())
    assert status == 201, answer
    path = f"/api/1.03/order/resolve/{json.loads(answer)['trx']}"
    began = time.monotonic()
    status, answer = await caller.call("PATCH", path, company.bearer(), b"")
    took_s = time.monotonic() - began
    caller.close()
    times.note(took_s, json.loads(answer)["orderStatus"] if status == 200 else str(status))


async def probe(server: Server, times: Times, stop: asyncio.Event) -> None:
    """How long the machine takes for nothing: what is slow for everybody is not the order's fault."""
    caller = Caller(server)
    while not stop.is_set():
        began = time.monotonic()
        await caller.call("GET", "/healthz", {}, b"")
        times.probe_s = max(times.probe_s, time.monotonic() - began)
        await asyncio.sleep(PROBE_EVERY_S)
    caller.close()


@pytest.mark.parametrize(
    ("count", "pace"),
    [pytest.param(66, SHORT), pytest.param(RESOLVES_SOAK, LONG, marks=pytest.mark.soak)],
    ids=["short", "long"],
)
async def test_every_resolve_is_answered_within_its_limit(
    pool: Pool,
    database_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    count: int,
    pace: Pace,
) -> None:
    """Contract 3, OP-46: finished within the limit or cancelled without a charge, whenever the supplier answers."""
    monkeypatch.setattr(buyers, "CALL_S_MAX", 10 * pace.limit_s)
    times, stop = Times(), asyncio.Event()
    async with open_market(pool, database_url, tmp_path, pace) as (shop, servers):
        companies = [await shop.company(balance=WALLET_IS_ENDLESS) for _ in range(4)]
        probes = [asyncio.create_task(probe(server, times, stop)) for server in servers]
        for first in range(0, count, pace.at_once):
            numbers = range(first, min(first + pace.at_once, count))
            await asyncio.gather(
                *(resolve_one(servers[at % 2], companies[at % 4], at % STEPS, times) for at in numbers)
            )
            await suppliers_are_well(shop.pool)
        stop.set()
        await asyncio.gather(*probes)
        await _settled(shop)
        await shop.assert_books_balance()
    told = {"slowest": max(times.took_s), "probe": times.probe_s, "answers": times.ended}
    sys.stdout.write(f"\n{json.dumps(told)}\n")
    assert sum(times.ended.values()) == count
    # On a machine that is too slow to cancel in time the answer is a 503, in time, and the worker ends the order.
    assert {"finished"} <= times.ended.keys() <= {"finished", "cancelled", "503"}, times.ended
    late = [took_s for took_s in times.took_s if took_s > pace.limit_s + times.probe_s]
    assert not late, f"{len(late)} of {count} were late, the last after {max(late):.3f} s"


async def _settled(shop: Shop) -> None:
    async def quiet() -> bool:
        return not await shop.pool.fetchval(
            "SELECT EXISTS (SELECT FROM orders WHERE status = 1) OR EXISTS (SELECT FROM attempt WHERE status < 2)"
        )

    await until(quiet, "purchases do not end")
    assert await shop.pool.fetchval("SELECT sum(held_minor) FROM wallet") == 0
