"""What a process remembers of the shop is never older than the call that it serves."""

from __future__ import annotations

import pytest

from tests.shop import Shop
from voucherd.orders import reading, shop_book
from voucherd.orders.caches import RecentOrders


async def test_an_order_is_remembered_as_it_would_be_read(shop: Shop) -> None:
    """Confirm decides on the order that Create made, so the two have to be the same in every field."""
    company = await shop.company(country="NL", balance="100.00 EUR")
    for slug in ("gift-10", "gift-20"):
        await shop.product(slug, stock=5)
    made = await shop.create(company, ("gift-10", 2), ("gift-20", 1), reference="our own words")
    order_id = shop.ids.order_id(made["trx"])
    assert order_id is not None

    caches = shop.order_service._caches
    async with shop.pool.acquire() as conn:
        read = await reading.read(conn, [order_id], caches.versions)

    assert caches.recent.take(order_id) == read[order_id]
    assert caches.recent.take(order_id) is None, "it is wanted once"


async def test_an_order_that_somebody_else_changed_is_read_again(shop: Shop) -> None:
    """OP-23: another process may have finalised, cancelled or removed it since."""
    company = await shop.company(balance="100.00 EUR")
    await shop.product("gift-10", stock=5)
    cancelled = (await shop.create(company, ("gift-10", 1)))["trx"]
    recent = shop.order_service._caches.recent
    order_id = shop.ids.order_id(cancelled)
    assert order_id is not None
    made = recent.take(order_id)
    assert made is not None
    await shop.cancel(company, cancelled)
    recent.keep([made])

    answer = await shop.finalise("confirm", company, cancelled)

    assert answer.status_code == 404
    await shop.assert_books_balance()


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ("UPDATE product SET active = false", 422),
        ("UPDATE company SET country = 'DE' WHERE id = {company}", 201),
        ("UPDATE company SET active = false WHERE id = {company}", 400),
        ("UPDATE vat_rate SET rate_bp = 1000 WHERE country = 'NL'", 201),
    ],
)
async def test_every_change_is_seen_by_the_next_cart(shop: Shop, change: str, status: int) -> None:
    """No price and no sale is decided by what was true before, however soon the next call comes."""
    company = await shop.company(country="NL", balance="100.00 EUR")
    await shop.product("gift-10", price="9.50 EUR", stock=5, vat_category="single_purpose")
    before = await shop.create(company, ("gift-10", 1))

    await shop.pool.execute(change.format(company=company.id))
    body = {"items": [{"productSlug": "gift-10", "amount": 1}], "paymentCurrency": "EUR"}
    after = await shop.call("POST", "/api/1.03/order", company, json=body)

    assert after.status_code == status, after.text
    if status == 201:
        assert after.json()["priceVat"] != before["priceVat"]


async def test_a_shop_that_is_larger_than_the_memory_sells_all_the_same(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the bound what is remembered is read anew; nothing is missing in between."""
    monkeypatch.setattr(shop_book, "KEPT_MAX", 2)
    companies = [await shop.company(balance="100.00 EUR") for _ in range(4)]
    slugs = [f"gift-{at}" for at in range(4)]
    for slug in slugs:
        await shop.product(slug, stock=10)

    for company in companies:
        made = await shop.create(company, *[(slug, 1) for slug in slugs])
        answer = await shop.finalise("confirm", company, made["trx"])
        assert answer.json()["orderStatus"] == "finished"

    await shop.assert_books_balance()


def test_the_orders_that_came_first_are_forgotten_first() -> None:
    """The memory is bounded."""
    from tests.handmade import order, product, unit

    recent = RecentOrders(size_max=2)
    recent.keep([order(number, (product(), unit(), 1)) for number in (2, 4, 6)])

    assert [recent.take(number) is not None for number in (2, 4, 6)] == [False, True, True]
