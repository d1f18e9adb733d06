"""Orders that wait for codes: who is served when stock arrives, and in which order."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.patience import HANG_S
from tests.shop import Company, Shop, open_shop
from voucherd.db import Pool
from voucherd.ids import State
from voucherd.worker import ROUNDS, Worker


async def queue_up(shop: Shop, company: Company, slug: str, amount: int) -> str:
    """A confirmed order that waits for all of its codes."""
    order = await shop.create(company, (slug, amount))
    command = shop.call("PATCH", f"/api/1.00/order/confirm/{order['trx']}", company)
    pending = (await command).json()
    assert pending["orderStatus"] == "pending", pending
    return str(order["trx"])


async def completed(shop: Shop, company: Company, trx: str) -> int:
    """How many lines of an order are finished."""
    order = await shop.find(company, trx, version="1.00")
    return sum(item["linesCompleted"] for item in order["items"])


async def test_a_stock_import_wakes_a_waiting_order_at_once(shop: Shop) -> None:
    """OP-43: the worker looks ten times a second, by itself."""
    company = await shop.company()
    await shop.product("later", async_delivery=True)
    trx = await queue_up(shop, company, "later", 1)

    await shop.stock("later", 1)
    await shop.until_status(company, trx, "finished")

    assert next(round_.every_s for round_ in ROUNDS if round_.name == "deliver") <= 0.1
    await shop.assert_books_balance()


async def test_confirm_waits_for_all_of_an_order_and_not_for_the_first_part_of_it(
    pool: Pool, database_url: str, tmp_path: Path
) -> None:
    """Contract 4: Confirm waits for completion; a part that comes while it waits is no answer."""
    async with open_shop(pool, database_url, tmp_path, with_worker=False, confirm_wait_s=2 * HANG_S) as shop:
        watch = shop.order_service.watch
        worker = Worker(shop.pool, shop.sealer, shop.settings, watch.wake)
        company = await shop.company()
        await shop.product("later", async_delivery=True)
        trx = (await shop.create(company, ("later", 2)))["trx"]
        confirming = asyncio.create_task(shop.confirm(company, trx))
        await shop.waits(trx)

        order_id = shop.ids.order_id(trx)
        assert order_id is not None
        version = await shop.pool.fetchval("SELECT version FROM orders WHERE id = $1", order_id)
        await shop.stock("later", 1)
        assert await worker.deliver() == 1
        # Another call that waits for any move hears of the first part; by then Confirm would have heard of it, too.
        assert await watch.until_moved(order_id, version, HANG_S)
        assert watch.parked == 1
        assert not confirming.done()

        await shop.stock("later", 1)
        assert await worker.deliver() == 1
        assert (await confirming)["orderStatus"] == "finished"
        await shop.assert_books_balance()


async def test_within_a_company_the_oldest_order_is_served_first(quick_shop: Shop) -> None:
    """OP-48: and an order is filled before the next one begins."""
    shop = quick_shop
    company = await shop.company()
    await shop.product("later", async_delivery=True)
    first, second, third = [await queue_up(shop, company, "later", 2) for _ in range(3)]

    await shop.stock("later", 3)
    await shop.worker.run_once("deliver")

    assert [await completed(shop, company, trx) for trx in (first, second, third)] == [2, 1, 0]
    assert (await shop.find(company, first))["orderStatus"] == "finished"
    await shop.stock("later", 10)
    await shop.worker.run_once("deliver")
    assert [await completed(shop, company, trx) for trx in (first, second, third)] == [2, 2, 2]
    assert await shop.events(second) == [
        "order.created",
        "order.pending",
        "order.line_finished",
        "order.finished",
    ]
    assert await shop.left("later") == 7
    await shop.assert_books_balance()


async def test_companies_take_turns_for_what_there_is(quick_shop: Shop) -> None:
    """OP-48: every company's first waiting order before anyone's second, whoever came first."""
    shop = quick_shop
    a, b, c = [await shop.company() for _ in range(3)]
    await shop.product("later", async_delivery=True)
    waiting = [(a, await queue_up(shop, a, "later", 1)) for _ in range(4)]
    waiting += [(b, await queue_up(shop, b, "later", 1)) for _ in range(2)]
    waiting += [(c, await queue_up(shop, c, "later", 1))]

    await shop.stock("later", 4)
    await shop.worker.run_once("deliver")

    assert [await completed(shop, who, trx) for who, trx in waiting] == [1, 1, 0, 0, 1, 0, 1]
    await shop.assert_books_balance()


async def test_stock_that_drips_in_reaches_every_company(quick_shop: Shop) -> None:
    """OP-48: a company with a long queue delays another's single order by at most one turn, code by code too."""
    shop = quick_shop
    large, small = await shop.company(), await shop.company()
    await shop.product("later", async_delivery=True)
    backlog = [await queue_up(shop, large, "later", 1) for _ in range(5)]
    single = await queue_up(shop, small, "later", 1)

    for _ in range(2):
        await shop.stock("later", 1)
        await shop.worker.run_once("deliver")

    assert await completed(shop, small, single) == 1
    assert [await completed(shop, large, trx) for trx in backlog] == [1, 0, 0, 0, 0]
    await shop.assert_books_balance()


