"""Play money: a company has some in its sandbox from the first day, and takes more when it likes."""

from __future__ import annotations

import asyncpg
import pytest

from tests.shop import Company, Shop
from voucherd.actors import Actor, ActorKind
from voucherd.companies import store as company_store
from voucherd.companies.model import CompanyDraft
from voucherd.db import transaction
from voucherd.ids import State
from voucherd.keys.key_text import SCOPES_DEFAULT
from voucherd.money import Money
from voucherd.sandbox import deeds
from voucherd.wallet import deeds as wallet_deeds

SANDBOX = State.SANDBOX
ANN = Actor(ActorKind.OPERATOR, "ann@shop.example", 1)


async def newcomer(shop: Shop) -> Company:
    """A company as the operator's people add it in the console."""
    async with transaction(shop.pool) as tx:
        made = await deeds.add_company(tx, ANN, CompanyDraft("Newcomer", "NL", verified=True))
    company = Company(made.id, made.name)
    company.keys = await shop.keys(company, SCOPES_DEFAULT)
    return company


async def test_a_new_company_orders_in_the_sandbox_without_a_payment(quiet_shop: Shop) -> None:
    """OP-144: 10,000.00 EUR of play money are there at once, and nothing live is."""
    shop = quiet_shop
    company = await newcomer(shop)
    await shop.product("gift-10")

    order = await shop.create(company, ("gift-10", 1), state=SANDBOX)
    finished = await shop.confirm(company, order["trx"], state=SANDBOX, outcome="finished")

    assert finished["orderStatus"] == "finished"
    assert await shop.balance(company, state=SANDBOX) == Money.read("9990.50 EUR")
    assert (await shop.call("GET", "/api/1.03/account", company)).json() == []
    told = await shop.pool.fetchrow("SELECT action, actor, state FROM trail WHERE action = 'wallet.top-up'")
    assert told is not None
    assert tuple(told) == ("wallet.top-up", "ann@shop.example", 1)
    await shop.assert_books_balance()


async def test_play_money_is_topped_up_on_demand_and_bounded(quiet_shop: Shop) -> None:
    """OP-144: any currency, again and again, up to a hundred million; a wrong amount changes nothing."""
    shop = quiet_shop
    company = await shop.company(balance=None)
    path = "/api/1.03/sandbox/top-up"
    assert (await shop.call("POST", path, company, state=SANDBOX)).json()["totalAmount"] == 10_000
    assert (await shop.call("POST", path, company, state=SANDBOX)).json()["totalAmount"] == 20_000
    dollars = await shop.call(
        "POST", path, company, state=SANDBOX, json={"currency": "usd", "amount": 99_999_999.99}
    )
    assert (dollars.json()["currency"], dollars.json()["totalAmount"]) == ("USD", 99_999_999.99)
    for body, text in (
        ({"currency": "USD", "amount": 0.02}, "amount: must leave the balance at 100000000.00 USD or less"),
        ({"amount": 0}, "amount: must be more than 0"),
        ({"amount": -5}, "amount: must be more than 0"),
        ({"amount": 0.001}, "amount: 0.001 has more than 2 decimals, which EUR has not"),
        ({"amount": "5"}, "amount: must be a number"),
        ({"currency": "XYZ"}, "currency: must be an ISO 4217 currency code"),
    ):
        refused = await shop.call("POST", path, company, state=SANDBOX, json=body)
        assert (refused.status_code, refused.text.partition(":")[0]) == (400, text.partition(":")[0]), body
    assert await shop.balance(company, "USD", state=SANDBOX) == Money.read("99999999.99 USD")
    events = (await shop.call("GET", "/api/1.03/event?type=wallet.topped_up", company, state=SANDBOX)).json()
    assert len(events["data"]) == 3
    await shop.assert_books_balance()


async def test_a_repeated_top_up_adds_once(quiet_shop: Shop) -> None:
    """OP-28, OP-144: with an Idempotency-Key the second call gets the first answer."""
    shop = quiet_shop
    company = await shop.company(balance=None)
    for _ in range(2):
        answer = await shop.call(
            "POST",
            "/api/1.03/sandbox/top-up",
            company,
            state=SANDBOX,
            headers={"idempotency-key": "once"},
        )
        assert answer.json()["totalAmount"] == 10_000
    assert await shop.balance(company, state=SANDBOX) == Money.read("10000.00 EUR")
    await shop.assert_books_balance()


async def test_nobody_plays_with_live_money(quiet_shop: Shop) -> None:
    """OP-144, OP-105: a live key is refused, and the database takes no live payment of a person without an approval."""
    shop = quiet_shop
    company = await shop.company(balance="5.00 EUR")
    refused = await shop.call("POST", "/api/1.03/sandbox/top-up", company)
    assert (refused.status_code, refused.text) == (400, "for sandbox keys only")

    async def by_hand(state: State) -> None:
        async with transaction(shop.pool) as tx:
            found = await company_store.find_company(tx, company.name)
            await wallet_deeds.top_up(tx, ANN, found, state, Money.read("1.00 EUR"), "by hand")

    with pytest.raises(asyncpg.IntegrityConstraintViolationError, match="needs an approval"):
        await by_hand(State.LIVE)
    await by_hand(SANDBOX)
    assert await shop.balance(company) == Money.read("5.00 EUR")
    await shop.assert_books_balance()
