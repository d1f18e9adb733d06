"""Confirm order: debit and deliver, now or later."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from tests.patience import HANG_S
from tests.shop import Shop, open_shop
from voucherd.catalogue.texts import read_selling
from voucherd.db import Pool
from voucherd.money import Money


def lines(order: dict[str, Any]) -> list[dict[str, Any]]:
    """All lines of an order."""
    return [line for item in order["items"] for line in item["orderLines"]]


async def test_a_confirmed_order_is_finished_in_both_versions(quiet_shop: Shop) -> None:
    """Contract 4: 1.03 with extended lines, 1.00 with short ones; every line has its code, the balance is debited."""
    shop = quiet_shop
    company = await shop.company(balance="100.00 EUR")
    await shop.product("gift-10", price="9.50 EUR", vat_category="single_purpose")
    codes = await shop.stock("gift-10", 6)

    extended = await shop.create(company, ("gift-10", 3))
    extended = await shop.confirm(company, extended["trx"])
    short = await shop.create(company, ("gift-10", 3))
    short = await shop.confirm(company, short["trx"], version="1.00")

    for order, some in ((extended, codes[:3]), (short, codes[3:])):
        assert (order["orderStatus"], order["paymentStatus"]) == ("finished", "paid")
        assert order["items"][0]["linesCompleted"] == 3
        assert "dateExpires" not in order
        assert [(line["voucherCode"], line["voucherSerial"]) for line in lines(order)] == some
        assert {line["status"] for line in lines(order)} == {"finished"}
        assert await shop.events(order["trx"]) == ["order.created", "order.finished"]
    assert set(lines(short)[0]) == {"tag", "status", "voucherCode", "voucherSerial"}
    line = lines(extended)[1]
    assert line["redemptionLink"] == line["voucherUrl"] == f"{shop.settings.public_url}/r/{line['token']}"
    assert shop.ids.line_of_token(line["token"]) == shop.ids.line_of_number(line["id"])
    assert (line["externalSupplier"], line["purchasePriceAmount"], line["commissionEur"]) == (
        "wholesale",
        9.0,
        0.5,
    )
    assert line["externalId"] == f"{line['offerId'].removeprefix('LOT-')}-1"
    # 6 × (9.50 + 2.00 VAT).
    assert await shop.balance(company) == Money.read("31.00 EUR")
    await shop.assert_books_balance()


async def test_the_whole_balance_can_be_spent_and_not_a_cent_more(quiet_shop: Shop) -> None:
    """Contract 1: the balance in the selected payment currency must cover the order."""
    shop = quiet_shop
    company = await shop.company(balance="19.00 EUR")
    await shop.product("gift-10", stock=5)
    first, second = [(await shop.create(company, ("gift-10", 2)))["trx"] for _ in range(2)]

    assert (await shop.confirm(company, first))["orderStatus"] == "finished"
    await shop.assert_refused(shop.finalise("confirm", company, second), 402, "insufficient balance")

    await shop.top_up(company, "18.99 EUR")
    await shop.assert_refused(shop.finalise("confirm", company, second), 402, "insufficient balance")
    await shop.top_up(company, "0.01 EUR")
    assert (await shop.confirm(company, second))["orderStatus"] == "finished"
    assert await shop.balance(company) == Money.read("0.00 EUR")
    await shop.assert_books_balance()


async def test_money_in_another_currency_does_not_pay(quiet_shop: Shop) -> None:
    """Contract 1: a wallet for each currency, and only the selected one pays."""
    shop = quiet_shop
    company = await shop.company(balance="1000.00 USD")
    await shop.fx("USD", 90_000_000)
    await shop.product("gift-10", stock=5)
    in_euro = (await shop.create(company, ("gift-10", 1)))["trx"]
    in_dollar = (await shop.create(company, ("gift-10", 1), currency="USD"))["trx"]

    await shop.assert_refused(shop.finalise("confirm", company, in_euro), 402, "insufficient balance")
    assert (await shop.confirm(company, in_dollar))["orderStatus"] == "finished"
    assert await shop.balance(company, "USD") == Money.read("989.44 USD")
    await shop.assert_books_balance()


async def test_prices_rates_and_vat_stay_as_they_were_at_create(quiet_shop: Shop) -> None:
    """OP-42: whatever the catalogue says by then, and the product of the line is the one that was ordered."""
    shop = quiet_shop
    company = await shop.company(balance="100.00 USD")
    await shop.fx("USD", 90_000_000)
    await shop.product("gift-10", price="9.00 EUR", vat_category="single_purpose", stock=5)
    order = await shop.create(company, ("gift-10", 2), currency="USD")
    assert order["priceInclVat"] == 24.20  # 2 × (10.00 + 2.10).

    await shop.set_product(
        "gift-10", selling=read_selling("99.00 EUR", None), name="Dearer", async_delivery=True
    )
    await shop.fx("USD", 10_000_000)
    await shop.pool.execute("UPDATE vat_rate SET rate_bp = 9900")
    confirmed = await shop.confirm(company, order["trx"])
    found = await shop.find(company, order["trx"])

    fields = ("priceAmount", "priceVat", "priceInclVat", "priceFx", "priceCurrency")
    for later in (confirmed, found):
        assert [later[name] for name in fields] == [order[name] for name in fields]
        for name in ("name", "slug", "isStocked"):
            assert later["items"][0]["product"][name] == order["items"][0]["product"][name]
        for before, after in zip(lines(order), lines(later), strict=True):
            kept = [name for name in before if name.startswith("price") or name in ("id", "tag", "product")]
            assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    assert await shop.balance(company, "USD") == Money.read("75.80 USD")
    dearer = await shop.create(company, ("gift-10", 1), currency="EUR")
    assert dearer["items"][0]["product"]["name"] == "Dearer"
    assert dearer["priceAmount"] == 99.0
    await shop.assert_books_balance()


async def test_a_product_that_was_withdrawn_or_sold_meanwhile_is_refused_and_can_come_back(
    quiet_shop: Shop,
) -> None:
    """Contract 7, OP-43: offers first, then stock; the order stays created and its price stays locked."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10", stock=3)
    order = await shop.create(company, ("gift-10", 3))
    other = await shop.create(company, ("gift-10", 1))
    await shop.confirm(company, other["trx"])

    refused = shop.finalise("confirm", company, order["trx"])
    await shop.assert_refused(refused, 422, "Product Gift 10 is out of stock")
    await shop.set_product("gift-10", active=False)
    refused = shop.finalise("confirm", company, order["trx"])
    await shop.assert_refused(refused, 422, "some offers not available: Gift 10")

    await shop.set_product("gift-10", active=True)
    await shop.stock("gift-10", 1)
    assert (await shop.confirm(company, order["trx"]))["orderStatus"] == "finished"
    await shop.assert_books_balance()


