"""Thousands of calls that wait for slow orders: no connection is held, and little caches."""

from __future__ import annotations

import asyncio
import tracemalloc
from pathlib import Path

import pytest

from tests.patience import HANG_S, until_true
from tests.shop import Shop, open_shop
from voucherd.db import Pool
from voucherd.ids import State
from voucherd.orders.rules.decide import Finalise

KIB = 1_024


async def wait_together(shop: Shop, calls: int, *, kib_each_max: int) -> None:
    """That many Confirms and Resolves that wait at once; all finish when the codes arrive."""
    company = await shop.company(balance="1000000.00 EUR")
    await shop.product("later", async_delivery=True)
    made = await asyncio.gather(*[shop.create(company, ("later", 1)) for _ in range(calls)])
    numbers = [shop.ids.order_id(order["trx"]) for order in made]
    del made

    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    order_service = shop.order_service
    waiting = []
    for at, number in enumerate(numbers):
        command = Finalise(number, company.id, State.LIVE, resolve=at % 2 == 1)
        waiting.append(
            asyncio.create_task(
                order_service.resolve(command) if command.resolve else order_service.confirm(command)
            )
        )
    await until_true(lambda: order_service.watch.parked == calls)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used - before < calls * kib_each_max * KIB

    # Every call waits, yet all connections are free again and again: only short looks of the watch and the worker,
    # which are as many at once as the machine is slow, have one for a moment.
    pool = order_service._pool
    for _ in range(20):
        await until_true(lambda: pool.get_size() == pool.get_idle_size())
        await asyncio.sleep(0)
    assert order_service.watch.parked == calls
    assert await shop.pool.fetchval("SELECT count(*) FROM waiting") == calls
    assert (await shop.call("GET", "/api/1.00/order?limit=1", company)).status_code == 200

    for at in range(0, calls, 5_000):
        await shop.stock("later", min(5_000, calls - at))
    answers = await asyncio.gather(*waiting)
    assert {answer.order.status.name for answer in answers} == {"FINISHED"}
    codes = {code for answer in answers for ranges in answer.codes or () for code, _ in ranges}
    assert len(codes) == calls
    assert order_service.watch.parked == 0
    await shop.assert_books_balance()


async def test_hundreds_of_waiting_calls_hold_no_connection(
    pool: Pool, database_url: str, tmp_path: Path
) -> None:
    """Contract 4: Confirm and Resolve wait up to 30 seconds, however many do so at once."""
    async with open_shop(
        pool, database_url, tmp_path, confirm_wait_s=2 * HANG_S, resolve_limit_s=2 * HANG_S, pool_size=4
    ) as shop:
        await wait_together(shop, 500, kib_each_max=60)


@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_five_thousand_waiting_calls_hold_no_connection(
    pool: Pool, database_url: str, tmp_path: Path
) -> None:
    """Contract 4: the same for 5,000."""
    async with open_shop(
        pool, database_url, tmp_path, confirm_wait_s=4 * HANG_S, resolve_limit_s=4 * HANG_S, pool_size=4
    ) as shop:
        await wait_together(shop, 5_000, kib_each_max=60)
