"""What the operator changes about suppliers while they are at work."""

from __future__ import annotations

from tests.patience import until_true
from tests.purchasing.conftest import Market
from tests.purchasing.fake import FakeSupplier, waits
from voucherd.db import transaction
from voucherd.ids import State
from voucherd.suppliers.store import SupplierDraft, add_offer, add_supplier


async def test_a_supplier_that_was_added_a_moment_ago_is_asked_for_its_prices(market: Market) -> None:
    """OP-44: whoever takes on to ask a supplier asks it, though it has read the list of suppliers before."""
    shop = market.shop
    product = await shop.product("gift")
    await market.supplier("old", "gift")
    market.suppliers["new"] = fresh = FakeSupplier(price="8.00 EUR")
    async with transaction(shop.pool) as tx:
        row = await add_supplier(tx, SupplierDraft("new", "http", State.LIVE, {}), shop.sealer)
        await add_offer(tx, row, product.product_id, sku="new-gift", face_minor=1_000)

    assert await market.dispatcher.refresh_quotes() == 1
    await market.dispatcher.settled()

    assert fresh.quotes == 1
    assert await shop.pool.fetchval("SELECT count(*) FROM offer WHERE quote_id IS NOT NULL") == 2


async def test_a_change_of_a_supplier_does_not_break_a_purchase_that_is_under_way(market: Market) -> None:
    """Decision 12: the adapter that a call goes through is closed when the call has ended, not before."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR")
    fake = await market.supplier("slow", "gift")
    fake.deeds.append(waits)
    company = await shop.company(balance="100.00 EUR")
    trx = (await shop.create(company, ("gift", 2)))["trx"]
    await shop.confirm(company, trx)
    await market.dispatcher.dispatch()
    await until_true(lambda: fake.calls)
    closed_at: list[int] = []

    async def close() -> None:
        closed_at.append(len(fake.sold))

    fake.close = close  # type: ignore[method-assign]
    await shop.pool.execute("UPDATE supplier SET timeout_s = 2")
    await shop.pool.execute("UPDATE offer SET quoted_at = now() - interval '1 day'")
    market.dispatcher._read_at = -10.0
    quotes = fake.quotes
    await market.dispatcher.refresh_quotes()
    await until_true(lambda: fake.quotes > quotes)
    early = list(closed_at)
    fake.free.set()
    await market.dispatcher.settled()

    assert early == []
    assert closed_at == [1]
    assert (await shop.find(company, trx))["orderStatus"] == "finished"
    await shop.assert_books_balance()
