"""Offers that were refused for good: nobody waits for them, and nobody is sold them, until something changes."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from tests.purchasing.conftest import Market
from tests.purchasing.fake import FakeSupplier, sold_out, unreachable, waits_in_vain
from tests.shop import Company
from voucherd.money import Money
from voucherd.suppliers.protocol import Answer, SupplierRefused, WantedCodes, Why

ROUNDS_MAX = 20
NOT_AVAILABLE = "Some offers not available: Gift"


def refuses(why: Why) -> object:
    """A supplier that says no, for this reason."""

    async def deed(_supplier: FakeSupplier, _reference: str, _wanted: WantedCodes) -> Answer:
        return SupplierRefused(why)

    return deed


async def until_over(market: Market, calling: asyncio.Task[httpx.Response]) -> httpx.Response:
    """The answer to a call that the dispatcher's rounds bring to its end."""
    for _ in range(ROUNDS_MAX):
        await market.round()
        done, _ = await asyncio.wait([calling], timeout=0.5)
        if done:
            break
    return await calling


async def test_a_resolve_ends_at_once_when_every_offer_has_refused_for_good(market: Market) -> None:
    """Contract 3, OP-140: not at its limit; cancelled without a charge, and nobody is asked twice."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR")
    company = await shop.company(balance="100.00 EUR")
    fakes = [await market.supplier(name, "gift") for name in ("one", "two")]
    for fake in fakes:
        fake.deeds += [sold_out] * ROUNDS_MAX
    order = await shop.create(company, ("gift", 1))
    resolving = asyncio.create_task(shop.finalise("resolve", company, order["trx"]))
    await market.until_held(company)

    answer = await until_over(market, resolving)

    assert (answer.status_code, answer.json()["orderStatus"]) == (200, "cancelled")
    assert [[verb for verb, _ in fake.calls] for fake in fakes] == [["buy"]] * 2
    assert await shop.pool.fetchval("SELECT updated_at < deadline_at - interval '1 s' FROM orders")
    assert (await shop.balance(company), await shop.held(company)) == (Money.read("100.00 EUR"), 0)
    await shop.assert_books_balance()


async def test_a_paid_line_that_can_not_come_later_is_refunded_when_nobody_sells_it(market: Market) -> None:
    """OP-43, OP-140: within a minute and not after 72 hours; what may come later waits on in the same order."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR")
    await shop.product("later", price="9.50 EUR", async_delivery=True)
    company = await shop.company(balance="100.00 EUR")
    fake = await market.supplier("one", "gift", "later")
    fake.deeds += [sold_out] * ROUNDS_MAX
    both = await shop.create(company, ("gift", 1), ("later", 1))
    alone = await shop.create(company, ("gift", 1))
    for order in (both, alone):
        await shop.confirm(company, order["trx"])

    for _ in range(4):
        await market.round()

    ended, kept = await shop.find(company, alone["trx"]), await shop.find(company, both["trx"])
    assert (ended["orderStatus"], ended["paymentStatus"]) == ("cancelled", "refunded")
    assert (kept["orderStatus"], kept["paymentStatus"]) == ("pending", "partially_refunded")
    assert [item["orderLines"][0]["status"] for item in kept["items"]] == ["cancelled", "pending"]
    assert await shop.balance(company) == Money.read("90.50 EUR")
    await shop.assert_books_balance()
    fake.deeds.clear()
    fake.stock = 7
    await market.quotes()
    await market.round()
    assert (await shop.find(company, both["trx"]))["items"][1]["orderLines"][0]["status"] == "finished"
    await shop.assert_books_balance()


async def refused_once(market: Market, company: Company, count: int, deed: object) -> FakeSupplier:
    """A supplier that has refused one purchase of so many codes in this way."""
    fake = await market.supplier("one", "gift")
    fake.deeds.append(deed)  # type: ignore[arg-type]
    order = await market.shop.create(company, ("gift", count))
    await market.shop.confirm(company, order["trx"])
    await market.round()
    return fake


