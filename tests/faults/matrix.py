"""All cells of the fault matrix in one shop, with clients, a worker that is doomed and one that is its heir."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx

from tests.faults.cells import AMOUNT, IN_THE_SUITE, SETTLE_S, TIMEOUT_S, Cell, Mortal
from tests.faults.processes import Process
from tests.patience import until
from tests.shop import Shop
from tests.suppliers.warehouse import Warehouse
from voucherd.db import Pool, transaction
from voucherd.ids import State
from voucherd.orders.caches import OrderCaches
from voucherd.purchasing.dispatcher import Dispatcher
from voucherd.suppliers.registry import Spec, open_supplier
from voucherd.suppliers.store import SupplierDraft, add_offer, add_supplier
from voucherd.worker import Worker


class Matrix:
    """Every cell in one shop: their suppliers are one wholesaler, who is told what to do with each product."""

    def __init__(self, shop: Shop, wholesaler: Warehouse, doomed_pool: Pool) -> None:
        self.shop = shop
        self.wholesaler = wholesaler
        self.cells: list[Cell] = []
        self.settle_s = SETTLE_S
        caches = OrderCaches(shop.order_service._caches.windows)
        self.doomed = Dispatcher(doomed_pool, shop.sealer, caches, lambda _: None, self._mortal)
        self.heir = Worker(shop.pool, shop.sealer, shop.settings)

    def _mortal(self, spec: Spec, pool: Pool) -> Mortal:
        cell = next(cell for cell in self.cells if cell.slug == spec.name)
        return Mortal(open_supplier(spec, pool), cell, self.shop.pool, self.wholesaler)

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
                settle_s=self.settle_s,
            )
            async with transaction(shop.pool) as tx:
                row = await add_supplier(tx, draft, shop.sealer)
                await add_offer(tx, row, product.product_id, sku=cell.slug, face_minor=1_000)
        await self.doomed.refresh_quotes()
        await self.doomed.settled()
        shop.order_service._caches.offers._checked_at = -10.0
        for cell in self.cells:
            cell.trx = (await shop.create(cell.company, (cell.slug, AMOUNT)))["trx"]

    async def run(self) -> None:
        """The clients, those of one death at once; the doomed worker begins every purchase, its heir does the rest."""
        async with asyncio.TaskGroup() as clients:
            for death in IN_THE_SUITE:
                wave = [cell for cell in self.cells if cell.death is death]
                for cell in wave:
                    clients.create_task(self._client(cell))

                async def all_begun(wave: list[Cell] = wave) -> bool:
                    await self.doomed.dispatch()
                    await self.heir.dispatcher.follow_up()
                    return await self._all_begun(wave)

                await until(all_begun, "purchases were not begun")
            self.heir.start()

    async def run_with(self, doomed: Process, heir: Process) -> None:
        """All clients at once, and two real workers, of which the first is killed when all purchases are begun."""
        async with asyncio.TaskGroup() as clients:
            await doomed.start()
            for cell in self.cells:
                clients.create_task(self._client(cell))
            await until(lambda: self._all_begun(self.cells), "purchases were not begun")
            await doomed.kill()
            await heir.start()

    async def _all_begun(self, wave: list[Cell]) -> bool:
        """Whether nobody waits for his first purchase any more; nothing is bought after the limit of a Resolve."""
        return bool(
            await self.shop.pool.fetchval(
                "SELECT NOT EXISTS (SELECT FROM orders WHERE id = ANY($1) AND status < 2"
                " AND coalesce(deadline_at > now(), true) AND id NOT IN (SELECT order_id FROM attempt_line))",
                [self.shop.ids.order_id(cell.trx) for cell in wave],
            )
        )

    async def _client(self, cell: Cell) -> None:
        if cell.operation == "cancel":
            confirming = asyncio.create_task(self.shop.confirm(cell.company, cell.trx))
            await self._in_flight(cell)
            cancelled = await self.shop.cancel(cell.company, cell.trx)
            # A purchase that was quick has finished the order before the Cancel came.
            assert cancelled.status_code in {200, 400}, cancelled.text
            await confirming
        else:
            response = await until(lambda: self._taken(cell), "no call was taken")
            assert response is not None
            # A machine that is too busy even to cancel says so in time, and the worker ends the order (OP-46).
            assert response.status_code == 200 or cell.operation == "resolve", response.text

    async def _taken(self, cell: Cell) -> httpx.Response | None:
        """The answer to a call; None if the machine was so busy that nothing of it is stored: it is made again then."""
        response = await self.shop.finalise(cell.operation, cell.company, cell.trx)
        created = "SELECT status = 0 FROM orders WHERE id = $1"
        order_id = self.shop.ids.order_id(cell.trx)
        if response.status_code == 503 and await self.shop.pool.fetchval(created, order_id):
            return None
        return response

    async def _in_flight(self, cell: Cell) -> None:
        order_id = self.shop.ids.order_id(cell.trx)
        question = "SELECT EXISTS (SELECT FROM attempt_line WHERE order_id = $1)"
        await until(lambda: self.shop.pool.fetchval(question, order_id))

    async def until_quiet(self) -> None:
        """Wait until every order has ended and no purchase is under way."""

        async def quiet() -> bool:
            if self.settle_s == SETTLE_S:
                await self._settle()
            return not await self.shop.pool.fetchval(
                "SELECT EXISTS (SELECT FROM attempt WHERE status < 2)"
                " OR EXISTS (SELECT FROM orders WHERE status = 1)"
            )

        try:
            await until(quiet)
        except AssertionError:
            raise AssertionError(await self._still_open()) from None

    async def _settle(self) -> None:
        """Let the settling time of the purchases in doubt be over, as soon as none of them can be sold any more."""
        pool = self.shop.pool
        doubtful = [row[0] for row in await pool.fetch("SELECT id FROM attempt WHERE status = 1")]
        # What was sent before the first question is known when the second one is answered.
        for _ in range(2):
            if await self.wholesaler.late_sales():
                return
        self.heir.dispatcher._over_at.update(dict.fromkeys(doubtful, 0.0))
        await pool.execute(
            "UPDATE attempt SET settles_at = now(), ask_at = now()"
            " WHERE id = ANY($1) AND status = 1 AND settles_at > now()",
            doubtful,
        )

    async def _still_open(self) -> list[tuple[Any, ...]]:
        rows = await self.shop.pool.fetch(
            "SELECT s.name, a.status, a.look_ups, a.reason, o.status FROM attempt a"
            " JOIN supplier s ON s.id = a.supplier_id JOIN attempt_line l ON l.attempt_id = a.id"
            " JOIN orders o ON o.id = l.order_id WHERE a.status < 2 OR o.status = 1"
        )
        names = {cell.slug: str(cell) for cell in self.cells}
        return [(names[row[0]], *row[1:]) for row in rows]
