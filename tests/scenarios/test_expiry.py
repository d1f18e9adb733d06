"""What time alone does to an order that nobody confirms."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.patience import until
from tests.shop import Shop, open_shop
from voucherd.db import Pool

EXPIRED = "this order has expired, orders need confirmation within 24 hours"


async def test_an_order_can_be_confirmed_until_its_window_ends(quiet_shop: Shop) -> None:
    """Contract 8: 24 hours, by the database's clock."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10", stock=4)
    for operation in ("confirm", "resolve"):
        early, late = [(await shop.create(company, ("gift-10", 1)))["trx"] for _ in range(2)]
        await shop.age(early, "23 hours 30 minutes")
        await shop.age(late, "24 hours")

        assert (await shop.finalise(operation, company, early)).json()["orderStatus"] == "finished"
        await shop.assert_refused(shop.finalise(operation, company, late), 400, EXPIRED)
        assert (await shop.find(company, late))["orderStatus"] == "created"
    await shop.assert_books_balance()


async def test_an_expired_order_is_announced_once(quiet_shop: Shop) -> None:
    """OP-40: order.expired, however many workers look, and not for orders that were confirmed or deleted."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10", stock=9)
    trxs = [(await shop.create(company, ("gift-10", 1)))["trx"] for _ in range(5)]
    old, older, confirmed, deleted, young = trxs
    await shop.confirm(company, confirmed)
    await shop.cancel(company, deleted)
    for trx in (old, older, confirmed, deleted):
        await shop.age(trx, "24 hours 1 second")

    told = await asyncio.gather(*[shop.worker.run_once("announce_expired") for _ in range(4)])
    told += [await shop.worker.run_once("announce_expired") for _ in range(2)]

    assert sum(told) == 2
    for trx in (old, older):
        assert await shop.events(trx) == ["order.created", "order.expired"]
    assert await shop.events(confirmed) == ["order.created", "order.finished"]
    assert await shop.events(deleted) == ["order.created", "order.deleted"]
    assert await shop.events(young) == ["order.created"]
    # It can still be cancelled, and its events go on without a gap.
    assert (await shop.cancel(company, old)).status_code == 204
    assert await shop.events(old) == ["order.created", "order.expired", "order.deleted"]
    await shop.assert_books_balance()


async def test_the_worker_announces_by_itself(pool: Pool, database_url: str, tmp_path: Path) -> None:
    """OP-40: an order whose window is over is refused before the announcement, and announced without anybody's call."""
    async with open_shop(pool, database_url, tmp_path, with_worker=False) as shop:
        company = await shop.company()
        await shop.product("gift-10", stock=1)
        trx = (await shop.create(company, ("gift-10", 1)))["trx"]
        await shop.age(trx, "24 hours")
        await shop.assert_refused(shop.finalise("confirm", company, trx), 400, EXPIRED)
    async with open_shop(pool, database_url, tmp_path) as shop:

        async def announced() -> bool:
            return await shop.events(trx) == ["order.created", "order.expired"]

        await until(announced)
        await shop.assert_books_balance()


async def test_an_order_that_expired_a_month_ago_is_removed(quiet_shop: Shop) -> None:
    """OP-40: 30 days after its window; never one that was confirmed or deleted."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10", stock=9)
    old, fresh, confirmed, deleted = [(await shop.create(company, ("gift-10", 1)))["trx"] for _ in range(4)]
    await shop.confirm(company, confirmed)
    await shop.cancel(company, deleted)
    for trx in (old, confirmed, deleted):
        await shop.age(trx, "31 days 1 second")
    await shop.age(fresh, "30 days 23 hours")

    assert await shop.worker.run_once("remove_expired") == 1
    assert await shop.worker.run_once("remove_expired") == 0

    assert (await shop.call("GET", f"/api/1.03/order/{old}", company)).status_code == 404
    assert (await shop.find(company, fresh))["orderStatus"] == "created"
    assert (await shop.find(company, confirmed))["orderStatus"] == "finished"
    assert await shop.pool.fetchval("SELECT count(*) FROM orders") == 3
    await shop.assert_books_balance()


async def test_a_confirm_and_the_announcement_never_both_win(quiet_shop: Shop) -> None:
    """OP-40, Contract 8: the sweep waits for the order's lock and looks again."""
    shop = quiet_shop
    company = await shop.company()
    await shop.product("gift-10", stock=20)
    for _ in range(10):
        trx = (await shop.create(company, ("gift-10", 1)))["trx"]
        await shop.age(trx, "23 hours 59 minutes 59.98 seconds")
        response, _ = await asyncio.gather(
            shop.finalise("confirm", company, trx), shop.worker.run_once("announce_expired")
        )
        if response.status_code != 200:
            assert (response.status_code, response.text) == (400, EXPIRED)
        # Its window is certainly over now; whoever lost gets no second event.
        await shop.age(trx, "1 second")
        await shop.worker.run_once("announce_expired")
        events = await shop.events(trx)
        assert events[1:] == (["order.finished"] if response.status_code == 200 else ["order.expired"])
    await shop.assert_books_balance()
