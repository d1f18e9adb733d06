"""Orders across currencies: rates that are too old, and margins."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from tests.shop import Shop
from voucherd.catalogue import fx_store, price_book
from voucherd.catalogue import store as catalogue
from voucherd.catalogue.fx import DayRates
from voucherd.db import transaction


async def test_an_order_across_currencies_needs_a_fresh_rate(quiet_shop: Shop) -> None:
    """OP-71: a rate of eight days ago is refused, in Create, in Quote and in the catalogue's prices; one currency
    alone needs none."""
    shop = quiet_shop
    company = await shop.company(balance="100.00 USD")
    await shop.top_up(company, "100.00 EUR")
    await shop.product("gift-10", stock=5)
    await shop.product("gift-usd", face="10 USD", price="9.50 USD", stock=5)
    today: date = await shop.pool.fetchval("SELECT (now() AT TIME ZONE 'UTC')::date")
    old = today - timedelta(days=8)
    async with transaction(shop.pool) as tx:
        await catalogue.set_rates(tx, [DayRates(old, {"USD": 92_000_000})], "ecb")

    words = f"paymentCurrency: the exchange rate for USD is of {old}, which is too old"
    await shop.assert_refused(shop.try_create(company, ("gift-10", 1), currency="USD"), 400, words)
    await shop.assert_refused(shop.try_create(company, ("gift-usd", 1), currency="EUR"), 400, words)
    cart = {"items": [{"productSlug": "gift-10", "amount": 1}], "paymentCurrency": "USD"}
    await shop.assert_refused(shop.call("POST", "/api/1.03/order/quote", company, json=cart), 400, words)
    listed = (await shop.call("GET", "/api/1.03/product?paymentCurrency=usd", company)).json()["data"]
    assert {one["slug"]: one["priceInclVatInPaymentCurrency"] for one in listed} == {
        "gift-10": None,
        "gift-usd": 9.5,
    }
    await shop.create(company, ("gift-10", 1), currency="EUR")
    await shop.create(company, ("gift-usd", 1), currency="USD")

    async with transaction(shop.pool) as tx:
        await catalogue.set_rates(tx, [DayRates(today - timedelta(days=7), {"USD": 92_000_000})], "ecb")
    order = await shop.create(company, ("gift-10", 1), currency="USD")
    assert order["priceAmount"] == 10.33
    await shop.confirm(company, order["trx"])
    await shop.assert_books_balance()


async def test_a_margin_is_charged_and_the_rates_on_the_wire_stay_plain(
    quiet_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-71, OP-42: what Create fixed is charged, whatever the margin is by then."""
    monkeypatch.setattr(price_book, "EPOCH_AGE_S_MAX", 0)
    shop = quiet_shop
    company = await shop.company(balance="100.00 USD")
    await shop.fx("USD", 92_319_055)
    await shop.product("gift-10", price="10.33 EUR", stock=5)
    plain = await shop.create(company, ("gift-10", 2), currency="USD")
    async with transaction(shop.pool) as tx:
        await fx_store.set_margin(tx, "EUR", "USD", 150)
    dearer = await shop.create(company, ("gift-10", 2), currency="USD")
    shown = (await shop.call("GET", "/api/1.03/product/gift-10?paymentCurrency=USD", company)).json()
    async with transaction(shop.pool) as tx:
        assert await fx_store.remove_margin(tx, "EUR", "USD")
        assert not await fx_store.remove_margin(tx, "EUR", "USD")

    assert (plain["priceAmount"], dearer["priceAmount"]) == (22.38, 22.72)
    assert (shown["priceAmount"], shown["priceAmountInPaymentCurrency"]) == (10.33, 11.36)
    for order in (plain, dearer):
        (item,) = order["items"]
        line = item["orderLines"][0]
        assert (order["priceFx"], item["priceFx"], line["paymentCurrencyFx"]) == (0.92319055, 1, 0.92319055)
        assert (item["singlePriceAmount"], item["totalPriceAmount"]) == (10.33, 20.66)
    await shop.confirm(company, dearer["trx"])
    assert str(await shop.balance(company, "USD")) == "77.28 USD"
    assert (await shop.create(company, ("gift-10", 2), currency="USD"))["priceAmount"] == 22.38
    await shop.assert_books_balance()
