"""Cancel order: deleted before confirmation, refunded to the cent after it."""

from __future__ import annotations

from pathlib import Path

from tests.shop import Shop, open_shop
from voucherd.db import Pool
from voucherd.ids import State
from voucherd.money import Money


async def test_a_created_order_is_deleted_and_gone_for_every_reader(quiet_shop: Shop) -> None:
    """Contract 3, OP-53: 204 without a body; no charge; the row is kept for the operator's audit."""
    shop = quiet_shop
    company = await shop.company(balance="50.00 EUR")
    await shop.product("gift-10", stock=2)
    trx = (await shop.create(company, ("gift-10", 2), reference="mine"))["trx"]

    response = await shop.cancel(company, trx)

    assert (response.status_code, response.content) == (204, b"")
    assert "content-type" not in response.headers
    for version in ("1.00", "1.03", "Next"):
        gone = shop.call("GET", f"/api/{version}/order/{trx}", company)
        await shop.assert_refused(gone, 404, "order not found")
    for query in ("", f"?trx={trx}", "?reference=mine"):
        page = (await shop.call("GET", f"/api/1.03/order{query}", company)).json()
        assert page["data"] == []
        assert page["metadata"]["totalItems"] == 0
    await shop.assert_refused(shop.cancel(company, trx), 404, "order not found")
    assert await shop.pool.fetchval("SELECT status FROM orders") == 4
    assert await shop.balance(company) == Money.read("50.00 EUR")
    assert await shop.events(trx) == ["order.created", "order.deleted"]
    await shop.assert_books_balance()


async def test_a_partly_delivered_order_keeps_what_was_delivered_and_gets_the_rest_back(
    quiet_shop: Shop,
) -> None:
    """OP-45: 200 with the order; delivered lines stay delivered and paid, all others are refunded to the cent."""
    shop = quiet_shop
    company = await shop.company(balance="100.00 USD")
    await shop.fx("USD", 92_319_055)
    await shop.product("later", price="3.33 EUR", vat_category="single_purpose", async_delivery=True)
    await shop.product("more", price="0.07 EUR", vat_category="single_purpose", async_delivery=True, stock=1)
    codes = await shop.stock("later", 2)
    order = await shop.create(company, ("later", 5), ("more", 4), currency="USD")
    assert (await shop.confirm(company, order["trx"]))["orderStatus"] == "pending"
    # A unit is 3.61 + 0.76 and 0.08 + 0.01 (OP-50): 5 × 4.37 + 4 × 0.09.
    assert await shop.balance(company, "USD") == Money.read("77.79 USD")

    response = await shop.cancel(company, order["trx"])

    assert response.status_code == 200
    cancelled = response.json()
    assert (cancelled["orderStatus"], cancelled["paymentStatus"]) == ("cancelled", "partially_refunded")
    assert [item["linesCompleted"] for item in cancelled["items"]] == [2, 1]
    first, second = cancelled["items"]
    assert [line["status"] for line in first["orderLines"]] == ["finished"] * 2 + ["cancelled"] * 3
    assert [line["voucherCode"] for line in first["orderLines"]] == [
        codes[0][0],
        codes[1][0],
        None,
        None,
        None,
    ]
    assert [line["status"] for line in second["orderLines"]] == ["finished"] + ["cancelled"] * 3
    # 2 × 4.37 + 1 × 0.09 stay paid.
    assert await shop.balance(company, "USD") == Money.read("91.17 USD")
    assert cancelled["priceInclVat"] == order["priceInclVat"]
    assert (await shop.find(company, order["trx"])) == cancelled
    assert await shop.events(order["trx"]) == ["order.created", "order.pending", "order.cancelled"]

    # For good: stock that comes later is for others.
    await shop.stock("later", 5)
    assert await shop.worker.run_once("deliver") == 0
    await shop.assert_refused(shop.cancel(company, order["trx"]), 400, "Invalid order status")
    await shop.assert_books_balance()


