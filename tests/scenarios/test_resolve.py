"""Resolve order: all of it within the limit, or nothing and no charge."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from tests.patience import until_true
from tests.shop import Shop, open_shop
from voucherd.db import Pool
from voucherd.ids import State
from voucherd.money import Money
from voucherd.orders.rules.decide import Finalise

LIMIT_S = 2.0


@pytest.mark.parametrize("version", ["1.03", "Next"])
async def test_a_resolved_order_is_finished_from_stock_at_once(quiet_shop: Shop, version: str) -> None:
    """Contract 4: finished, code fields on the line, the balance debited; Next has the short line."""
    shop = quiet_shop
    company = await shop.company(balance="50.00 EUR")
    await shop.product("gift-10")
    codes = await shop.stock("gift-10", 3)
    order = await shop.create(company, ("gift-10", 2))

    resolved = await shop.resolve(company, order["trx"], version=version)

    assert (resolved["orderStatus"], resolved["paymentStatus"]) == ("finished", "paid")
    (item,) = resolved["items"]
    assert item["linesCompleted"] == 2
    assert [line["voucherCode"] for line in item["orderLines"]] == [codes[0][0], codes[1][0]]
    assert ("orderId" in item["orderLines"][0]) == (version == "1.03")
    assert await shop.balance(company) == Money.read("31.00 EUR")
    assert await shop.held(company) == 0
    await shop.assert_books_balance()


@pytest.mark.parametrize("version", ["1.03", "Next"])
async def test_a_resolve_that_times_out_costs_nothing(shop: Shop, version: str) -> None:
    """Contract 3, OP-46: at the limit it answers cancelled; the hold is visible meanwhile and gone after."""
    company = await shop.company(balance="50.00 EUR")
    await shop.product("later", async_delivery=True)
    order = await shop.create(company, ("later", 2))

    resolve = asyncio.create_task(shop.resolve(company, order["trx"], version=version))
    await shop.waits(order["trx"])
    held = await shop.find(company, order["trx"])
    assert (held["orderStatus"], held["paymentStatus"]) == ("created", "unpaid"), "OP-139"
    assert await shop.held(company) == 1_900
    assert await shop.balance(company) == Money.read("50.00 EUR")
    await shop.time_is_up(order["trx"])
    resolved = await resolve

    assert (resolved["orderStatus"], resolved["paymentStatus"]) == ("cancelled", "unpaid")
    (item,) = resolved["items"]
    assert item["linesCompleted"] == 0
    assert [set(line) for line in item["orderLines"]] == [{"tag", "status"}] * 2
    assert {line["status"] for line in item["orderLines"]} == {"cancelled"}
    assert await shop.balance(company) == Money.read("50.00 EUR")
    assert await shop.held(company) == 0
    assert await shop.events(order["trx"]) == ["order.created", "order.pending", "order.cancelled"]
    # What arrives later stays on the shelf.
    await shop.stock("later", 5)
    await shop.worker.run_once("deliver")
    assert await shop.left("later") == 5
    await shop.assert_books_balance()


async def test_a_resolve_ends_its_wait_before_its_limit(
    pool: Pool, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OP-46: by the clock, with time left to cancel; a machine too slow even for that leaves it to the worker."""
    async with open_shop(pool, database_url, tmp_path, resolve_limit_s=LIMIT_S) as shop:
        until_done, patience_s = shop.order_service.watch.until_done, []

        async def noted(order_id: int, timeout_s: float) -> bool:
            patience_s.append(timeout_s)
            return await until_done(order_id, timeout_s)

        monkeypatch.setattr(shop.order_service.watch, "until_done", noted)
        company = await shop.company(balance="50.00 EUR")
        await shop.product("later", async_delivery=True)
        order = await shop.create(company, ("later", 1))
        answers = [await shop.finalise("resolve", company, order["trx"])]
        # So slow a machine may not even begin before the limit, and then nothing has happened.
        while (await shop.find(company, order["trx"]))["orderStatus"] == "created":
            answers.append(await shop.finalise("resolve", company, order["trx"]))
        ended = await shop.until_status(company, order["trx"], "cancelled")

        assert answers[0].status_code == 503 or answers[0].json()["orderStatus"] == "cancelled"
        assert ended["paymentStatus"] == "unpaid"
        assert all(0 <= seconds <= LIMIT_S * 3 / 4 for seconds in patience_s)
        assert await shop.held(company) == 0
        await shop.assert_books_balance()


async def test_a_resolve_waits_for_stock_and_takes_its_money_only_then(shop: Shop) -> None:
    """Contract 3: delivery completes within the time limit; then the balance is debited."""
    company = await shop.company(balance="50.00 EUR")
    await shop.product("later", async_delivery=True)
    order = await shop.create(company, ("later", 2))
    resolve = asyncio.create_task(shop.resolve(company, order["trx"]))
    await shop.waits(order["trx"])

    await shop.stock("later", 2)
    resolved = await resolve

    assert (resolved["orderStatus"], resolved["paymentStatus"]) == ("finished", "paid")
    assert await shop.balance(company) == Money.read("31.00 EUR")
    assert await shop.held(company) == 0
    await shop.assert_books_balance()


