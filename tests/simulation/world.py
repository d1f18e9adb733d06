"""The service on a real database, driven step by step from a test that is not asynchronous."""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import asyncpg

from tests.faults.stumbling import open_stumbling_pool
from tests.patience import HANG_S
from tests.shop import paid_in
from tests.simulation.model import Company, Model, Product, Shelf
from voucherd.audit import audit
from voucherd.catalogue import store as catalogue
from voucherd.catalogue.products import ProductChanges, ProductDraft
from voucherd.catalogue.texts import read_amount, read_face, read_selling
from voucherd.companies import store as company_store
from voucherd.companies.model import CompanyDraft
from voucherd.db import Pool, open_pool, transaction
from voucherd.ids import State
from voucherd.migrate import migrate
from voucherd.money import Money
from voucherd.orders.rules.states import Payment, Status
from voucherd.orders.service import OrderService
from voucherd.settings import Settings
from voucherd.vault.imports import StockTarget, append_codes
from voucherd.vault.seal import Sealer
from voucherd.worker import Worker

T = TypeVar("T")
STEP_S_MAX = HANG_S
_count = itertools.count(1)


class World:
    """One database for all examples; each has companies and products of its own."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, url: str, pool: Pool, fragile: Pool, master: bytes
    ) -> None:
        self._loop = loop
        self.url = url
        self.pool = pool
        self.fragile = fragile
        self.master = master
        self.sealer = Sealer(master)
        # Its operators change prices without a thought for costs, so every loss is allowed.
        flags = {"data": Path("unused"), "confirm_wait_s": 0, "margin_min_bp": -10_000}
        self.settings = Settings.load(flags | {"resolve_limit_s": 3600, "transaction_s_max": 3600}, {})

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What the work gives; no step takes for ever."""
        return self._loop.run_until_complete(asyncio.wait_for(work, STEP_S_MAX))

    def order_service(self) -> OrderService:
        """An order service with nothing in its caches, as after a start."""
        return OrderService(self.fragile, self.sealer, self.settings)

    def worker(self) -> Worker:
        """A worker with nothing in its caches."""
        return Worker(self.fragile, self.sealer, self.settings)

    # ── what the operator does ────────────────────────────────────────────────────────────────────────

    async def company(self) -> Company:
        """A new company that may buy."""
        async with transaction(self.pool) as tx:
            made = await company_store.add_company(
                tx, CompanyDraft(f"Company {next(_count)}", "NL", verified=True)
            )
        return Company(made.id, made.name)

    async def set_company(self, company: Company) -> None:
        """Make the company what the model says."""
        async with transaction(self.pool) as tx:
            await company_store.set_company(
                tx, company.name, active=company.active, verified=company.verified
            )

    async def top_up(self, company: int, state: State, amount_minor: int) -> None:
        """Add money."""
        async with transaction(self.pool) as tx:
            await paid_in(tx, company, state, Money(amount_minor, "EUR"))

    async def product(
        self,
        kind: str,
        *,
        price: str | None = None,
        fee: str | None = None,
        face_range: str | None = None,
        **more: Any,
    ) -> Product:
        """A new product; the model of it has what the words here say."""
        async with transaction(self.pool) as tx:
            made = await catalogue.add_product(
                tx,
                ProductDraft(
                    slug=f"{kind}-{next(_count)}",
                    name=kind,
                    brand="Testbrand",
                    product_type="giftcard",
                    category="gifts",
                    redeem_type="currency",
                    region="ww",
                    face=read_face(None if face_range else "10.00 EUR", face_range),
                    selling=read_selling(price, fee),
                    **more,
                ),
            )
        return Product(made.product_id, made.slug, made.face_minor, made.async_delivery)

    async def set_price(self, product: Product) -> None:
        """Give the product the model's price."""
        async with transaction(self.pool) as tx:
            price = read_amount("price", str(Money(product.price_minor, "EUR")))
            await catalogue.set_product(tx, product.slug, ProductChanges(selling=price))

    async def set_active(self, product: Product) -> None:
        """Withdraw the product or offer it again."""
        async with transaction(self.pool) as tx:
            await catalogue.set_product(tx, product.slug, ProductChanges(active=product.active))

    async def stock(self, product: Product, face_minor: int, count: int) -> set[str]:
        """Fill a shelf; the codes."""
        codes = [(f"CODE-{secrets.token_hex(8)}", f"S{at}") for at in range(count)]
        async with transaction(self.pool) as tx:
            brand_id = await tx.fetchval("SELECT id FROM brand WHERE slug = 'testbrand'")
            await append_codes(
                tx,
                self.sealer,
                target=StockTarget(product.id, brand_id, face_minor),
                supplier="wholesale",
                purchase=Money.read("9.00 EUR"),
                purchase_fx_e8=100_000_000,
                expires=None,
                codes=codes,
            )
        return {code for code, _ in codes}

    # ── what time does ────────────────────────────────────────────────────────────────────────────────

    async def age(self, order_id: int, interval: str) -> None:
        """Make an order older than it is, by the database's clock."""
        await self.pool.execute(
            f"UPDATE orders SET created_at = created_at - interval '{interval}', "  # noqa: S608 - A test's own words.
            f"expires_at = expires_at - interval '{interval}' WHERE id = $1",
            order_id,
        )
        # The sweeps have passed that time already.
        await self.pool.execute(
            "UPDATE sweep SET upto = least(upto, created_at) FROM orders WHERE orders.id = $1", order_id
        )

    async def end_window(self, order_id: int) -> None:
        """Let a waiting order's time be up."""
        async with transaction(self.pool) as tx:
            await tx.execute("UPDATE orders SET deadline_at = now() - interval '1 s' WHERE id = $1", order_id)
            await tx.execute(
                "UPDATE waiting SET deadline_at = now() - interval '1 s' WHERE order_id = $1", order_id
            )

    async def set_slow(self, order_id: int, *, slow: bool) -> None:
        """Let a sandbox order that was to be slow wait on, or no longer."""
        await self.pool.execute(
            "UPDATE waiting SET not_before = now() + CASE WHEN $2 THEN interval '1 h' ELSE interval '0' END"
            " WHERE order_id = $1",
            order_id,
            slow,
        )

    # ── what is true ──────────────────────────────────────────────────────────────────────────────────

    async def view(self, model: Model) -> dict[str, Any]:
        """What the database says about everything that the model knows, in the model's own words."""
        orders = await self.pool.fetch(
            "SELECT id, status, payment_status, charged_minor, refunded_minor, held_minor, lines_finished,"
            " lines_cancelled FROM orders WHERE id = ANY($1::bigint[])",
            list(model.orders),
        )
        money = await self.pool.fetch(
            "SELECT company_id, state, balance_minor, held_minor FROM wallet WHERE company_id = ANY($1::int[])",
            list(model.companies),
        )
        stock = await self.pool.fetch(
            "SELECT product_id, face_minor, sum(size - cursor)::int AS left FROM lot"
            " WHERE product_id = ANY($1::int[]) AND state = 0 AND NOT exhausted GROUP BY 1, 2",
            [product.id for product in model.products.values()],
        )
        shelves: dict[Shelf, int] = {(State.LIVE, row[0], row[1]): row[2] for row in stock}
        return {
            "orders": {row[0]: (Status(row[1]), Payment(row[2]), *tuple(row)[3:]) for row in orders},
            "wallets": {(row[0], State(row[1])): (row[2], row[3]) for row in money},
            "stock": shelves,
        }

    async def expired_events(self, order_id: int) -> int:
        """How often an order's expiry was announced."""
        found = await self.pool.fetchval(
            "SELECT count(*) FROM event WHERE order_id = $1 AND type = 'order.expired'", order_id
        )
        return int(found)

    async def assert_books_balance(self) -> None:
        """Every invariant of decision 27 holds on the whole database, as the audit sees it."""
        async with self.pool.acquire() as conn:
            findings = await audit(conn, self.sealer)
        assert not findings, findings