async def test_an_order_of_which_nothing_was_delivered_is_refunded_whole(quiet_shop: Shop) -> None:
    """Contract 3: a full refund."""
    shop = quiet_shop
    company = await shop.company(balance="100.00 EUR")
    await shop.product("later", async_delivery=True)
    order = await shop.create(company, ("later", 3))
    await shop.confirm(company, order["trx"])
    assert await shop.balance(company) == Money.read("71.50 EUR")

    cancelled = (await shop.cancel(company, order["trx"])).json()

    assert (cancelled["orderStatus"], cancelled["paymentStatus"]) == ("cancelled", "refunded")
    assert await shop.balance(company) == Money.read("100.00 EUR")
    await shop.assert_books_balance()


async def test_an_inactive_or_unverified_company_still_gets_its_money_back(quiet_shop: Shop) -> None:
    """Contract 7: Cancel knows two refusals, and neither is about the company."""
    shop = quiet_shop
    company = await shop.company(balance="100.00 EUR")
    await shop.product("later", async_delivery=True)
    order = await shop.create(company, ("later", 1))
    await shop.confirm(company, order["trx"])
    await shop.set_company(company, active=False, verified=False)
    await shop.set_product("later", active=False)

    assert (await shop.cancel(company, order["trx"])).json()["paymentStatus"] == "refunded"
    assert await shop.balance(company) == Money.read("100.00 EUR")
    await shop.assert_books_balance()


async def test_an_expired_order_can_still_be_found_and_cancelled(quiet_shop: Shop) -> None:
    """OP-40: it stays created."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10", stock=1)
    trx = (await shop.create(company, ("gift-10", 1)))["trx"]
    await shop.age(trx, "25 hours")

    assert (await shop.find(company, trx))["orderStatus"] == "created"
    assert (await shop.cancel(company, trx)).status_code == 204
    await shop.assert_books_balance()


async def test_a_sandbox_order_is_refunded_in_play_money_only(quiet_shop: Shop) -> None:
    """OP-49: its own wallets; nothing crosses."""
    shop = quiet_shop
    company = await shop.company(balance="100.00 EUR")
    await shop.product("gift-10")
    order = await shop.create(company, ("gift-10", 2), state=State.SANDBOX)
    await shop.confirm(company, order["trx"], state=State.SANDBOX, outcome="pending")
    assert await shop.balance(company, state=State.SANDBOX) == Money.read("81.00 EUR")

    cancelled = (await shop.cancel(company, order["trx"], state=State.SANDBOX)).json()

    assert (cancelled["paymentStatus"], cancelled["state"]) == ("refunded", "sandbox")
    assert await shop.balance(company, state=State.SANDBOX) == Money.read("100.00 EUR")
    assert await shop.balance(company) == Money.read("100.00 EUR")
    await shop.assert_books_balance()


async def test_what_is_undelivered_at_the_end_of_the_delivery_window_is_refunded(
    pool: Pool, database_url: str, tmp_path: Path
) -> None:
    """OP-44: the rest is cancelled, delivered lines stay delivered and paid: partially_refunded."""
    async with open_shop(pool, database_url, tmp_path, delivery_window_s=1, confirm_wait_s=0) as shop:
        company = await shop.company(balance="100.00 EUR")
        await shop.product("later", async_delivery=True, stock=1)
        partly = await shop.create(company, ("later", 3))
        nothing = await shop.create(company, ("later", 2))
        for order in (partly, nothing):
            assert (await shop.confirm(company, order["trx"]))["orderStatus"] == "pending"
        assert await shop.balance(company) == Money.read("52.50 EUR")

        ended = await shop.until_status(company, partly["trx"], "cancelled")
        assert ended["paymentStatus"] == "partially_refunded"
        assert [line["status"] for line in ended["items"][0]["orderLines"]] == ["finished"] + [
            "cancelled"
        ] * 2
        ended = await shop.until_status(company, nothing["trx"], "cancelled")
        assert ended["paymentStatus"] == "refunded"
        assert await shop.balance(company) == Money.read("90.50 EUR")
        assert await shop.events(partly["trx"]) == ["order.created", "order.pending", "order.cancelled"]
        await shop.assert_books_balance()
