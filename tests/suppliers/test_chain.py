"""A voucherd that sells what another one stocks, end to end over HTTP: both books agree in the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.patience import HANG_S, until
from tests.shop import Shop, open_shop
from tests.suppliers.chain import FUNDS_MINOR, Chain
from voucherd.catalogue.texts import read_selling
from voucherd.db import Pool
from voucherd.ids import State
from voucherd.money import Money

ASKING, BOUGHT, FAILED = 1, 3, 4
UNTIL_S = 2 * HANG_S


@pytest.fixture
async def chain(
    other_shop: Shop, other_port: int, pool: Pool, database_url: str, tmp_path: Path
) -> AsyncIterator[Chain]:
    """The other voucherd, and a shop of this test's own that is its client."""
    async with open_shop(
        pool, database_url, tmp_path, confirm_wait_s=UNTIL_S, resolve_limit_s=UNTIL_S
    ) as second:
        us = await other_shop.company(balance=str(Money(FUNDS_MINOR, "EUR")))
        yield Chain(other_shop, second, f"http://127.0.0.1:{other_port}", us)


async def test_confirm_and_resolve_sell_what_another_voucherd_stocks(chain: Chain) -> None:
    """OP-43, OP-44: a bulk order in several purchases, a Resolve by Resolve, and what each line cost."""
    first, second = chain.first, chain.second
    bulk, quick = await chain.sold_in_both(stock=0), await chain.sold_in_both(stock=0)
    codes = {code for code, _ in await first.stock(bulk, 12)}
    await first.stock(quick, 3)
    by_confirm = await chain.supplier(bulk, bulk_max=5)
    by_resolve = await chain.supplier(quick, resolve_upto=10)
    company = await second.company(balance="500.00 EUR")

    done = await second.confirm(company, (await second.create(company, (bulk, 12)))["trx"])
    resolved = await second.resolve(company, (await second.create(company, (quick, 3)))["trx"])

    lines = done["items"][0]["orderLines"]
    assert {line["voucherCode"] for line in lines} == codes
    assert {line["purchasePriceAmount"] for line in lines} == {9.0}
    for trx in {line["externalId"] for line in lines}:
        assert (await first.find(chain.us, trx))["orderStatus"] == "finished"
    assert sorted(await chain.purchases(by_confirm), reverse=True) == [
        (BOUGHT, 5, 5, None),
        (BOUGHT, 5, 5, None),
        (BOUGHT, 2, 2, None),
    ]
    assert (resolved["orderStatus"], await chain.purchases(by_resolve)) == (
        "finished",
        [(BOUGHT, 3, 3, None)],
    )
    assert await second.balance(company) == Money.read("357.50 EUR")
    await chain.assert_both_books_agree()


async def test_what_the_first_sold_to_others_comes_later_and_a_cancel_takes_the_rest_back(
    chain: Chain,
) -> None:
    """OP-45 on both sides: refunded here at once; what was delivered there goes to our shelf, the rest is refunded."""
    first, second = chain.first, chain.second
    later = await chain.sold_in_both(async_delivery=True, stock=0)
    rival = await first.company(balance="500.00 EUR")
    company = await second.company(balance="500.00 EUR")
    await first.stock(later, 3)
    name = await chain.supplier(later)

    await first.confirm(rival, (await first.create(rival, (later, 1)))["trx"])
    waits = (await second.create(company, (later, 3)))["trx"]
    confirming = asyncio.create_task(second.confirm(company, waits))
    await chain.until_purchase(name, ASKING)
    await first.stock(later, 1)
    # The first delivers in the background.
    none_waits = "SELECT NOT EXISTS (SELECT FROM waiting WHERE company_id = $1)"
    await until(lambda: first.pool.fetchval(none_waits, chain.us.id))
    await chain.ask_now()
    await second.until_status(company, waits, "finished")
    await confirming

    await first.stock(later, 4)
    await chain.quoted()
    await first.confirm(rival, (await first.create(rival, (later, 3)))["trx"])
    cancelled = (await second.create(company, (later, 4)))["trx"]
    confirming = asyncio.create_task(second.confirm(company, cancelled))
    await chain.until_purchase(name, ASKING)
    answer = await second.cancel(company, cancelled)
    await confirming
    # The first says that no more will come: nobody waits for the settling time.
    await chain.ask_now()
    await chain.until_purchase(name, BOUGHT)
    ended = await second.find(company, cancelled)

    assert (answer.status_code, answer.json()["orderStatus"]) == (200, "cancelled")
    assert [line["status"] for line in ended["items"][0]["orderLines"]] == ["cancelled"] * 4
    assert ended["paymentStatus"] == "refunded"
    assert await second.balance(company) == Money.read("471.50 EUR")
    assert await second.left(later) == 1
    await chain.assert_both_books_agree()