@contextmanager
def open_world(server_url: str, master: bytes) -> Iterator[World]:
    """A migrated schema and a loop of its own, both gone afterwards."""
    loop = asyncio.new_event_loop()
    stack = AsyncExitStack()
    try:
        yield loop.run_until_complete(stack.enter_async_context(_opened(loop, server_url, master)))
    finally:
        loop.run_until_complete(stack.aclose())
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


@asynccontextmanager
async def _opened(loop: asyncio.AbstractEventLoop, server_url: str, master: bytes) -> AsyncIterator[World]:
    async with _schema(server_url) as url:
        await migrate(url)
        pool = await open_pool(url, size_max=3)
        fragile = await open_stumbling_pool(url, size_max=4)
        try:
            async with transaction(pool) as tx:
                await catalogue.set_rate(tx, "VND", 3_500)
            yield World(loop, url, pool, fragile, master)
        finally:
            await fragile.close()
            await pool.close()


@asynccontextmanager
async def _schema(server_url: str) -> AsyncIterator[str]:
    schema = f"t_{secrets.token_hex(6)}"
    # The drop's "drop cascades to …" notice is no news.
    connection = await asyncpg.connect(server_url, server_settings={"client_min_messages": "warning"})
    try:
        await connection.execute(f"CREATE SCHEMA {schema}")
        try:
            yield f"{server_url}{'&' if '?' in server_url else '?'}search_path={schema}"
        finally:
            await connection.execute(f"SET lock_timeout = '10s'; DROP SCHEMA {schema} CASCADE")
    finally:
        await connection.close()
