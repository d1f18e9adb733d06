"""The test clock: a company moves the time of its sandbox ahead, and sees in seconds what takes days."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.shop import Company, Shop
from voucherd.ids import State
from voucherd.money import Money
from voucherd.orders import ageing

SANDBOX = State.SANDBOX
CLOCK = "/api/1.03/sandbox/clock"
HOUR, DAY = 3_600, 86_400


async def advance(shop: Shop, company: Company, seconds: int) -> dict[str, Any]:
    """Move the clock of the company's sandbox."""
    answer = await shop.call("POST", f"{CLOCK}/advance", company, state=SANDBOX, json={"seconds": seconds})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def test_an_order_expires_when_the_clock_passes_its_window(quiet_shop: Shop) -> None:
    """OP-146, OP-40: Confirm is refused and `order.expired` is told, at once and once."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10", stock=5)
    order = await shop.create(company, ("gift-10", 1), state=SANDBOX)
    live = await shop.create(company, ("gift-10", 1))

    moved = await advance(shop, company, DAY - HOUR)
    assert (moved["orders"], moved["expiredOrders"], moved["aheadSeconds"]) == (1, 0, DAY - HOUR)
    assert await shop.events(order["trx"]) == ["order.created"]
    moved = await advance(shop, company, 2 * HOUR)
    assert (moved["orders"], moved["expiredOrders"], moved["aheadSeconds"]) == (1, 1, DAY + HOUR)

    assert await shop.events(order["trx"]) == ["order.created", "order.expired"]
    refused = shop.finalise("confirm", company, order["trx"], state=SANDBOX, outcome="finished")
    await shop.assert_refused(
        refused, 400, "this order has expired, orders need confirmation within 24 hours"
    )
    fresh = await shop.create(company, ("gift-10", 1), state=SANDBOX)
    assert (await shop.confirm(company, fresh["trx"], state=SANDBOX, outcome="finished"))["orderStatus"] == (
        "finished"
    )
    assert (await shop.confirm(company, live["trx"]))["orderStatus"] == "finished"
    # The sweep that follows the real time finds nothing left to say.
    await shop.age(order["trx"], "25 hours")
    assert await shop.worker.run_once("announce_expired") == 0
    await shop.assert_books_balance()


async def test_a_window_that_was_shortened_ends_by_itself(quiet_shop: Shop) -> None:
    """OP-146: what the clock left a moment of expires when that moment is over, and the worker tells of it."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10")
    order = await shop.create(company, ("gift-10", 1), state=SANDBOX)
    await advance(shop, company, DAY - HOUR)
    assert await shop.worker.run_once("announce_expired") == 0
    # An hour later, by the database's clock.
    await shop.pool.execute("UPDATE orders SET expires_at = expires_at - interval '1 hour'")
    await shop.pool.execute("UPDATE test_clock SET next_at = next_at - interval '1 hour'")
    assert await shop.worker.run_once("announce_expired") == 1
    assert await shop.worker.run_once("announce_expired") == 0
    assert await shop.events(order["trx"]) == ["order.created", "order.expired"]
    assert await shop.pool.fetchval("SELECT next_at FROM test_clock") is None
    await shop.assert_books_balance()


async def test_codes_that_are_to_come_later_come(quick_shop: Shop) -> None:
    """OP-146, OP-49: a step over the delivery delivers, also where it passes the delivery window behind it."""
    shop = quick_shop
    company = await shop.company(balance="100.00 EUR")
    await shop.product("gift-10")
    orders = [await shop.create(company, ("gift-10", 1), state=SANDBOX) for _ in range(2)]
    for order in orders:
        slow = await shop.confirm(company, order["trx"], state=SANDBOX, outcome="slow:3600")
        assert slow["orderStatus"] == "pending"
    await advance(shop, company, HOUR - 600)
    assert await shop.worker.run_once("deliver") == 0
    assert (await advance(shop, company, 30 * DAY))["orders"] == 2
    assert await shop.worker.run_once("end_waiting") == 0
    assert await shop.worker.run_once("deliver") == 2
    for order in orders:
        assert (await shop.find(company, order["trx"], state=SANDBOX))["orderStatus"] == "finished"
    assert await shop.balance(company, state=SANDBOX) == Money.read("81.00 EUR")
    await shop.assert_books_balance()


async def test_the_end_of_the_delivery_window_cancels_and_refunds(quick_shop: Shop) -> None:
    """OP-146, OP-44: what will not come is cancelled when the clock passes the window."""
    shop = quick_shop
    company = await shop.company(balance="100.00 EUR")
    await shop.product("gift-10")
    order = await shop.create(company, ("gift-10", 2), state=SANDBOX)
    await shop.confirm(company, order["trx"], state=SANDBOX, outcome="partial")
    await advance(shop, company, 60)
    assert await shop.worker.run_once("end_waiting") == 1
    ended = await shop.find(company, order["trx"], state=SANDBOX)
    assert (ended["orderStatus"], ended["paymentStatus"]) == ("cancelled", "partially_refunded")
    assert await shop.balance(company, state=SANDBOX) == Money.read("90.50 EUR")
    await shop.assert_books_balance()


