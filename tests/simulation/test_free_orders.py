"""An order that costs nothing is paid for, refunded and told about like any other: lives that the machine found."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.shop import Company, Shop, open_shop
from voucherd.db import Pool


@pytest.fixture
async def shop(pool: Pool, database_url: str, tmp_path: Path) -> AsyncIterator[Shop]:
    """A shop with a product that is sold for so little of a weak currency that it is nothing in another one."""
    async with open_shop(
        pool, database_url, tmp_path, with_worker=False, confirm_wait_s=0, resolve_limit_s=30
    ) as opened:
        await opened.fx("VND", 3_500)
        await opened.product("free", price="1 VND", async_delivery=True)
        yield opened


@pytest.fixture(params=["10.00 EUR", None], ids=["with a wallet", "without one"])
async def company(shop: Shop, request: pytest.FixtureRequest) -> Company:
    """A company that has, or never had, money."""
    return await shop.company(balance=request.param)


async def test_a_free_order_that_is_cancelled_in_part_is_partially_refunded(
    shop: Shop, company: Company
) -> None:
    """OP-44, OP-45: what was delivered stays paid for, whatever it cost."""
    await shop.stock("free", 1)
    order = await shop.create(company, ("free", 2))
    assert order["priceInclVat"] == 0
    assert (await shop.confirm(company, order["trx"]))["orderStatus"] == "pending"

    cancelled = (await shop.cancel(company, order["trx"])).json()

    assert (cancelled["orderStatus"], cancelled["paymentStatus"]) == ("cancelled", "partially_refunded")
    await shop.assert_books_balance()


async def test_a_free_resolve_that_waited_is_paid_when_its_codes_come(shop: Shop, company: Company) -> None:
    """OP-46: a hold of nothing is settled like any other."""
    order = await shop.create(company, ("free", 2))
    resolving = asyncio.create_task(shop.resolve(company, order["trx"]))
    await shop.waits(order["trx"])
    await shop.stock("free", 2)
    await shop.worker.run_once("deliver")

    resolved = await resolving

    assert (resolved["orderStatus"], resolved["paymentStatus"]) == ("finished", "paid")
    await shop.assert_books_balance()
