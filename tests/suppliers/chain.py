"""Two voucherds in a row: the second sells what the first has on its shelves, and buys it there over HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from tests.patience import until
from tests.shop import Company, Shop
from voucherd.db import transaction
from voucherd.ids import State
from voucherd.suppliers.store import SupplierDraft, add_offer, add_supplier

TIMEOUT_S = 60
SETTLE_S = 1
FUNDS_MINOR = 100_000


@dataclass
class Chain:
    """Two shops; the second one's operator is a company of the first."""

    first: Shop
    second: Shop
    url: str
    us: Company

    async def sold_in_both(
        self, *, price: str | None = "9.00 EUR", ours: str | None = "9.50 EUR", **product: Any
    ) -> str:
        """A product that both sell, the second at a higher price."""
        slug = f"gift-{uuid4().hex[:8]}"
        await self.first.product(slug, price=price, **product)
        await self.second.product(slug, price=ours, **product)
        return slug

    async def supplier(self, *slugs: str, state: State = State.LIVE, **config: Any) -> str:
        """The first shop as a supplier of the second, for these products, with prices."""
        name = f"first-{uuid4().hex[:8]}"
        draft = SupplierDraft(
            *(name, "voucherd", state, {"url": self.url, "currency": "EUR", **config}),
            secret=self.us.keys[state],
            timeout_s=TIMEOUT_S,
            settle_s=SETTLE_S,
            quote_age_s=60,
        )
        async with transaction(self.second.pool) as tx:
            row = await add_supplier(tx, draft, self.second.sealer)
            for slug in slugs:
                product = self.second.products[slug]
                first_minor = product.face_minor or product.face_min_minor
                assert first_minor is not None
                await add_offer(
                    tx,
                    row,
                    product.product_id,
                    sku=slug,
                    face_minor=first_minor,
                    face_to_minor=product.face_max_minor,
                )
        await self.quoted()
        return name

    async def quoted(self) -> None:
        """Have the worker ask for prices now."""
        pool = self.second.pool
        await pool.execute("UPDATE offer SET quoted_at = NULL, quote_id = NULL")
        await until(lambda: pool.fetchval("SELECT NOT EXISTS (SELECT FROM offer WHERE quote_id IS NULL)"))
        # Every process sees a product's first offer after a second.
        self.second.order_service._caches.offers._checked_at = -10.0

    async def purchases(self, name: str) -> list[tuple[int, int, int, str | None]]:
        """What was bought there: status, codes asked for, codes that came, and why it failed."""
        rows = await self.second.pool.fetch(
            "SELECT a.status, a.count, a.codes, a.reason FROM attempt a JOIN supplier s ON s.id = a.supplier_id"
            " WHERE s.name = $1 ORDER BY a.placed_at, a.count DESC",
            name,
        )
        return [tuple(row) for row in rows]

    async def until_purchase(self, name: str, *statuses: int) -> None:
        """Wait until the newest purchase there is as far as that."""

        async def far_enough() -> bool:
            made = await self.purchases(name)
            return bool(made) and made[-1][0] in statuses

        await until(far_enough)

    async def ask_now(self) -> None:
        """Have the worker look up now what is not known, instead of at the end of its pause."""
        await self.second.pool.execute("UPDATE attempt SET ask_at = now() WHERE status = 1")

    async def assert_both_books_agree(self, state: State = State.LIVE) -> None:
        """Each shop's books balance, and what the first sold to us is what the second bought, to the cent."""
        await self.first.assert_books_balance()
        await self.second.assert_books_balance()
        sold = await self.first.pool.fetchrow(
            "SELECT coalesce(sum(lines_finished), 0), coalesce(sum(charged_minor - refunded_minor), 0) FROM orders"
            " WHERE company_id = $1 AND (id & 1) = $2",
            self.us.id,
            int(state),
        )
        bought = await self.second.pool.fetchrow(
            "SELECT coalesce(sum(l.size), 0), coalesce(sum(l.size * l.purchase_minor), 0) FROM lot l"
            " JOIN attempt a ON a.id = l.attempt_id WHERE l.state = $1",
            int(state),
        )
        assert sold is not None
        assert bought is not None
        assert tuple(sold) == tuple(bought), "what one sold is not what the other bought"
        balance = await self.first.balance(self.us, state=state)
        assert FUNDS_MINOR - balance.minor == sold[1]
        assert await self.first.held(self.us, state=state) == 0
