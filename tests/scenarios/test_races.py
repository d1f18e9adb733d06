"""Races: whatever happens at once, exactly one call wins an order, a cent and a code."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.shop import Company, Shop, open_shop
from voucherd.db import Pool
from voucherd.money import Money

CALLS = ("confirm", "resolve", "cancel")


def won(response: httpx.Response) -> bool:
    """Whether a call did something to the order."""
    return response.status_code in (200, 204)


async def race(
    shop: Shop, company: Company, orders: int, calls: int, *, slug: str = "gift-10"
) -> Counter[str]:
    """That many calls on each of that many orders, all at once; which operations won."""
    winners: Counter[str] = Counter()
    for _ in range(orders):
        trx = (await shop.create(company, (slug, 1)))["trx"]
        names = [CALLS[at % 3] for at in range(calls)]
        answers = await asyncio.gather(*[shop.finalise(name, company, trx, version="1.03") for name in names])
        successes = [name for name, answer in zip(names, answers, strict=True) if won(answer)]
        assert len(successes) == 1, successes
        winners[successes[0]] += 1
        refused = {(a.status_code, a.text) for a in answers if not won(a)}
        assert refused <= {
            (400, "this order can not be confirmed"),
            (400, "Invalid order status"),
            (404, "order not found"),
            (404, "Order not found"),
        }
    return winners


async def test_of_thirty_calls_on_one_order_exactly_one_wins(quiet_shop: Shop) -> None:
    """Contract 4, OP-47: the same trx is never worked on by two calls at once."""
    shop = quiet_shop
    company = await shop.company(balance="1000.00 EUR")
    await shop.product("gift-10", stock=60)

    winners = await race(shop, company, orders=50, calls=30)

    sold = winners["confirm"] + winners["resolve"]
    assert await shop.balance(company) == Money(100_000 - 950 * sold, "EUR")
    assert await shop.left("gift-10") == 60 - sold
    await shop.assert_books_balance()


@pytest.mark.soak
@pytest.mark.timeout(1_800)
async def test_of_thirty_calls_on_each_of_a_thousand_orders_exactly_one_wins(quiet_shop: Shop) -> None:
    """Contract 4, OP-47: the same for an hour of a busy shop."""
    shop = quiet_shop
    company = await shop.company(balance="100000.00 EUR")
    await shop.product("gift-10", stock=1_000)
    winners = await race(shop, company, orders=1_000, calls=30)
    assert sum(winners.values()) == 1_000
    await shop.assert_books_balance()


async def test_cancels_and_deliveries_of_a_waiting_order_share_its_lines(quick_shop: Shop) -> None:
    """OP-45: a line is delivered and paid, or cancelled and refunded, whoever comes first."""
    shop = quick_shop
    company = await shop.company(balance="1000.00 EUR")
    await shop.product("later", async_delivery=True)
    spent = 0
    for _ in range(15):
        # Of what is on the shelf, at most four lines can be delivered: the order can't finish.
        trx = (await shop.create(company, ("later", 6)))["trx"]
        await shop.confirm(company, trx)
        await shop.stock("later", 2)
        cancels = [shop.cancel(company, trx) for _ in range(3)]
        answers = await asyncio.gather(*cancels, *[shop.worker.run_once("deliver") for _ in range(3)])
        assert [won(answer) for answer in answers if isinstance(answer, httpx.Response)].count(True) == 1
        found = await shop.find(company, trx)
        statuses = Counter(line["status"] for line in found["items"][0]["orderLines"])
        assert found["orderStatus"] == "cancelled"
        assert statuses["finished"] + statuses["cancelled"] == 6
        spent += 950 * statuses["finished"]
    assert await shop.balance(company) == Money(100_000 - spent, "EUR")
    await shop.assert_books_balance()


async def confirm_all(shops: list[Shop], company: Company, trxs: list[str]) -> list[httpx.Response]:
    """Confirm every order, spread over the shops, all at once; every other one by Resolve."""
    return await asyncio.gather(
        *[
            shops[at % len(shops)].finalise("resolve" if at % 4 == 3 else "confirm", company, trx)
            for at, trx in enumerate(trxs)
        ]
    )


async def play(shops: list[Shop], *, balance: int, stock: int, orders: int) -> dict[int, int]:
    """As many orders as told, money and codes for some of them; the answers by status."""
    shop = shops[0]
    company = await shop.company(balance=None)
    await shop.top_up(company, f"{balance * 950 / 100:.2f} EUR")
    await shop.product("gift-10", stock=max(stock, 1))
    created = await asyncio.gather(*[shop.create(company, ("gift-10", 1)) for _ in range(orders)])
    answers = await confirm_all(shops, company, [order["trx"] for order in created])
    codes: list[Any] = [a.json()["items"][0]["orderLines"][0]["voucherCode"] for a in answers if won(a)]
    assert len(set(codes)) == len(codes)
    assert await shop.balance(company) == Money(950 * (balance - len(codes)), "EUR")
    assert await shop.left("gift-10") == stock - len(codes)
    await shop.assert_books_balance()
    return dict(Counter(answer.status_code for answer in answers))


async def test_a_wallet_for_forty_of_a_hundred_orders_pays_exactly_forty(quiet_shop: Shop) -> None:
    """Contract 1: the balance must cover the order, at once or one by one."""
    assert await play([quiet_shop], balance=40, stock=200, orders=100) == {200: 40, 402: 60}


async def test_stock_for_forty_of_a_hundred_orders_is_sold_exactly_forty_times(quiet_shop: Shop) -> None:
    """OP-43: no code is sold twice, and none stays behind."""
    assert await play([quiet_shop], balance=200, stock=40, orders=100) == {200: 40, 422: 60}


@pytest.mark.parametrize(("balance", "stock", "refusal"), [(30, 200, 402), (200, 30, 422)])
async def test_two_services_on_one_database_never_overspend_or_sell_twice(
    pool: Pool, database_url: str, tmp_path: Path, balance: int, stock: int, refusal: int
) -> None:
    """Contract 1, OP-43: the locks are the database's, not the process's."""
    async with (
        open_shop(pool, database_url, tmp_path) as one,
        open_shop(pool, database_url, tmp_path) as two,
    ):
        assert await play([one, two], balance=balance, stock=stock, orders=100) == {200: 30, refusal: 70}


async def test_two_services_agree_on_one_winner(pool: Pool, database_url: str, tmp_path: Path) -> None:
    """OP-47: the same trx through two processes at once."""
    async with (
        open_shop(pool, database_url, tmp_path) as one,
        open_shop(pool, database_url, tmp_path) as two,
    ):
        company = await one.company(balance="1000.00 EUR")
        await one.product("gift-10", stock=20)
        for _ in range(15):
            trx = (await one.create(company, ("gift-10", 1)))["trx"]
            calls = [shop.finalise(name, company, trx) for shop in (one, two) for name in CALLS * 2]
            answers = await asyncio.gather(*calls)
            assert sum(map(won, answers)) == 1
        await one.assert_books_balance()


async def test_orders_of_the_same_products_in_opposite_order_do_not_lock_each_other(quiet_shop: Shop) -> None:
    """OP-47: everything is locked in one order, so nobody waits in a circle."""
    shop = quiet_shop
    companies = [await shop.company() for _ in range(4)]
    slugs = [f"gift-{n}" for n in range(4)]
    for slug in slugs:
        await shop.product(slug, stock=100)
    made = []
    for at in range(24):
        company = companies[at % 4]
        items = [(slug, 1) for slug in (slugs if at % 2 else slugs[::-1])]
        made.append((company, (await shop.create(company, *items))["trx"]))

    answers = await asyncio.gather(*[shop.finalise("confirm", company, trx) for company, trx in made])

    assert [answer.status_code for answer in answers] == [200] * 24
    await shop.assert_books_balance()
