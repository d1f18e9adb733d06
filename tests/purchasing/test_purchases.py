"""Lines that a supplier serves: bought once, delivered, paid; failures go on to the next offer."""

from __future__ import annotations

import asyncio
import json

from tests.patience import until_true
from tests.purchasing.conftest import Market
from tests.purchasing.fake import (
    sold_but_unclear,
    sold_out,
    too_few,
    too_many,
    unclear,
    waits,
    waits_in_vain,
)
from voucherd.money import Money
from voucherd.purchasing import records
from voucherd.purchasing.records import PurchaseProblem
from voucherd.suppliers.protocol import WantedCodes


async def test_what_the_shelf_lacks_is_bought_at_the_cheapest_supplier_and_delivered(market: Market) -> None:
    """OP-43, OP-44: the line waits, is bought, and the order ends; the wire says where it came from."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR", stock=2)
    company = await shop.company(balance="100.00 EUR")
    dear = await market.supplier("dear", "gift", price="9.30 EUR")
    cheap = await market.supplier("cheap", "gift", price="9.10 EUR")

    order = await shop.create(company, ("gift", 5))
    pending = await shop.confirm(company, order["trx"])
    await market.round()
    done = await shop.find(company, order["trx"])

    assert (pending["orderStatus"], pending["items"][0]["linesCompleted"]) == ("pending", 2)
    assert (done["orderStatus"], done["paymentStatus"]) == ("finished", "paid")
    lines = done["items"][0]["orderLines"]
    assert [line["externalSupplier"] for line in lines] == ["wholesale"] * 2 + ["cheap"] * 3
    assert [line["externalId"] for line in lines[2:]] == ["F1"] * 3
    assert [line["purchasePriceAmount"] for line in lines[2:]] == [9.1] * 3
    assert [line["commissionEur"] for line in lines[2:]] == [0.4] * 3
    assert {line["voucherCode"] for line in lines[2:]} == {
        c.code for b in cheap.sold.values() for c in b.codes
    }
    assert dear.calls == []
    assert await shop.balance(company) == Money.read("52.50 EUR")
    await shop.assert_books_balance()


async def test_a_resolve_is_bought_for_and_answered_before_its_limit(market: Market) -> None:
    """Contract 3: Resolve holds, buys, settles."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR")
    company = await shop.company(balance="100.00 EUR")
    await market.supplier("one", "gift")
    order = await shop.create(company, ("gift", 2))

    resolving = asyncio.create_task(shop.resolve(company, order["trx"]))
    await market.until_held(company)
    await market.round()
    resolved = await resolving

    assert (resolved["orderStatus"], resolved["items"][0]["linesCompleted"]) == ("finished", 2)
    assert await shop.balance(company) == Money.read("81.00 EUR")
    await shop.assert_books_balance()


async def test_a_code_that_comes_after_resolves_limit_lies_on_the_shelf_and_costs_the_client_nothing(
    market: Market,
) -> None:
    """OP-46: cancelled in time, the hold released; the late code is stock, with its cost."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR")
    company = await shop.company(balance="100.00 EUR")
    fake = await market.supplier("slow", "gift")
    fake.deeds.append(waits)
    order = await shop.create(company, ("gift", 1))

    resolving = asyncio.create_task(shop.resolve(company, order["trx"]))
    await market.until_held(company)
    await market.dispatcher.dispatch()
    await shop.time_is_up(order["trx"])
    resolved = await resolving
    fake.free.set()
    await market.dispatcher.settled()

    assert (resolved["orderStatus"], resolved["paymentStatus"]) == ("cancelled", "unpaid")
    assert await shop.balance(company) == Money.read("100.00 EUR")
    assert await shop.left("gift") == 1
    assert await market.attempts() == [(3, 1, 1, 1)]
    legs = await shop.pool.fetch("SELECT account, amount_minor FROM purchase_leg ORDER BY 1")
    assert [tuple(leg) for leg in legs] == [("spare", 900), ("stock", 0), ("supplier", -900)]
    await shop.assert_books_balance()


async def test_an_answer_that_got_lost_is_looked_up_and_never_bought_again(market: Market) -> None:
    """Decision 12: after a crash we ask what became of our reference."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR")
    company = await shop.company(balance="100.00 EUR")
    fake = await market.supplier("one", "gift")
    fake.deeds.append(sold_but_unclear)
    order = await shop.create(company, ("gift", 3))
    await shop.confirm(company, order["trx"])

    await market.round()
    asking = await market.attempts()
    await market.look_ups()

    assert asking == [(1, 3, 0, 0)]
    assert await market.attempts() == [(3, 3, 3, 0)]
    assert [verb for verb, _ in fake.calls] == ["buy", "look_up"]
    assert (await shop.find(company, order["trx"]))["orderStatus"] == "finished"
    await shop.assert_books_balance()


