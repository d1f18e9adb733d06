"""Prices of a company's own, and sales below cost, over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.shop import Company, Shop, open_shop
from voucherd.catalogue import price_book, price_store
from voucherd.catalogue import store as catalogue
from voucherd.catalogue.price_list_files import PriceChange, entry_of
from voucherd.catalogue.price_store import PriceTarget
from voucherd.db import Pool, transaction
from voucherd.ids import State


@pytest.fixture
async def list_shop(
    pool: Pool, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Shop]:
    """A shop that sees new lists at once, and sells at any loss."""
    monkeypatch.setattr(price_book, "EPOCH_AGE_S_MAX", 0)
    async with open_shop(pool, database_url, tmp_path, with_worker=False, margin_min_bp=-10_000) as opened:
        yield opened


async def give_list(shop: Shop, name: str, *companies: Company) -> int:
    """A new price list for these companies."""
    async with transaction(shop.pool) as tx:
        list_id = await price_store.add_list(tx, name)
        for company in companies:
            await price_store.assign(tx, company.id, list_id)
    return list_id


async def say(shop: Shop, list_id: int, wanted: PriceChange) -> None:
    """Let the list say this."""
    async with transaction(shop.pool) as tx:
        version = (
            (await catalogue.current(tx, [wanted.product]))[wanted.product].version
            if wanted.product
            else None
        )
        brand_id = await catalogue.find_brand(tx, wanted.brand) if wanted.brand else None
        target = PriceTarget(None if version is None else version.product_id, brand_id, wanted.from_)
        await price_store.set_entry(tx, list_id, target, entry_of(wanted, version), wanted.until)


async def seen(shop: Shop, company: Company, slug: str, currency: str = "EUR", **more: Any) -> Any:
    """What one code costs the company, which the catalogue, a quote and an order must agree about."""
    item = {"productSlug": slug, "amount": 1, **more}
    query = "".join(f"&{name}={value}" for name, value in more.items())
    shown = await shop.call("GET", f"/api/1.03/product/{slug}?paymentCurrency={currency}{query}", company)
    quoted = await shop.call(
        "POST", "/api/1.03/order/quote", company, json={"items": [item], "paymentCurrency": currency}
    )
    order = await shop.create(company, item, currency=currency)
    prices = [order["priceAmount"], order["priceVat"], order["priceInclVat"]]
    assert prices == [quoted.json()[name] for name in ("priceAmount", "priceVat", "priceInclVat")]
    names = (
        "priceAmountInPaymentCurrency",
        "priceVatInPaymentCurrency",
        "priceInclVatInPaymentCurrency",
    )
    assert prices == [shown.json()[name] for name in names]
    listed = await shop.call(
        "GET", f"/api/1.03/product?slug={slug}&paymentCurrency={currency}{query}", company
    )
    assert listed.json()["data"] == [shown.json()]
    assert order["items"][0]["priceCurrency"] == shown.json()["priceCurrency"]
    return shown.json()


async def test_a_company_sees_and_pays_its_own_prices_and_nobody_else_s(list_shop: Shop) -> None:
    """OP-72: product over brand over everything, in the catalogue, in quotes and in orders; OP-42: what an order fixed
    stays."""
    shop = list_shop
    gold, friend, plain = [await shop.company() for _ in range(3)]
    await shop.fx("USD", 92_000_000)
    await shop.product("gift-10", price="9.50 EUR", stock=20)
    await shop.product("month", price="10.00 EUR", vat_category="single_purpose", stock=20, brand="Other")
    await shop.product(
        "open-eur", face_range="5-100 EUR", fee="1.05+0.10", brand="Other", async_delivery=True
    )
    before = await shop.create(gold, ("gift-10", 2))
    list_id = await give_list(shop, "gold", gold, friend)
    await say(shop, list_id, PriceChange(discount="1%"))
    await say(shop, list_id, PriceChange(brand="other", discount="10%"))
    await say(shop, list_id, PriceChange("gift-10", price="9.20 USD"))

    for company in (gold, friend):
        shown = await seen(shop, company, "gift-10", "USD")
        assert (shown["priceAmount"], shown["priceCurrency"]) == (9.2, "usd")
        assert "discount" not in shown
        shown = await seen(shop, company, "month")
        assert (shown["priceAmount"], shown["priceVat"], shown["discount"]) == (9.0, 1.89, 0.1)
        shown = await seen(shop, company, "open-eur", faceValue=50)
        # (50 × 1.05 + 0.10) × 0.9 = 47.34: below the face value, so no fee and no VAT.
        assert (shown["priceAmount"], shown["priceVat"], shown["feeVariable"]) == (47.34, 0, 1.05)
    for slug, price in (("gift-10", 9.5), ("month", 10)):
        shown = await seen(shop, plain, slug)
        assert (shown["priceAmount"], shown["priceCurrency"], "discount" in shown) == (price, "eur", False)

    await say(shop, list_id, PriceChange("open-eur", fee="1.01+0.05"))
    shown = await seen(shop, gold, "open-eur", faceValue=50)
    assert (shown["priceAmount"], shown["feeVariable"], shown["feeFixed"]) == (50.55, 1.01, 0.05)
    assert (await shop.find(gold, before["trx"]))["priceAmount"] == 19
    await shop.confirm(gold, before["trx"])
    sandbox = await shop.create(gold, ("month", 1), state=State.SANDBOX)
    assert sandbox["priceAmount"] == 9
    await shop.assert_books_balance()


async def test_of_several_entries_the_one_that_began_last_is_in_force(list_shop: Shop) -> None:
    """OP-72: a promotion lies over what it replaces, from its first day to its last, in UTC."""
    shop = list_shop
    company = await shop.company()
    await shop.product("gift-10", price="10.00 EUR", stock=20)
    list_id = await give_list(shop, "gold", company)
    today: date = await shop.pool.fetchval("SELECT (now() AT TIME ZONE 'UTC')::date")
    day = timedelta(days=1)

    async def costs() -> float:
        return float((await seen(shop, company, "gift-10"))["priceAmount"])

    await say(shop, list_id, PriceChange("gift-10", discount="1%"))
    assert await costs() == 9.9
    await say(shop, list_id, PriceChange("gift-10", discount="2%", from_=today + day))
    await say(shop, list_id, PriceChange("gift-10", discount="3%", from_=today - 9 * day, until=today - day))
    assert await costs() == 9.9
    await say(shop, list_id, PriceChange("gift-10", discount="4%", from_=today - 8 * day, until=today))
    assert await costs() == 9.6
    await say(shop, list_id, PriceChange("gift-10", discount="5%", from_=today))
    assert await costs() == 9.5
    await say(shop, list_id, PriceChange("gift-10", discount="6%", from_=today))
    assert await costs() == 9.4
    await shop.set_product("gift-10", active=False)
    await shop.set_product("gift-10", active=True)
    async with transaction(shop.pool) as tx:
        assert await price_store.unassign(tx, company.id)
        assert not await price_store.unassign(tx, company.id)
    assert await costs() == 10


async def test_companies_without_a_list_pay_nothing_for_those_that_have_one(
    list_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-72: what lists say is not even looked at for them, so their orders take no longer."""
    shop = list_shop
    gold, plain = await shop.company(), await shop.company()
    await shop.product("gift-10", stock=20)
    await say(shop, await give_list(shop, "gold", gold), PriceChange(discount="1%"))
    looked: list[list[tuple[int, int, str]]] = []
    look = price_store.in_force

    async def noted(conn: Any, wanted: Any) -> Any:
        looked.append(list(wanted))
        return await look(conn, looked[-1])

    monkeypatch.setattr(price_store, "in_force", noted)
    assert (await seen(shop, plain, "gift-10"))["priceAmount"] == 9.5
    assert looked == []
    assert (await seen(shop, gold, "gift-10"))["priceAmount"] == 9.41
    assert len(looked) == 4