async def test_products_do_not_wait_for_each_other(quick_shop: Shop) -> None:
    """OP-43: an order with two waiting items is filled from two shelves, in any order."""
    shop = quick_shop
    company = await shop.company()
    await shop.product("one", async_delivery=True)
    await shop.product("two", async_delivery=True)
    order = await shop.create(company, ("one", 2), ("two", 2), ("one", 1))
    await shop.confirm(company, order["trx"])

    await shop.stock("two", 5)
    await shop.worker.run_once("deliver")
    found = await shop.find(company, order["trx"])
    assert [item["linesCompleted"] for item in found["items"]] == [0, 2, 0]
    await shop.stock("one", 3)
    await shop.worker.run_once("deliver")

    found = await shop.find(company, order["trx"])
    assert found["orderStatus"] == "finished"
    codes = [line["voucherCode"] for item in found["items"] for line in item["orderLines"]]
    assert len(set(codes)) == 5
    await shop.events(order["trx"])  # It has no gap, however many lines finished at once.
    await shop.assert_books_balance()


async def test_a_withdrawn_product_is_still_delivered_to_those_who_paid(quick_shop: Shop) -> None:
    """OP-42: what was paid before is owed."""
    shop = quick_shop
    company = await shop.company()
    await shop.product("later", async_delivery=True)
    trx = await queue_up(shop, company, "later", 1)
    await shop.set_product("later", active=False)
    await shop.set_company(company, active=False)

    await shop.stock("later", 1)
    await shop.worker.run_once("deliver")

    assert (await shop.find(company, trx))["orderStatus"] == "finished"
    await shop.assert_books_balance()


async def test_a_new_order_does_not_overtake_those_who_wait(quick_shop: Shop) -> None:
    """OP-48: between an import and the worker's next look, a Confirm must not take what others wait for."""
    shop = quick_shop
    patient, eager = await shop.company(), await shop.company()
    await shop.product("later", async_delivery=True)
    waiting = await queue_up(shop, patient, "later", 1)
    late = await shop.create(eager, ("later", 1))

    await shop.stock("later", 1)
    await shop.confirm(eager, late["trx"])
    await shop.worker.run_once("deliver")

    assert await completed(shop, patient, waiting) == 1
    assert await completed(shop, eager, late["trx"]) == 0
    await shop.assert_books_balance()


async def test_several_workers_at_once_deliver_each_line_once(quick_shop: Shop) -> None:
    """OP-48: any number of workers may look at the same time."""
    shop = quick_shop
    companies = [await shop.company() for _ in range(4)]
    await shop.product("later", async_delivery=True)
    waiting: list[Any] = [(who, await queue_up(shop, who, "later", 3)) for who in companies for _ in range(3)]

    await shop.stock("later", 30)
    await asyncio.gather(
        *[shop.worker.run_once("deliver") for _ in range(6)],
        *[shop.worker.run_once("end_waiting") for _ in range(3)],
    )
    await shop.worker.run_once("deliver")

    counts = [await completed(shop, who, trx) for who, trx in waiting]
    assert sorted(counts) == [0] * 2 + [3] * 10
    assert await shop.left("later") == 0
    await shop.assert_books_balance()


async def test_sandbox_stock_is_not_touched_by_live_waits(quick_shop: Shop) -> None:
    """OP-49: the sandbox's endless lots serve nobody who paid real money."""
    shop = quick_shop
    company = await shop.company()
    await shop.product("later", async_delivery=True)
    await shop.create(company, ("later", 1), state=State.SANDBOX)
    trx = await queue_up(shop, company, "later", 1)

    assert await shop.worker.run_once("deliver") == 0

    assert await completed(shop, company, trx) == 0
    await shop.assert_books_balance()
