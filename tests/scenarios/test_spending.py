"""Limits of what a company or a key may spend, and the alert of a low balance."""

from __future__ import annotations

import asyncio

from tests.shop import Company, Shop
from voucherd.actors import SYSTEM
from voucherd.companies import store as company_store
from voucherd.db import transaction
from voucherd.ids import State
from voucherd.keys import deeds as key_deeds
from voucherd.keys.key_text import KeyWish
from voucherd.money import Money
from voucherd.wallet import low_balance

REFUSED = (402, "spend limit exceeded")


async def limit(
    shop: Shop, company: Company, *, order: int | None = None, day: int | None = None, key: bool = False
) -> None:
    """Limit the company, or its live key, and let every process hear of it."""
    async with transaction(shop.pool) as tx:
        if key:
            key_id = await tx.fetchval(
                "SELECT id FROM api_key WHERE company_id = $1 AND state = 0", company.id
            )
            wish = KeyWish(spend_order_eur_minor=order, spend_day_eur_minor=day)
            await key_deeds.change(tx, SYSTEM, key_id, wish)
        else:
            await company_store.limit_company(tx, company.name, order_eur_minor=order, day_eur_minor=day)
    await shop.hear()


async def test_an_order_above_the_limit_of_one_order_is_refused_and_changes_nothing(quiet_shop: Shop) -> None:
    """OP-61: of a company, in EUR at the rate of Create, VAT included; what is exactly at the limit is not above."""
    shop = quiet_shop
    await shop.product("gift", price="10.00 EUR", stock=10)
    await shop.fx("USD", 50_000_000)
    company = await shop.company(balance="1000.00 EUR")
    await shop.top_up(company, "1000.00 USD")
    await limit(shop, company, order=2_000)

    exact, above = await shop.create(company, ("gift", 2)), await shop.create(company, ("gift", 3))
    dollars = await shop.create(company, ("gift", 3), currency="USD")

    assert (await shop.confirm(company, exact["trx"]))["orderStatus"] == "finished"
    for order in (above, dollars):
        for operation in ("confirm", "resolve"):
            await shop.assert_refused(shop.finalise(operation, company, order["trx"]), *REFUSED)
    await shop.assert_books_balance()


async def test_a_days_limit_of_a_key_holds_under_parallel_calls(quiet_shop: Shop) -> None:
    """OP-61: of 30 orders at once exactly as many pass as the day allows, and the next day allows as many again."""
    shop = quiet_shop
    await shop.product("gift", price="10.00 EUR", stock=100)
    company = await shop.company(balance="1000.00 EUR")
    await limit(shop, company, day=7_500, key=True)
    orders = [await shop.create(company, ("gift", 1)) for _ in range(30)]

    answers = await asyncio.gather(
        *(
            shop.finalise("confirm" if at % 2 else "resolve", company, order["trx"])
            for at, order in enumerate(orders)
        )
    )
    refused = [order for order, answer in zip(orders, answers, strict=True) if answer.status_code != 200]

    assert len(refused) == 23
    assert {(a.status_code, a.text) for a in answers if a.status_code != 200} == {REFUSED}
    assert await shop.balance(company) == Money.read("930.00 EUR")
    await shop.pool.execute("UPDATE spend SET day = day - 1")
    assert (await shop.confirm(company, refused[0]["trx"]))["orderStatus"] == "finished"
    await shop.assert_books_balance()


async def test_limits_of_the_company_and_of_the_key_both_hold_and_each_state_counts_for_itself(
    quiet_shop: Shop,
) -> None:
    """OP-61, OP-49: play money does not use up the limit of real money."""
    shop = quiet_shop
    await shop.product("gift", price="10.00 EUR", stock=100)
    company = await shop.company(balance="1000.00 EUR")
    await limit(shop, company, day=2_000)
    await limit(shop, company, order=1_000, day=5_000, key=True)

    async def buy(amount: int, state: State = State.LIVE) -> int:
        order = await shop.create(company, ("gift", amount), state=state)
        outcome = "finished" if state is State.SANDBOX else None
        answer = await shop.finalise("confirm", company, order["trx"], state=state, outcome=outcome)
        return answer.status_code

    assert [await buy(2, State.SANDBOX), await buy(1, State.SANDBOX)] == [200, 402]
    assert [await buy(2), await buy(1), await buy(1), await buy(1)] == [402, 200, 200, 402]
    await shop.assert_books_balance()


async def test_a_low_balance_is_announced_once_until_it_was_above_again(quiet_shop: Shop) -> None:
    """OP-54: `wallet.low_balance`, with the amounts, and no code."""
    shop = quiet_shop
    await shop.product("gift", price="10.00 EUR", stock=100)
    company = await shop.company(balance="100.00 EUR")
    async with transaction(shop.pool) as tx:
        await low_balance.set_alert(tx, company.id, State.LIVE, Money.read("80.00 EUR"))

    async def told_after(amount: int) -> int:
        if amount:
            await shop.confirm(company, (await shop.create(company, ("gift", amount)))["trx"])
        else:
            await shop.top_up(company, "50.00 EUR")
        return await low_balance.announce(shop.pool)

    assert [await told_after(2), await told_after(1), await told_after(1)] == [0, 1, 0]
    assert [await told_after(0), await told_after(5)] == [0, 1]
    row = await shop.pool.fetchrow(
        "SELECT company_id, state, data FROM event WHERE type = 'wallet.low_balance' ORDER BY id LIMIT 1"
    )
    assert row is not None
    assert (row["company_id"], row["state"]) == (company.id, 0)
    assert row["data"] == '{"currency": "EUR", "availableAmount": 70.00, "thresholdAmount": 80.00}'
    await shop.assert_books_balance()