async def test_a_price_for_another_face_value_does_not_apply(list_shop: Shop) -> None:
    """OP-72: a fixed price is for the face value that it was agreed for; the next entry takes its place."""
    shop = list_shop
    company = await shop.company()
    await shop.product("gift-10", price="9.50 EUR", stock=20)
    list_id = await give_list(shop, "gold", company)
    await say(shop, list_id, PriceChange("gift-10", price="9.00 EUR"))
    await say(shop, list_id, PriceChange(discount="1%"))
    assert (await seen(shop, company, "gift-10"))["priceAmount"] == 9
    async with transaction(shop.pool) as tx:
        await tx.execute("UPDATE price_entry SET face_minor = 500 WHERE face_minor IS NOT NULL")
    assert (await seen(shop, company, "gift-10"))["priceAmount"] == 9.41


async def test_a_sale_below_cost_is_not_available_and_only_the_operator_hears_why(quiet_shop: Shop) -> None:
    """OP-73, OP-21: refused like a product that is not there, unless the operator allows it; the sandbox is exempt."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10", price="9.50 EUR")
    await shop.stock("gift-10", 5, cost="9.51 EUR")
    with capture_logs() as logs:
        await shop.assert_refused(
            shop.try_create(company, ("gift-10", 1)), 422, "Some offers not available: Gift 10"
        )
    (line,) = [log for log in logs if log["event"] == "sale_at_a_loss_refused"]
    assert (line["company_id"], line["products"]) == (company.id, ["gift-10: 9.50 EUR for 9.51 EUR"])
    assert shop.order_service.losses.refused == 1
    cart = {"items": [{"productSlug": "gift-10", "amount": 1}], "paymentCurrency": "EUR"}
    quote = shop.call("POST", "/api/1.03/order/quote", company, json=cart)
    await shop.assert_refused(quote, 422, "Some offers not available: Gift 10")
    await shop.create(company, ("gift-10", 1), state=State.SANDBOX)

    await shop.stock("gift-10", 1, cost="9.50 EUR")
    assert await shop.create(company, ("gift-10", 1))
    await shop.set_product("gift-10", allow_loss=True, name="Gift of 10")
    order = await shop.create(company, ("gift-10", 6))
    assert (await shop.confirm(company, order["trx"]))["orderStatus"] == "finished"
    await shop.assert_books_balance()