@pytest.mark.parametrize(
    ("why", "until"),
    [(Why.OUT_OF_STOCK, "stock"), (Why.PRICE, "price"), (Why.FUNDS, "time"), (Why.REJECTED, "stock")],
)
async def test_an_offer_that_was_refused_is_not_available_until_something_changes(
    market: Market, why: Why, until: str
) -> None:
    """OP-21, OP-140: until the supplier names another stock or price, or five minutes have passed."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR")
    company = await shop.company(balance="100.00 EUR")
    fake = await refused_once(market, company, 1, refuses(why))

    await shop.assert_refused(shop.try_create(company, ("gift", 1)), 422, NOT_AVAILABLE)
    product = (await shop.call("GET", "/api/1.03/product/gift", company)).json()
    assert product["isStocked"] is False
    await market.quotes()
    await shop.assert_refused(shop.try_create(company, ("gift", 1)), 422, NOT_AVAILABLE)

    if until == "stock":
        fake.stock -= 1
    elif until == "price":
        fake.price = "8.90 EUR"
    else:
        await shop.pool.execute("UPDATE refused_offer SET refused_until = now()")
    await market.quotes()
    order = await shop.create(company, ("gift", 1))
    await shop.confirm(company, order["trx"])
    await market.round()
    assert (await shop.find(company, order["trx"]))["orderStatus"] == "finished"
    assert await shop.pool.fetchval("SELECT count(*) FROM refused_offer") == 0
    await shop.assert_books_balance()


async def test_a_refusal_of_many_codes_says_nothing_about_a_few(market: Market) -> None:
    """OP-140: a large order that a supplier can't fill does not take the product from everybody else."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR", async_delivery=True)
    company = await shop.company(balance="100.00 EUR")
    await refused_once(market, company, 8, sold_out)

    assert await shop.pool.fetchval("SELECT stock FROM refused_offer") == 2
    for _ in range(6):
        await market.round()
    (bought,) = await shop.pool.fetch("SELECT sum(codes)::int FROM attempt")
    assert bought[0] == 8, "bought in smaller parts"
    await shop.assert_books_balance()


@pytest.mark.parametrize("way", ["unreachable", "older than the prices"])
async def test_what_may_pass_is_no_refusal_for_good(market: Market, way: str) -> None:
    """OP-44, OP-140: a supplier that was not reached, or has named prices since, is tried again."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR")
    company = await shop.company(balance="100.00 EUR")
    fake = await market.supplier("one", "gift")
    fake.deeds.append(unreachable if way == "unreachable" else waits_in_vain)
    order = await shop.create(company, ("gift", 1))
    await shop.confirm(company, order["trx"])
    await market.dispatcher.dispatch()
    if way != "unreachable":
        await shop.pool.execute("UPDATE offer SET quoted_at = now()")
    fake.free.set()
    await market.dispatcher.settled()

    assert (await shop.try_create(company, ("gift", 1))).status_code == 201
    for _ in range(2):
        await market.round()
    assert (await shop.find(company, order["trx"]))["orderStatus"] == "finished"
    await shop.assert_books_balance()


async def test_a_resolve_that_is_refused_takes_what_came_to_the_shelf_meanwhile(market: Market) -> None:
    """OP-43, OP-140: it ends only if the shelf can't serve it either."""
    shop = market.shop
    await shop.product("gift", price="9.50 EUR")
    company = await shop.company(balance="100.00 EUR")
    fake = await market.supplier("one", "gift")
    fake.deeds.append(waits_in_vain)
    order = await shop.create(company, ("gift", 1))
    resolving = asyncio.create_task(shop.finalise("resolve", company, order["trx"]))
    await market.until_held(company)
    await market.dispatcher.dispatch()
    await shop.stock("gift", 1)
    fake.free.set()
    await market.dispatcher.settled()
    await market.round()
    await shop.worker.run_once("deliver")

    assert (await resolving).json()["orderStatus"] == "finished"
    await shop.assert_books_balance()
