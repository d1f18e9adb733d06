"""The fault matrix: whatever a supplier does and wherever the worker dies, nothing is bought twice and nothing lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.faults.cells import (
    AMOUNT,
    CONFIRM_WAIT_S,
    MARGIN_S,
    OVERTIME_S,
    RESOLVE_LIMIT_S,
    SETTLE_S,
    SURPLUS,
    TIMEOUT_S,
    Cell,
    Death,
    Mortal,
    cells,
)
from tests.faults.stumbling import open_stumbling_pool
from tests.shop import Shop, open_shop
from tests.suppliers.warehouse import Warehouse, warehouse
from voucherd import dispatcher as dispatching
from voucherd.catalogue.store import brand_of
from voucherd.db import Pool, transaction
from voucherd.dispatcher import Dispatcher
from voucherd.fulfilment import attempts
from voucherd.fulfilment.suppliers.registry import Spec, open_supplier
from voucherd.fulfilment.suppliers.rows import SupplierDraft, add_offer, add_supplier
from voucherd.ids import State
from voucherd.money import Money
from voucherd.orders.store import Memory
from voucherd.worker import Worker

PLACED_S_MAX = 30.0
ENDS_S_MAX = 60.0
LAG_S_MAX = 1.0
"""Clients, servers and workers share one loop here, which may be busy when an answer is there."""
PRICE_MINOR = 950
COST_MINOR = 900
BALANCE_MINOR = 10_000


class Matrix:
    """Every cell in one shop: their suppliers are one wholesaler, who is told what to do with each product."""

    def __init__(self, shop: Shop, wholesaler: Warehouse, doomed_pool: Pool) -> None:
        self.shop = shop
        self.wholesaler = wholesaler
        self.cells = cells()
        self._by_name = {cell.slug: cell for cell in self.cells}
        memory = Memory(shop.desk._memory.windows)
        self.doomed = Dispatcher(doomed_pool, shop.sealer, memory, lambda _: None, self._mortal)
        self.heir = Worker(shop.pool, shop.sealer, shop.settings)

    def _mortal(self, spec: Spec, pool: Pool) -> Mortal:
        return Mortal(open_supplier(spec, pool), self._by_name[spec.name], self.shop.pool)

    async def set_up(self) -> None:
        """Products, companies, suppliers, prices, orders."""
        shop = self.shop
        config = self.wholesaler.description()
        for cell in self.cells:
            product = await shop.product(cell.slug, price="9.50 EUR")
            await self.wholesaler.stock(cell.slug, price="9.00")
            await self.wholesaler.behave(cell.slug, cell.fault.mode, seconds=cell.fault.seconds, times=1)
            cell.company = await shop.company(balance="100.00 EUR")
            draft = SupplierDraft(
                *(cell.slug, "http", State.LIVE, config),
                secret=self.wholesaler.key,
                timeout_s=TIMEOUT_S,
                settle_s=SETTLE_S,
            )
            async with transaction(shop.pool) as tx:
                row = await add_supplier(tx, draft, shop.sealer)
                await add_offer(tx, row, product.product_id, sku=cell.slug, face_minor=1_000)
        await self.doomed.refresh_quotes()
        await self.doomed.settled()
        shop.desk._memory.offers._checked_at = -10.0
        for cell in self.cells:
            cell.trx = (await shop.create(cell.company, (cell.slug, AMOUNT)))["trx"]

    async def run(self) -> None:
        """The clients, those of one death at once; the doomed worker begins every purchase, its heir does the rest."""
        async with asyncio.TaskGroup() as clients:
            for death in Death:
                wave = [cell for cell in self.cells if cell.death is death]
                for cell in wave:
                    clients.create_task(self._client(cell))
                await self._begin_purchases(wave)
            self.heir.start()

    async def _begin_purchases(self, wave: list[Cell]) -> None:
        order_ids = [self.shop.ids.order_id(cell.trx) for cell in wave]
        ends_at = time.monotonic() + PLACED_S_MAX
        while await self.shop.pool.fetchval(
            "SELECT EXISTS (SELECT FROM orders WHERE id = ANY($1) AND status < 2 AND id NOT IN"
            " (SELECT order_id FROM attempt_line))",
            order_ids,
        ):
            assert time.monotonic() < ends_at, "purchases were not begun"
            await self.doomed.dispatch()
            await self.heir.dispatcher.follow_up()
            await asyncio.sleep(0.01)

    async def _client(self, cell: Cell) -> None:
        began = time.monotonic()
        if cell.operation == "cancel":
            confirming = asyncio.create_task(self.shop.confirm(cell.company, cell.trx))
            await self._in_flight(cell)
            cancelled = await self.shop.cancel(cell.company, cell.trx)
            # A purchase that was quick has finished the order before the Cancel came.
            assert cancelled.status_code in {200, 400}, cancelled.text
            await confirming
        else:
            response = await self.shop.finalise(cell.operation, cell.company, cell.trx)
            cell.took_s = time.monotonic() - began
            # A machine that is too busy even to cancel says so in time, and the worker ends the order (OP-46).
            assert response.status_code == 200 or cell.operation == "resolve", response.text

    async def _in_flight(self, cell: Cell) -> None:
        order_id = self.shop.ids.order_id(cell.trx)
        ends_at = time.monotonic() + PLACED_S_MAX
        while not await self.shop.pool.fetchval(
            "SELECT EXISTS (SELECT FROM attempt_line WHERE order_id = $1)", order_id
        ):
            assert time.monotonic() < ends_at
            await asyncio.sleep(0.02)

    async def until_quiet(self) -> None:
        """Wait until every order has ended and no purchase is under way."""
        ends_at = time.monotonic() + ENDS_S_MAX
        while await self.shop.pool.fetchval(
            "SELECT EXISTS (SELECT FROM attempt WHERE status < 2) OR EXISTS (SELECT FROM orders WHERE status = 1)"
        ):
            assert time.monotonic() < ends_at, await self._still_open()
            await asyncio.sleep(0.1)

    async def _still_open(self) -> list[tuple[Any, ...]]:
        rows = await self.shop.pool.fetch(
            "SELECT s.name, a.status, a.look_ups, a.reason, o.status FROM attempt a"
            " JOIN supplier s ON s.id = a.supplier_id JOIN attempt_line l ON l.attempt_id = a.id"
            " JOIN orders o ON o.id = l.order_id WHERE a.status < 2 OR o.status = 1"
        )
        return [(str(self._by_name[row[0]]), *row[1:]) for row in rows]


@pytest.fixture
async def matrix(
    pool: Pool, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Matrix]:
    """A shop, a wholesaler, and two workers of which one is doomed."""
    monkeypatch.setattr(attempts, "LEASE_MARGIN_S", MARGIN_S)
    monkeypatch.setattr(dispatching, "OVERTIME_S", OVERTIME_S)
    limits = {"confirm_wait_s": CONFIRM_WAIT_S, "resolve_limit_s": RESOLVE_LIMIT_S}
    doomed_pool = await open_stumbling_pool(database_url)
    async with (
        warehouse(tmp_path) as wholesaler,
        open_shop(pool, database_url, tmp_path, with_worker=False, **limits) as shop,
    ):
        opened = Matrix(shop, wholesaler, doomed_pool)
        yield opened
        await opened.heir.stop()
        await opened.doomed.stop()
    await doomed_pool.close()


async def test_whatever_a_supplier_does_and_wherever_the_worker_dies_every_code_is_bought_once_and_kept(
    matrix: Matrix,
) -> None:
    """OP-44 to OP-46, invariants 2 to 4: faults x operations x deaths, each cell checked code by code."""
    shop = matrix.shop
    await matrix.set_up()
    await matrix.run()
    await matrix.until_quiet()

    assert await matrix.wholesaler.repeats() == []
    sales = await _sales_by_product(matrix)
    purchases = await _purchases_by_product(matrix)
    for cell in matrix.cells:
        sold = sales.get(cell.slug, {})
        # A Resolve on a busy machine may have ended before anything was bought for it.
        await _assert_every_code_is_in_the_vault(shop, cell, sold, purchases.get(cell.slug, []))
        await _assert_the_client_got_what_was_paid(shop, cell, [c for codes in sold.values() for c in codes])
    slowest_s = max(cell.took_s for cell in matrix.cells if cell.operation == "resolve")
    assert slowest_s <= RESOLVE_LIMIT_S + LAG_S_MAX, "a Resolve was answered too late"
    await shop.assert_books_balance()


async def _sales_by_product(matrix: Matrix) -> dict[str, dict[UUID, list[str]]]:
    sales: dict[str, dict[UUID, list[str]]] = {}
    for reference, sale in (await matrix.wholesaler.sales()).items():
        sales.setdefault(sale["sku"], {})[UUID(reference)] = sale["codes"]
    return sales


async def _purchases_by_product(matrix: Matrix) -> dict[str, list[Any]]:
    rows = await matrix.shop.pool.fetch(
        "SELECT s.name, a.id, a.status, a.codes, a.spare, a.quarantined, a.fence FROM attempt a"
        " JOIN supplier s ON s.id = a.supplier_id ORDER BY a.placed_at"
    )
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(row["name"], []).append(row)
    return found


async def _assert_every_code_is_in_the_vault(
    shop: Shop, cell: Cell, sold: dict[UUID, list[str]], purchases: list[Any]
) -> None:
    """What the wholesaler sold under our references is in our lots with its cost, and nothing else is."""
    assert set(sold) <= {one["id"] for one in purchases}, cell
    for one in purchases:
        assert one["status"] == (3 if one["id"] in sold else 4), cell
        assert (one["codes"], one["quarantined"]) == (len(sold.get(one["id"], [])), 0), cell
    product_id = shop.products[cell.slug].product_id
    async with shop.pool.acquire() as conn:
        brand_id = await brand_of(conn, product_id)
        rows = await conn.fetch(
            "SELECT c.blind, l.attempt_id, l.purchase_minor FROM code c JOIN lot l ON l.id = c.lot_id"
            " WHERE l.product_id = $1",
            product_id,
        )
    kept = {(row["blind"], row["attempt_id"], row["purchase_minor"]) for row in rows}
    assert len(kept) == len(rows), cell
    bought = {
        (shop.sealer.blind(brand_id, code), reference, COST_MINOR)
        for reference, codes in sold.items()
        for code in codes
    }
    assert kept == bought, cell


async def _assert_the_client_got_what_was_paid(shop: Shop, cell: Cell, bought: list[str]) -> None:
    """The order has ended; its codes are ours, each once; the rest lies on the shelf; the charge is theirs."""
    order = await shop.find(cell.company, cell.trx)
    lines = order["items"][0]["orderLines"]
    got = [line["voucherCode"] for line in lines if line["status"] == "finished"]
    spare = len(bought) - len(got)
    assert len(set(got)) == len(got), cell
    assert set(got) <= set(bought), cell
    assert await shop.left(cell.slug) == spare, cell
    surplus = SURPLUS if cell.fault.mode == "too-many" and len(bought) > AMOUNT else 0
    # A worker that died before it called has bought nothing: the supplier misbehaves at whatever is bought instead.
    first = 0 if cell.death is Death.BEFORE_CALL else cell.fault.sells
    match cell.operation:
        case "confirm":
            # All that was ordered, bought once: nothing is over but what nobody asked for.
            assert (order["orderStatus"], len(got), spare) == ("finished", AMOUNT, surplus), cell
        case "cancel":
            # What was bought in spite of the Cancel is delivered; nothing is bought after it.
            ended = "finished" if first >= AMOUNT else "cancelled"
            assert (order["orderStatus"], len(bought), len(got)) == (ended, first, min(first, AMOUNT)), cell
        case "resolve":
            # All or nothing, and one purchase at most: what came too late is on the shelf.
            assert (order["orderStatus"], len(got)) in {("finished", AMOUNT), ("cancelled", 0)}, cell
            assert len(bought) in {0, first}, cell
    assert {line["status"] for line in lines} <= {"finished", "cancelled"}, cell
    assert await shop.balance(cell.company) == Money(BALANCE_MINOR - PRICE_MINOR * len(got), "EUR"), cell
    assert await shop.held(cell.company) == 0, cell
