"""The shortest path through the service."""

from __future__ import annotations

from tests.shop import Shop
from voucherd.money import Money


async def test_a_confirmed_order_costs_its_price_and_delivers_its_codes(shop: Shop) -> None:
    """Contract 3: created, then confirmed, then finished; the balance is debited and the codes are on the lines."""
    company = await shop.company(balance="50.00 EUR")
    await shop.product("gift-10", price="9.50 EUR")
    codes = await shop.stock("gift-10", 3)

    order = await shop.create(company, ("gift-10", 2))
    assert order["orderStatus"] == "created"
    assert await shop.balance(company) == Money.read("50.00 EUR")

    confirmed = await shop.confirm(company, order["trx"])

    assert confirmed["orderStatus"] == "finished"
    lines = confirmed["items"][0]["orderLines"]
    assert [(line["voucherCode"], line["voucherSerial"]) for line in lines] == codes[:2]
    assert await shop.balance(company) == Money.read("31.00 EUR")
    await shop.assert_books_balance()


async def test_an_unconfirmed_order_is_deleted_by_cancel(shop: Shop) -> None:
    """Contract 3: cancel before confirmation answers 204 and the trx can no longer be retrieved."""
    company = await shop.company()
    await shop.product("gift-10", stock=1)
    order = await shop.create(company, ("gift-10", 1))

    cancelled = await shop.cancel(company, order["trx"])

    assert (cancelled.status_code, cancelled.content) == (204, b"")
    found = await shop.call("GET", f"/api/1.03/order/{order['trx']}", company)
    assert (found.status_code, found.text) == (404, "order not found")
    await shop.assert_books_balance()