async def test_a_price_that_rose_there_is_paid_within_the_slack_and_refused_beyond_it(chain: Chain) -> None:
    """OP-42: the client pays what Create said; we pay what the supplier asks, up to a limit, and book that."""
    first, second = chain.first, chain.second
    slug = await chain.sold_in_both(stock=0, async_delivery=True)
    await first.stock(slug, 10)
    name = await chain.supplier(slug)
    company = await second.company(balance="500.00 EUR")
    cheap, dear = [(await second.create(company, (slug, 2)))["trx"] for _ in range(2)]

    await first.set_product(slug, selling=read_selling("9.05 EUR", None))
    paid = await second.confirm(company, cheap)
    await first.set_product(slug, selling=read_selling("9.30 EUR", None))
    confirming = asyncio.create_task(second.confirm(company, dear))
    await chain.until_purchase(name, FAILED)
    await first.set_product(slug, selling=read_selling("9.00 EUR", None))
    await chain.quoted()
    await confirming
    await second.until_status(company, dear, "finished")

    assert [line["purchasePriceAmount"] for line in paid["items"][0]["orderLines"]] == [9.05] * 2
    assert (FAILED, 2, 0, "price: costs 9.30 EUR") in await chain.purchases(name)
    assert await second.balance(company) == Money.read("462.00 EUR")
    await chain.assert_both_books_agree()


async def test_a_variable_product_is_bought_there_with_the_face_value_that_the_client_chose(
    chain: Chain,
) -> None:
    """OP-10, OP-51: the price of any face value follows from those at both ends."""
    first, second = chain.first, chain.second
    slug = await chain.sold_in_both(
        face=None, face_range="5-50 EUR", price=None, ours=None, fee="1.02+0.10", vat_category="exempt"
    )
    await first.stock(slug, 3, face="12.50 EUR")
    await first.stock(slug, 1, face="5.00 EUR")
    await first.stock(slug, 1, face="50.00 EUR")
    name = await chain.supplier(slug)
    company = await second.company(balance="500.00 EUR")

    order = await second.create(company, {"productSlug": slug, "amount": 1, "faceValue": 12.5})
    done = await second.resolve(company, order["trx"])

    line = done["items"][0]["orderLines"][0]
    assert (done["orderStatus"], done["items"][0]["faceValueAmount"]) == ("finished", 12.5)
    assert (line["purchasePriceAmount"], await chain.purchases(name)) == (12.85, [(BOUGHT, 1, 1, None)])
    await chain.assert_both_books_agree()


async def test_too_little_money_there_keeps_lines_waiting_until_there_is_some(chain: Chain) -> None:
    """OP-44: nothing is lost or charged twice, and the order goes on by itself after the top-up."""
    first, second = chain.first, chain.second
    slug = await chain.sold_in_both(stock=0, async_delivery=True)
    await first.stock(slug, 4)
    poor = await first.company(balance="10.00 EUR")
    rich, chain.us = chain.us, poor
    name = await chain.supplier(slug)
    company = await second.company(balance="500.00 EUR")
    trx = (await second.create(company, (slug, 4)))["trx"]

    confirming = asyncio.create_task(second.confirm(company, trx))
    await chain.until_purchase(name, FAILED)
    reason = (await chain.purchases(name))[0][3]
    unpaid = await first.balance(poor)
    await first.top_up(poor, "990.00 EUR")
    await chain.quoted()
    await confirming
    await second.until_status(company, trx, "finished")

    assert reason == "funds: insufficient balance"
    assert unpaid == Money.read("10.00 EUR")
    assert await first.balance(rich) == Money(FUNDS_MINOR, "EUR")
    await chain.assert_both_books_agree()


async def test_the_sandbox_buys_in_the_other_sandbox_and_touches_nothing_live(chain: Chain) -> None:
    """OP-49, invariant 5: play money on both sides, codes that begin with TEST, and no live order anywhere."""
    first, second = chain.first, chain.second
    slug = await chain.sold_in_both(stock=0)
    name = await chain.supplier(slug, state=State.SANDBOX, sandbox_outcome="finished")
    company = await second.company(balance="500.00 EUR")
    sandbox = {"state": State.SANDBOX, "outcome": "finished"}

    confirmed = await second.confirm(
        company, (await second.create(company, (slug, 3), state=State.SANDBOX))["trx"], **sandbox
    )
    resolved = await second.resolve(
        company, (await second.create(company, (slug, 1), state=State.SANDBOX))["trx"], **sandbox
    )

    for order in (confirmed, resolved):
        assert (order["orderStatus"], order["state"]) == ("finished", "sandbox")
        assert all(line["voucherCode"].startswith("TEST") for line in order["items"][0]["orderLines"])
    assert len(await chain.purchases(name)) == 2
    assert await second.balance(company) == Money.read("500.00 EUR")
    assert await first.balance(chain.us) == Money(FUNDS_MINOR, "EUR")
    await chain.assert_both_books_agree(State.SANDBOX)
    await chain.assert_both_books_agree(State.LIVE)