async def test_a_resolve_of_more_than_there_is_takes_nothing_until_all_of_it_is_there(
    quick_shop: Shop,
) -> None:
    """OP-46: a code handed over before the limit could not be taken back after it."""
    shop = quick_shop
    company, other = await shop.company(balance="50.00 EUR"), await shop.company()
    await shop.product("later", async_delivery=True, stock=2)
    order = await shop.create(company, ("later", 3))
    resolve = asyncio.create_task(shop.resolve(company, order["trx"]))
    await shop.waits(order["trx"])
    assert await shop.worker.run_once("deliver") == 0
    assert await shop.left("later") == 2

    # Someone else may buy what lies there meanwhile.
    rival = await shop.create(other, ("later", 1))
    await shop.confirm(other, rival["trx"])
    assert await shop.worker.run_once("deliver") == 1
    assert (await shop.find(other, rival["trx"]))["orderStatus"] == "finished"
    await shop.stock("later", 1)
    assert await shop.worker.run_once("deliver") == 0
    assert not resolve.done()
    await shop.stock("later", 1)
    assert await shop.worker.run_once("deliver") == 1
    resolved = await resolve

    assert resolved["orderStatus"] == "finished"
    assert len({line["voucherCode"] for line in resolved["items"][0]["orderLines"]}) == 3
    await shop.assert_books_balance()


async def test_held_money_cannot_be_spent_twice(shop: Shop) -> None:
    """Contract 1: what a waiting Resolve holds is not there for another order, and is again when it ended."""
    company = await shop.company(balance="25.00 EUR")
    await shop.product("later", async_delivery=True)
    await shop.product("gift-10", stock=5)
    waiting = await shop.create(company, ("later", 2))
    order = await shop.create(company, ("gift-10", 1))
    resolve = asyncio.create_task(shop.resolve(company, waiting["trx"]))
    await shop.waits(waiting["trx"])

    for operation in ("confirm", "resolve"):
        refused = await shop.finalise(operation, company, order["trx"])
        assert (refused.status_code, refused.text) == (402, "insufficient balance")
    assert (await shop.cancel(company, waiting["trx"])).json()["orderStatus"] == "cancelled"
    assert (await resolve)["orderStatus"] == "cancelled"
    assert (await shop.confirm(company, order["trx"]))["orderStatus"] == "finished"
    assert await shop.balance(company) == Money.read("15.50 EUR")
    await shop.assert_books_balance()


async def test_a_product_that_may_not_come_later_is_refused_and_not_waited_for(quiet_shop: Shop) -> None:
    """Contract 7: Product … is out of stock, at once."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10", stock=2)
    order = await shop.create(company, ("gift-10", 2))
    rival = await shop.create(company, ("gift-10", 1))
    await shop.confirm(company, rival["trx"])

    # A Resolve that waited would wait for longer than a test may take.
    refused = shop.finalise("resolve", company, order["trx"])
    await shop.assert_refused(refused, 422, "Product Gift 10 is out of stock")
    await shop.assert_books_balance()


async def test_a_resolve_whose_call_died_is_ended_by_the_sweeper(quiet_shop: Shop) -> None:
    """OP-46: the process that took the call is gone; after the limit the order is cancelled all the same."""
    shop = quiet_shop
    company = await shop.company(balance="50.00 EUR")
    await shop.product("later", async_delivery=True)
    order = await shop.create(company, ("later", 1))
    # The command alone, without anyone who waits for its end: what a crash leaves behind.
    order_id = shop.ids.order_id(order["trx"])
    await shop.order_service._confirm([Finalise(order_id, company.id, State.LIVE, resolve=True)])
    assert await shop.held(company) == 950

    assert await shop.worker.run_once("end_waiting") == 0
    limit = timedelta(seconds=shop.settings.resolve_limit_s)
    for table, key in (("orders", "id"), ("waiting", "order_id")):
        await shop.pool.execute(
            f"UPDATE {table} SET deadline_at = deadline_at - $1::interval WHERE {key} = $2",  # noqa: S608 - Constants.
            limit,
            order_id,
        )
    # The limit is over: a code that comes now comes too late.
    await shop.stock("later", 1)
    assert await shop.worker.run_once("deliver") == 0
    assert await shop.worker.run_once("end_waiting") == 1
    assert await shop.worker.run_once("end_waiting") == 0

    found = await shop.find(company, order["trx"])
    assert (found["orderStatus"], found["paymentStatus"]) == ("cancelled", "unpaid")
    assert await shop.held(company) == 0
    assert await shop.balance(company) == Money.read("50.00 EUR")
    await shop.assert_books_balance()


async def test_resolves_of_different_orders_run_side_by_side(shop: Shop) -> None:
    """OP-47: twenty wait at once, and one that need not wait is answered before any of them."""
    company = await shop.company()
    await shop.product("later", async_delivery=True)
    await shop.product("gift-10", stock=1)
    trxs = [(await shop.create(company, ("later", 1)))["trx"] for _ in range(20)]
    quick = (await shop.create(company, ("gift-10", 1)))["trx"]

    slow = [asyncio.create_task(shop.resolve(company, trx)) for trx in trxs]
    assert (await shop.resolve(company, quick))["orderStatus"] == "finished"
    await until_true(lambda: shop.order_service.watch.parked == len(trxs))
    assert not any(call.done() for call in slow)
    for trx in trxs:
        await shop.time_is_up(trx)
    resolved = await asyncio.gather(*slow)

    assert {order["orderStatus"] for order in resolved} == {"cancelled"}
    assert await shop.held(company) == 0
    await shop.assert_books_balance()
