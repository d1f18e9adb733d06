"""Orders of up to 10,000 codes: as correct as one of a single code, and written with as few rows."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from tests.patience import HANG_S
from tests.shop import Shop
from voucherd.ids import State
from voucherd.money import Money
from voucherd.orders.model import INLINE_LINES_MAX

TABLES = ("orders", "order_item", "outcome", "waiting", "entry", "lot", "event")


async def rows(shop: Shop) -> Counter[str]:
    """How many rows each table has."""
    counts = [await shop.pool.fetchval(f"SELECT count(*) FROM {table}") for table in TABLES]  # noqa: S608 - Constants.
    return Counter(dict(zip(TABLES, counts, strict=True)))


async def test_ten_thousand_codes_are_delivered_once_each_with_as_few_rows_as_one(quiet_shop: Shop) -> None:
    """OP-14: create and confirm of 10,000; the rows written do not grow with the amount."""
    shop = quiet_shop
    company = await shop.company(balance="200000.00 EUR")
    await shop.product("gift-10", vat_category="single_purpose")
    await shop.stock("gift-10", 1)
    written = {}
    for amount in (1, 10_000):
        codes = await shop.stock("gift-10", amount)
        before = await rows(shop)
        order = await shop.create(company, ("gift-10", amount))
        confirmed = await shop.confirm(company, order["trx"], version="1.00")
        written[amount] = await rows(shop) - before

    (item,) = confirmed["items"]
    assert (confirmed["orderStatus"], item["linesCompleted"]) == ("finished", 10_000)
    assert len(order["items"][0]["orderLines"]) == 10_000
    assert [line["tag"] for line in item["orderLines"]] == [
        line["tag"] for line in order["items"][0]["orderLines"]
    ]
    # The first lot had one code left: lines 0 to 9,998 come from it and the new lot.
    got = [line["voucherCode"] for line in item["orderLines"]]
    assert len(set(got)) == 10_000
    assert got[-9_999:] == [code for code, _ in codes[:9_999]]
    # One outcome more, because the codes came from two lots; nothing grows with the amount.
    assert written[1] == Counter(orders=1, order_item=1, outcome=1, entry=1, event=2)
    assert written[10_000] == written[1] + Counter(outcome=1)
    assert await shop.balance(company) == Money(20_000_000 - 10_001 * 1_150, "EUR")
    await shop.assert_books_balance()


async def test_a_large_order_waits_and_is_cancelled_like_a_small_one(quick_shop: Shop) -> None:
    """OP-45: partly delivered from two lots, the rest refunded, all of it streamed."""
    shop = quick_shop
    company = await shop.company(balance="100000.00 EUR")
    await shop.product("later", async_delivery=True, stock=700)
    order = await shop.create(company, ("later", 3_000))
    pending = await shop.confirm(company, order["trx"])
    assert Counter(line["status"] for line in pending["items"][0]["orderLines"]) == {
        "finished": 700,
        "pending": 2_300,
    }
    await shop.stock("later", 800)
    await shop.worker.run_once("deliver")

    cancelled = (await shop.cancel(company, order["trx"])).json()

    lines = cancelled["items"][0]["orderLines"]
    assert Counter(line["status"] for line in lines) == {"finished": 1_500, "cancelled": 1_500}
    assert len({line["voucherCode"] for line in lines if line["voucherCode"]}) == 1_500
    assert cancelled == await shop.find(company, order["trx"])
    assert await shop.balance(company) == Money(10_000_000 - 1_500 * 950, "EUR")
    assert await shop.events(order["trx"]) == [
        "order.created",
        "order.pending",
        "order.line_finished",
        "order.cancelled",
    ]
    await shop.assert_books_balance()


@pytest.mark.parametrize("amount", [INLINE_LINES_MAX, INLINE_LINES_MAX + 1])
async def test_nothing_changes_where_streaming_begins(quiet_shop: Shop, amount: int) -> None:
    """OP-14: the last order in one piece and the first in several look alike, also in the sandbox."""
    shop = quiet_shop
    company = await shop.company(balance="10000.00 EUR")
    await shop.product("gift-10")
    order = await shop.create(company, ("gift-10", amount), state=State.SANDBOX)
    done = await shop.confirm(company, order["trx"], state=State.SANDBOX, outcome="finished")
    found = await shop.find(company, order["trx"], state=State.SANDBOX)
    assert done == found
    lines = found["items"][0]["orderLines"]
    assert len({line["voucherCode"] for line in lines}) == len({line["id"] for line in lines}) == amount
    assert {len(line) for line in lines} == {44}
    await shop.assert_books_balance()


async def test_between_two_pieces_of_large_answers_the_server_sees_to_everything_else(
    quick_shop: Shop,
) -> None:
    """OP-48: however many are written at once, a sale waits for one piece of one of them."""
    service, seen = quick_shop.app.service, []

    async def large() -> AsyncIterator[bytes]:
        for _ in range(10):
            seen.append("piece")
            yield b"piece"

    async def write() -> None:
        body = large()
        while await service.next_piece(body, HANG_S) is not None:
            pass

    def look() -> None:
        seen.append("other work")
        if not writing.done():
            asyncio.get_running_loop().call_soon(look)

    writing = asyncio.gather(*(write() for _ in range(20)))
    look()
    await writing
    assert seen.count("piece") == 200
    assert ("piece", "piece") not in itertools.pairwise(seen)
