"""A shop with suppliers that do as they are told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.patience import HANG_S, until
from tests.purchasing.fake import FakeSupplier
from tests.shop import Company, Shop, open_shop
from voucherd.db import Pool, transaction
from voucherd.ids import State
from voucherd.orders.caches import OrderCaches
from voucherd.purchasing import dispatcher as dispatching
from voucherd.purchasing.dispatcher import Dispatcher
from voucherd.suppliers.registry import Spec
from voucherd.suppliers.store import SupplierDraft, SupplierRow, add_offer, add_supplier, supplier


class Clock:
    """The dispatchers' own clock: it stands still until a test lets time pass, so no machine is too slow for it."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def monotonic(self) -> float:
        """As the clock that never jumps."""
        return self.now_s


class Market:
    """A shop, its suppliers, and a dispatcher that goes one round when it is told to."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self.suppliers: dict[str, FakeSupplier] = {}
        self.moved: list[int] = []
        self.dispatcher = self.another_dispatcher()

    def another_dispatcher(self) -> Dispatcher:
        """A second worker, as it were."""
        return Dispatcher(
            self.shop.pool,
            self.shop.sealer,
            OrderCaches(self.shop.order_service._caches.windows),
            lambda orders: self.moved.extend(order.id for order in orders),
            self._open,
        )

    def _open(self, spec: Spec, _pool: Pool) -> FakeSupplier:
        return self.suppliers[spec.name]

    async def supplier(
        self,
        name: str,
        *slugs: str,
        price: str = "9.00 EUR",
        state: State = State.LIVE,
        concurrency_max: int = 8,
        settle_s: int = 0,
        on_unknown: str = "wait",
        timeout_s: int = 1,
        config: dict[str, Any] | None = None,
        secret: str | None = None,
        **manner: object,
    ) -> FakeSupplier:
        """A supplier that sells these products, with fresh quotes."""
        fake = self.suppliers[name] = FakeSupplier(price=price, **manner)  # type: ignore[arg-type]
        draft = SupplierDraft(
            name,
            "http",
            state,
            config or {},
            secret,
            settle_s=settle_s,
            concurrency_max=concurrency_max,
            on_unknown=on_unknown,
            timeout_s=timeout_s,
        )
        async with transaction(self.shop.pool) as tx:
            row = await add_supplier(tx, draft, self.shop.sealer)
            for slug in slugs:
                product = self.shop.products[slug]
                first = product.face_minor or product.face_min_minor
                assert first is not None
                await add_offer(
                    tx,
                    row,
                    product.product_id,
                    sku=f"sku-{slug}",
                    face_minor=first,
                    face_to_minor=product.face_max_minor,
                )
        await self.quotes()
        return fake

    async def row(self, name: str) -> SupplierRow:
        """The supplier as the database knows it."""
        async with self.shop.pool.acquire() as conn:
            return await supplier(conn, name)

    async def quotes(self) -> None:
        """Ask everybody for prices now."""
        await self.shop.pool.execute("UPDATE offer SET quoted_at = now() - interval '1 day'")
        await self.shop.pool.execute("UPDATE supplier_health SET quoting_until = '-infinity'")
        self.dispatcher._read_at = -10.0
        await self.dispatcher.refresh_quotes()
        await self.dispatcher.settled()
        self.shop.order_service._caches.offers._checked_at = -10.0
        self.dispatcher._caches.offers._checked_at = -10.0

    async def round(self) -> None:
        """Wake everybody from their pause, let the dispatcher go one round, and wait for the answers."""
        self.dispatcher._read_at = -10.0
        # Lines that nobody has for the moment are sent into a pause by the first look.
        for _ in range(2):
            await self.shop.pool.execute("UPDATE waiting SET ask_at = now() WHERE ask_at IS NOT NULL")
            await self.dispatcher.dispatch()
        await self.dispatcher.settled()

    async def look_ups(self) -> None:
        """Look up whatever is not known, now."""
        await self.shop.pool.execute("UPDATE attempt SET ask_at = now() WHERE status = 1")
        await self.dispatcher.follow_up()
        await self.dispatcher.settled()

    async def until_held(self, company: Company) -> None:
        """Wait until a Resolve of the company holds its money."""
        await until(lambda: self.shop.held(company), "nothing was held")

    async def attempts(self) -> list[tuple[int, int, int, int]]:
        """Every purchase so far: status, codes asked for, codes that came, codes that no line took."""
        rows = await self.shop.pool.fetch(
            "SELECT status, count, codes, spare FROM attempt ORDER BY placed_at, id"
        )
        return [tuple(row) for row in rows]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of all dispatchers of a test."""
    return stopped_clock(monkeypatch)


def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock for all dispatchers until the test ends."""
    stands = Clock()
    monkeypatch.setattr(dispatching, "time", stands)
    # A call that a test holds up on purpose is not ended by a clock on the wall.
    monkeypatch.setattr(dispatching, "OVERTIME_S", 2 * HANG_S)
    return stands


@pytest.fixture
async def market(clock: Clock, pool: Pool, database_url: str, tmp_path: Path) -> AsyncIterator[Market]:
    """A shop without a worker in which Confirm does not wait."""
    async with open_shop(pool, database_url, tmp_path, with_worker=False, confirm_wait_s=0) as shop:
        opened = Market(shop)
        yield opened
        for fake in opened.suppliers.values():
            fake.free.set()
        await opened.dispatcher.stop()