async def test_an_order_that_is_not_delivered_in_time_comes_back_pending(shop: Shop) -> None:
    """Contract 3, 8: paid, with the finished lines shown and the others pending; delivery goes on in the background."""
    company = await shop.company(balance="100.00 EUR")
    await shop.product("later", async_delivery=True)
    codes = await shop.stock("later", 2)
    order = await shop.create(company, ("later", 5))

    started = time.monotonic()
    pending = await shop.confirm(company, order["trx"])
    assert time.monotonic() - started >= 1.0

    assert (pending["orderStatus"], pending["paymentStatus"]) == ("pending", "paid")
    assert pending["items"][0]["linesCompleted"] == 2
    assert [line.get("voucherCode") for line in lines(pending)] == [
        codes[0][0],
        codes[1][0],
        None,
        None,
        None,
    ]
    assert [set(line) for line in lines(pending)[2:]] == [{"tag", "status"}] * 3
    assert {line["status"] for line in lines(pending)[2:]} == {"pending"}
    found = await shop.find(company, order["trx"])
    assert lines(found)[4]["allowAsyncDelivery"] is True
    assert lines(found)[4]["voucherCode"] is None
    assert await shop.balance(company) == Money.read("52.50 EUR")

    codes += await shop.stock("later", 3)
    finished = await shop.until_status(company, order["trx"], "finished")
    assert [line["voucherCode"] for line in lines(finished)] == [code for code, _ in codes]
    assert [line["tag"] for line in lines(finished)] == [line["tag"] for line in lines(order)]
    assert await shop.balance(company) == Money.read("52.50 EUR")
    assert await shop.events(order["trx"]) == ["order.created", "order.pending", "order.finished"]
    await shop.assert_books_balance()


@pytest.mark.parametrize("version", ["1.00", "1.03"])
async def test_a_confirm_that_waits_is_answered_as_soon_as_the_codes_arrive(
    pool: Pool, database_url: str, tmp_path: Path, version: str
) -> None:
    """Contract 4: the operation waits up to 20-30 seconds for completion, and not longer than it must."""
    async with open_shop(pool, database_url, tmp_path, confirm_wait_s=2 * HANG_S) as shop:
        company = await shop.company()
        await shop.product("later", async_delivery=True, stock=1)
        order = await shop.create(company, ("later", 2))

        confirm = asyncio.create_task(shop.confirm(company, order["trx"], version=version))
        await shop.until(company, order["trx"], lambda found: found["items"][0]["linesCompleted"] == 1)
        await shop.stock("later", 1)
        confirmed = await confirm

        assert confirmed["orderStatus"] == "finished"
        assert len({line["voucherCode"] for line in lines(confirmed)}) == 2
        await shop.assert_books_balance()


async def test_a_confirm_whose_order_is_cancelled_meanwhile_says_so(
    pool: Pool, database_url: str, tmp_path: Path
) -> None:
    """Contract 4: the operation returns the order as it stands; OP-05: the cancelled lines have tag and status only."""
    async with open_shop(pool, database_url, tmp_path, confirm_wait_s=2 * HANG_S) as shop:
        company = await shop.company(balance="100.00 EUR")
        await shop.product("later", async_delivery=True, stock=1)
        order = await shop.create(company, ("later", 3))
        confirm = asyncio.create_task(shop.confirm(company, order["trx"]))
        await shop.until_status(company, order["trx"], "pending")

        assert (await shop.cancel(company, order["trx"])).status_code == 200
        confirmed = await confirm

        assert (confirmed["orderStatus"], confirmed["paymentStatus"]) == ("cancelled", "partially_refunded")
        assert [line["status"] for line in lines(confirmed)] == ["finished", "cancelled", "cancelled"]
        assert set(lines(confirmed)[2]) == {"tag", "status"}
        assert await shop.balance(company) == Money.read("90.50 EUR")
        await shop.assert_books_balance()


async def test_some_items_can_wait_and_some_can_not(quiet_shop: Shop) -> None:
    """OP-43: a line that may not wait must be deliverable now, or the whole order is refused."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("now", stock=1)
    await shop.product("later", async_delivery=True)
    order = await shop.create(company, ("later", 2), ("now", 1))
    rival = await shop.create(company, ("now", 1))
    await shop.confirm(company, rival["trx"])

    refused = shop.finalise("confirm", company, order["trx"])
    await shop.assert_refused(refused, 422, "Product Now is out of stock")
    await shop.stock("now", 1)
    pending = await shop.confirm(company, order["trx"])
    assert [item["linesCompleted"] for item in pending["items"]] == [0, 1]
    await shop.assert_books_balance()