async def test_an_offer_that_fails_falls_over_to_the_next_best_one(market: Market) -> None:
    """OP-44."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR")
    company = await shop.company(balance="100.00 EUR")
    cheap = await market.supplier("cheap", "gift", price="8.00 EUR")
    dear = await market.supplier("dear", "gift", price="9.00 EUR")
    cheap.deeds.append(sold_out)
    order = await shop.create(company, ("gift", 3))
    await shop.confirm(company, order["trx"])

    await market.round()
    await market.round()

    assert (await shop.find(company, order["trx"]))["orderStatus"] == "finished"
    assert [len(cheap.sold), len(dear.sold)] == [0, 1]
    await shop.assert_books_balance()


async def test_a_purchase_that_never_happened_is_found_out_and_made_elsewhere(market: Market) -> None:
    """Decision 12: `not found` is believed once nothing can be on its way any more."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR")
    company = await shop.company(balance="100.00 EUR")
    cheap = await market.supplier("cheap", "gift", price="8.00 EUR")
    await market.supplier("dear", "gift", price="9.00 EUR")
    cheap.deeds.append(unclear)
    order = await shop.create(company, ("gift", 3))
    await shop.confirm(company, order["trx"])

    await market.round()
    await market.look_ups()
    early = await market.attempts()
    await shop.pool.execute("UPDATE attempt SET settles_at = now()")
    await market.look_ups()
    await market.round()

    assert early == [(1, 3, 0, 0)]
    assert [one[0] for one in await market.attempts()] == [4, 3]
    assert (await shop.find(company, order["trx"]))["orderStatus"] == "finished"
    await shop.assert_books_balance()


async def test_a_cancel_during_a_purchase_refunds_now_and_shelves_what_still_comes(market: Market) -> None:
    """Contract 3, OP-45: cancelled and refunded at once; codes that come are ours, and on the operator's list."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR", async_delivery=True)
    company = await shop.company(balance="100.00 EUR")
    fake = await market.supplier("slow", "gift", stock=2, price="8.00 EUR")
    fake.deeds.append(waits)
    order = await shop.create(company, ("gift", 5))
    await shop.confirm(company, order["trx"])
    await market.dispatcher.dispatch()

    cancelled = await shop.cancel(company, order["trx"])
    assert (cancelled.status_code, cancelled.json()["orderStatus"], cancelled.json()["paymentStatus"]) == (
        *(200, "cancelled", "refunded"),
    )
    assert await shop.balance(company) == Money.read("100.00 EUR")
    await shop.assert_books_balance()
    fake.free.set()
    await market.dispatcher.settled()
    ended = await shop.find(company, order["trx"])

    assert [line["status"] for line in ended["items"][0]["orderLines"]] == ["cancelled"] * 5
    assert await shop.balance(company) == Money.read("100.00 EUR")
    async with shop.pool.acquire() as conn:
        (late,) = await records.by_age(conn, problem=PurchaseProblem.LATE)
    assert (late.spare, late.spare_cost) == (2, Money.read("16.00 EUR"))
    # They sell to whoever comes next, without another purchase.
    next_order = await shop.create(company, ("gift", 2))
    assert (await shop.confirm(company, next_order["trx"]))["orderStatus"] == "finished"
    assert [verb for verb, _ in fake.calls] == ["buy"]
    await shop.assert_books_balance()


async def test_a_cancel_during_a_purchase_that_fails_buys_nothing_elsewhere(market: Market) -> None:
    """OP-45: the refund does not wait for the supplier, and a second Cancel gives nothing more back."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR")
    company = await shop.company(balance="100.00 EUR")
    fake = await market.supplier("slow", "gift", price="8.00 EUR")
    other = await market.supplier("other", "gift", price="9.00 EUR")
    fake.deeds.append(waits_in_vain)
    order = await shop.create(company, ("gift", 2))
    await shop.confirm(company, order["trx"])
    await market.dispatcher.dispatch()

    first, second = await asyncio.gather(*(shop.cancel(company, order["trx"]) for _ in range(2)))
    fake.free.set()
    await market.dispatcher.settled()
    await market.round()

    answers = sorted((one.status_code, one.text) for one in (first, second))
    assert (answers[0][0], answers[1]) == (200, (400, "Invalid order status"))
    ended = await shop.find(company, order["trx"])
    assert (ended["orderStatus"], ended["paymentStatus"]) == ("cancelled", "refunded")
    assert other.calls == []
    assert await shop.balance(company) == Money.read("100.00 EUR")
    await shop.assert_books_balance()