async def test_live_and_other_companies_keep_their_time(quick_shop: Shop) -> None:
    """OP-146: no deadline of a live order, or of another company, moves by a clock."""
    shop = quick_shop
    company, other = await shop.company(), await shop.company()
    await shop.product("gift-10", stock=5)
    await shop.product("later", async_delivery=True)
    for who, state in ((company, State.LIVE), (other, SANDBOX)):
        await shop.create(who, ("gift-10", 1), state=state)
        order = await shop.create(who, ("later", 1), state=state)
        await shop.confirm(who, order["trx"], state=state, outcome="slow:60" if state else None)
    deadlines = (
        "SELECT id, expires_at, deadline_at, version FROM orders ORDER BY id",
        "SELECT order_id, not_before, deadline_at, ask_at FROM waiting ORDER BY order_id",
    )
    before = [await shop.pool.fetch(query) for query in deadlines]
    assert (await advance(shop, company, 10 * DAY))["orders"] == 0
    assert [await shop.pool.fetch(query) for query in deadlines] == before
    await shop.assert_books_balance()


async def test_the_clock_shows_how_far_it_is_ahead_and_can_be_reset(quiet_shop: Shop) -> None:
    """OP-146: steps add up, time never goes back, and a reset undoes nothing."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10")
    order = await shop.create(company, ("gift-10", 1), state=SANDBOX)
    assert (await shop.call("GET", CLOCK, company, state=SANDBOX)).json()["aheadSeconds"] == 0
    await advance(shop, company, DAY)
    await advance(shop, company, 5)
    assert (await shop.call("GET", CLOCK, company, state=SANDBOX)).json()["aheadSeconds"] == DAY + 5
    reset = await shop.call("POST", f"{CLOCK}/reset", company, state=SANDBOX)
    assert reset.json()["aheadSeconds"] == 0
    assert await shop.events(order["trx"]) == ["order.created", "order.expired"]
    for seconds in (0, -1, 90 * DAY + 1, "5", 1.5, None):
        refused = await shop.call(
            "POST", f"{CLOCK}/advance", company, state=SANDBOX, json={"seconds": seconds}
        )
        assert refused.status_code == 400, seconds
        assert refused.text.startswith("seconds: must be"), seconds
    actions = await shop.pool.fetch("SELECT action FROM trail WHERE action LIKE 'clock.%' ORDER BY id")
    assert [row["action"] for row in actions] == ["clock.advance", "clock.advance", "clock.reset"]


async def test_a_sandbox_with_too_many_open_orders_is_not_moved(
    quiet_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-146: one step has a bound, and beyond it nothing moves."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10")
    monkeypatch.setattr(ageing, "OPEN_MAX", 1)
    for _ in range(2):
        await shop.create(company, ("gift-10", 1), state=SANDBOX)
    refused = await shop.call("POST", f"{CLOCK}/advance", company, state=SANDBOX, json={"seconds": DAY})
    assert (refused.status_code, refused.text) == (409, "more than 10000 orders are open")
    assert await shop.pool.fetchval("SELECT count(*) FROM orders WHERE expires_at > now()") == 2
    assert (await shop.call("GET", CLOCK, company, state=SANDBOX)).json()["aheadSeconds"] == 0


async def test_steps_and_sales_at_once_leave_the_books_right(shop: Shop) -> None:
    """OP-146: whoever is first, an order is finished or expired, and never both; each expiry is told once."""
    company = await shop.company(balance="1000.00 EUR")
    await shop.product("gift-10")
    orders = [await shop.create(company, ("gift-10", 1), state=SANDBOX) for _ in range(12)]
    sales = [
        shop.finalise("confirm", company, order["trx"], state=SANDBOX, outcome="finished") for order in orders
    ]
    steps = [
        shop.call("POST", f"{CLOCK}/advance", company, state=SANDBOX, json={"seconds": DAY // 2})
        for _ in range(4)
    ]
    mixed = [call for pair in zip(sales[:4], steps, strict=True) for call in pair] + sales[4:]
    answers = await asyncio.gather(*mixed)
    assert {answer.status_code for answer in answers} <= {200, 400}
    for order in orders:
        told = await shop.events(order["trx"])
        assert told in (["order.created", "order.finished"], ["order.created", "order.expired"])
    await shop.assert_books_balance()
