"""A table of waits to claim from: companies, orders, suppliers and offers as rows, without an API."""

from __future__ import annotations

from typing import Final

from voucherd.db import Pool, transaction
from voucherd.ids import State
from voucherd.money import RATE_ONE
from voucherd.suppliers.store import (
    FreshQuote,
    SupplierDraft,
    SupplierRow,
    add_offer,
    add_supplier,
    save_quotes,
    supplier,
)
from voucherd.vault.seal import Sealer

SEALER: Final = Sealer(bytes(range(32)))
COMPANIES: Final = 5
LINES: Final = 10_000

_GROUND: Final = f"""
INSERT INTO company (name, country) SELECT 'Company ' || n, 'NL' FROM generate_series(1, {COMPANIES}) n;
INSERT INTO brand (slug, name) VALUES ('play', 'Play');
INSERT INTO product (slug, version_id) SELECT 'play-' || n, n FROM generate_series(1, 2) n;
INSERT INTO product_version (product_id, brand_id, name, product_type, category, redeem_type, region, vat_category,
    async_delivery, face_currency, face_minor, price_minor, price_currency)
SELECT n, 1, 'Play ' || n, 'giftcard', 'games', 'currency', 'ww', 'exempt', true, 'EUR', 1000, 990, 'EUR'
FROM generate_series(1, 2) n;
INSERT INTO orders (id, company_id, type, status, payment_status, payment_currency, payment_fx_e8, price_minor,
    vat_minor, charged_minor, lines, created_at, expires_at, updated_at, deadline_at)
SELECT n * 2, (n - 1) % {COMPANIES} + 1, 0, 1, 1, 'EUR', 100000000, 100, 0, 100, {LINES}, now(), now(), now(),
       now() + interval '1 day'
FROM generate_series(1, 60) n;
INSERT INTO order_item (order_id, item_no, version_id, amount, first_line, face_minor, face_fx_e8, price_currency,
    price_fx_e8, price_minor, vat_minor, turnover_minor, pay_price_minor, pay_vat_minor, pay_turnover_minor, offers)
SELECT n * 2, 0, 1, {LINES}, 0, 1000, 100000000, 'EUR', 100000000, 0, 0, 0, 0, 0, 0, '{{}}'
FROM generate_series(1, 60) n;
"""  # noqa: S608 - Numbers of ours.


async def ground(pool: Pool) -> None:
    """Companies 1 to 5, products 1 and 2, and pending orders 2, 4, 6 … of the companies in turn, large as may be."""
    async with transaction(pool) as tx:
        await tx.execute(_GROUND)


async def stall(
    pool: Pool, name: str = "one", *, stock: int = 1_000_000, concurrency_max: int = 3
) -> SupplierRow:
    """A supplier with fresh quotes for both products."""
    draft = SupplierDraft(name, "http", State.LIVE, {}, concurrency_max=concurrency_max, timeout_s=1)
    async with transaction(pool) as tx:
        row = await add_supplier(tx, draft, SEALER)
        for product_id in (1, 2):
            await add_offer(tx, row, product_id, sku=f"P{product_id}", face_minor=1_000)
        fresh = [FreshQuote(product_id, 1_000, stock, 900, None, "EUR", RATE_ONE) for product_id in (1, 2)]
        await save_quotes(tx, row, fresh, ())
        return await supplier(tx, name)


async def queue_up(
    pool: Pool, order_id: int, *ranges: tuple[int, int], place: str = "supplier_id = 1", urgent: bool = False
) -> None:
    """Let ranges of an order's lines wait in a place."""
    for line_from, line_to in ranges:
        await pool.execute(
            "INSERT INTO waiting (state, product_id, face_minor, company_id, order_id, line_from, line_to, not_before,"
            " deadline_at, urgent) SELECT 0, 1, 1000, company_id, id, $2, $3, now(), deadline_at, $4 FROM orders"
            " WHERE id = $1",
            order_id,
            line_from,
            line_to,
            urgent,
        )
        await pool.execute(
            f"UPDATE waiting SET {place} WHERE order_id = $1 AND line_from = $2",  # noqa: S608 - A test's own words.
            order_id,
            line_from,
        )
    await pool.execute("UPDATE orders SET resolving = $2 WHERE id = $1", order_id, urgent)