async def test_a_purchase_whose_worker_died_is_taken_back_for_a_cancelled_order(market: Market) -> None:
    """OP-45: the worker dies between call and answer; ten minutes later the supplier's codes come, to the shelf."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR")
    company = await shop.company(balance="100.00 EUR")
    fake = await market.supplier("slow", "gift", price="8.00 EUR")
    fake.deeds.append(waits)
    order = await shop.create(company, ("gift", 2))
    await shop.confirm(company, order["trx"])
    await market.dispatcher.dispatch()
    cancelled = await shop.cancel(company, order["trx"])
    await until_true(lambda: fake.calls)
    ((_, reference),) = fake.calls
    # The supplier sells, but its answer never reaches the worker, whose lease ended ten minutes ago.
    doomed = market.dispatcher
    for task in list(doomed._tasks):
        task.cancel()
    await doomed.settled()
    fake.sell(reference, WantedCodes("sku-gift", Money.read("10.00 EUR"), 2, Money.read("8.00 EUR")))
    market.dispatcher = market.another_dispatcher()
    await shop.pool.execute(
        "UPDATE attempt SET lease_until = lease_until - interval '10 minutes',"
        " settles_at = settles_at - interval '10 minutes'"
    )
    await market.look_ups()

    assert cancelled.json()["orderStatus"] == "cancelled"
    assert ("cancel", reference) in fake.calls
    assert await market.attempts() == [(3, 2, 2, 2)], (
        "what the supplier could not take back is ours, and kept"
    )
    assert await shop.balance(company) == Money.read("100.00 EUR")
    await shop.assert_books_balance()


async def test_too_few_and_too_many_codes_are_delivered_kept_and_noted(market: Market) -> None:
    """Decision 12: a code that was bought is never lost; a line without one goes on to be bought for."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR")
    company = await shop.company(balance="100.00 EUR")
    fake = await market.supplier("one", "gift")
    fake.deeds += [too_few, too_many]
    order = await shop.create(company, ("gift", 3))
    await shop.confirm(company, order["trx"])

    await market.round()
    partly = await shop.find(company, order["trx"])
    await shop.pool.execute("UPDATE attempt SET settles_at = now()")
    await market.look_ups()
    await market.round()
    await market.round()

    assert (partly["orderStatus"], partly["items"][0]["linesCompleted"]) == ("pending", 2)
    assert (await shop.find(company, order["trx"]))["orderStatus"] == "finished"
    assert await market.attempts() == [(3, 3, 2, 0), (3, 1, 3, 2)]
    assert await shop.left("gift") == 2
    await shop.assert_books_balance()


async def test_a_price_in_a_currency_without_a_rate_is_not_booked_and_the_quoted_one_is(
    market: Market,
) -> None:
    """OP-50, OP-58: what a code cost can always be told in EUR."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR")
    company = await shop.company(balance="100.00 EUR")
    fake = await market.supplier("one", "gift", price="9.00 EUR")
    order = await shop.create(company, ("gift", 1))
    await shop.confirm(company, order["trx"])
    fake.price = "1500 JPY"

    await market.round()

    (line,) = (await shop.find(company, order["trx"]))["items"][0]["orderLines"]
    assert (line["purchasePriceAmount"], line["purchasePriceCurrency"]) == (9.0, "eur")
    await shop.assert_books_balance()


async def test_the_offer_that_a_bought_line_came_from_is_among_its_offers(market: Market) -> None:
    """OP-58, OP-142: `offerId` can be looked up in `offers`, for a line of stock and for one that was bought."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR", stock=1)
    company = await shop.company(balance="100.00 EUR")
    await market.supplier("one", "gift", price="9.10 EUR")
    order = await shop.create(company, ("gift", 3))
    await shop.confirm(company, order["trx"])
    await market.round()

    lines = (await shop.find(company, order["trx"]))["items"][0]["orderLines"]
    assert [line["externalSupplier"] for line in lines] == ["wholesale", "one", "one"]
    for line in lines:
        offers = {one["offerId"]: one for one in json.loads(line["product"])["offers"]}
        assert line["offerId"] in offers
        assert offers[line["offerId"]]["purchasePrice"] == line["purchasePriceAmount"]
    await shop.assert_books_balance()


async def test_an_order_that_a_resolve_works_on_is_created_and_not_pending(market: Market) -> None:
    """Contract 3, OP-139: pending means paid, and Resolve leads from created to finished or cancelled."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR")
    company = await shop.company(balance="100.00 EUR")
    fake = await market.supplier("slow", "gift")
    fake.deeds.append(waits)
    order = await shop.create(company, ("gift", 1))
    resolving = asyncio.create_task(shop.finalise("resolve", company, order["trx"]))
    await market.until_held(company)
    await market.dispatcher.dispatch()

    async def with_status(status: str) -> list[str]:
        response = await shop.call("GET", f"/api/1.03/order?orderStatus={status}", company)
        return [one["trx"] for one in response.json()["data"]]

    for version in ("1.00", "1.03", "Next"):
        found = await shop.find(company, order["trx"], version=version)
        assert (found["orderStatus"], found["paymentStatus"]) == ("created", "unpaid")
        assert found["dateExpires"] == order["dateExpires"]
    assert (await with_status("pending"), await with_status("created")) == ([], [order["trx"]])
    await shop.assert_refused(
        shop.finalise("confirm", company, order["trx"]), 400, "this order can not be confirmed"
    )
    fake.free.set()
    await market.dispatcher.settled()
    assert (await resolving).json()["orderStatus"] == "finished"
    assert (await with_status("created"), await with_status("finished")) == ([], [order["trx"]])
    await shop.assert_books_balance()
