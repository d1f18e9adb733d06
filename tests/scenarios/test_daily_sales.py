"""Sales by day: the sums that a worker adds up are those that a report counts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime, timedelta

from tests.patience import until
from tests.shop import Shop
from voucherd.ids import State
from voucherd.reports import daily, sold
from voucherd.reports.model import By
from voucherd.reports.sold import Span


async def counted(shop: Shop, state: State) -> dict[str, tuple[int, ...]]:
    """What reports say of all times, by product."""
    now = datetime.now(UTC)
    span = Span(now - timedelta(days=2), now + timedelta(days=1), state)
    async with shop.pool.acquire() as conn:
        sales, margin = (
            await sold.sales(conn, span, [By.PRODUCT]),
            await sold.margin(conn, span, [By.PRODUCT]),
        )
    found: dict[str, tuple[int, ...]] = {}
    for one, two in zip(sales.lines, margin.lines, strict=True):
        codes, price, earned = found.get(str(one.labels[0]), (0, 0, 0))
        at = [measure.name for measure in sold.SALES].index("priceEur")
        found[str(one.labels[0])] = (
            codes + one.figures[0],
            price + one.figures[at],
            earned + two.figures[-1],
        )
    return found


def settled(shop: Shop) -> Callable[[], Awaitable[bool]]:
    """Whether everything that happened is added up."""

    async def look() -> bool:
        await daily.add_up(shop.pool)
        return bool(await shop.pool.fetchval("SELECT upto >= (SELECT max(id) FROM event) FROM sales_cursor"))

    return look


async def summed(shop: Shop, state: State) -> dict[str, tuple[int, ...]]:
    """What the sums of the days say, by product."""
    async with shop.pool.acquire() as conn:
        rows = await daily.by_product(conn, state, date(2020, 1, 1), 10)
    return {one.slug: (one.codes, one.price_eur_minor, one.margin_eur_minor) for one in rows}


async def test_the_sums_of_days_are_those_of_the_reports(shop: Shop) -> None:
    """OP-160: orders in two currencies, in parts, with two products, and the sandbox's own; nothing counts twice."""
    await shop.fx("USD", 91_000_000)
    one, two = await shop.company(balance="500.00 EUR"), await shop.company(balance="900.00 USD")
    await shop.product("gift", price="9.50 EUR", stock=20)
    await shop.product("later", price="3.33 EUR", async_delivery=True)
    await shop.stock("later", 2)
    both = (await shop.create(one, ("gift", 3), ("later", 4)))["trx"]
    await shop.confirm(one, both)
    await until(settled(shop), "the first sales were not added up")
    assert await summed(shop, State.LIVE) == await counted(shop, State.LIVE)
    await shop.stock("later", 2)
    await shop.until_status(one, both, "finished")
    other = (await shop.create(two, ("gift", 2), currency="USD"))["trx"]
    await shop.confirm(two, other)
    await shop.top_up(two, "50.00 EUR", state=State.SANDBOX)
    played = (await shop.create(two, ("gift", 1), state=State.SANDBOX))["trx"]
    await shop.confirm(two, played, state=State.SANDBOX)
    # As two workers do it at once.
    await asyncio.gather(*(daily.add_up(shop.pool) for _ in range(4)))
    await until(settled(shop), "the sales were not added up")
    for state in State:
        assert await summed(shop, state) == await counted(shop, state)
    assert set(await summed(shop, State.LIVE)) == {"gift", "later"}
    async with shop.pool.acquire() as conn:
        days = await daily.by_day(conn, State.LIVE, date(2020, 1, 1))
    assert sum(day.codes for day in days) == 9
    await shop.assert_books_balance()
