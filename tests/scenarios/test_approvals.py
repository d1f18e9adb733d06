"""Orders that a second person has to allow: asked for, granted once, rejected, and over with their price."""

from __future__ import annotations

import asyncio

import pytest

from tests.patience import a_day_later
from tests.shop import Company, Shop
from voucherd.actors import Actor, ActorKind
from voucherd.approvals import lists
from voucherd.approvals import store as approvals
from voucherd.approvals.model import Approval, ApprovalClosed, ApprovalNotFound, SamePerson
from voucherd.companies.model import Policy
from voucherd.db import transaction
from voucherd.ids import State
from voucherd.orders import consent
from voucherd.orders.answers import Answer
from voucherd.orders.consent import BuyingPerson
from voucherd.orders.rules.refusals import InsufficientBalance
from voucherd.people import user_store
from voucherd.people.users import UserDraft


async def people(shop: Shop, company: Company, count: int, *, approve_from: int | None) -> list[BuyingPerson]:
    """People of a company whose orders from that many euro cents on need a second person."""
    policy = Policy(approve_from_eur_minor=approve_from)
    async with transaction(shop.pool) as tx:
        users = [
            await user_store.add_user(tx, UserDraft(f"p{at}@c{company.id}.example", company.id, "owner"), "x")
            for at in range(count)
        ]
        await a_day_later(tx)
    return [
        BuyingPerson(Actor(ActorKind.PERSON, user.email, user.id, company.id, State.LIVE), policy)
        for user in users
    ]


async def test_a_large_order_is_confirmed_once_and_by_somebody_else(quiet_shop: Shop) -> None:
    """OP-93: asked for by one, granted by one of several others at once; the money moves in that transaction."""
    shop = quiet_shop
    await shop.product("gift-10", price="10.00 EUR", stock=20)
    company = await shop.company(balance="100.00 EUR")
    asker, *others = await people(shop, company, 5, approve_from=3000)
    small = shop.ids.order_id((await shop.create(company, ("gift-10", 2)))["trx"])
    assert isinstance(await consent.confirm(shop.order_service, shop.pool, asker, small), Answer)

    trx = (await shop.create(company, ("gift-10", 3)))["trx"]
    order_id = shop.ids.order_id(trx)
    asked = await asyncio.gather(
        *(consent.confirm(shop.order_service, shop.pool, asker, order_id) for _ in range(4))
    )
    (number,) = {one.id for one in asked if isinstance(one, Approval)}
    assert await lists.waiting(shop.pool, company.id, State.LIVE, others[0].user_id) == 1
    assert await lists.waiting(shop.pool, company.id, State.LIVE, asker.user_id) == 0
    with pytest.raises(SamePerson):
        await consent.agree(shop.order_service, shop.pool, asker, number)
    assert (await shop.balance(company)).minor == 8000

    ends = await asyncio.gather(
        *(consent.agree(shop.order_service, shop.pool, one, number) for one in others), return_exceptions=True
    )
    assert sum(isinstance(end, Answer) for end in ends) == 1
    assert sum(isinstance(end, ApprovalClosed) for end in ends) == 3
    assert (await shop.find(company, trx))["orderStatus"] == "finished"
    assert (await shop.balance(company)).minor == 5000
    decided = await approvals.find(shop.pool, number, company.id)
    assert decided.word == "approved"
    decided_by = await shop.pool.fetchval("SELECT decided_by FROM approval WHERE id = $1", number)
    assert decided_by in {one.user_id for one in others}
    await shop.assert_books_balance()


async def test_what_is_rejected_late_or_gone_stays_undone(quiet_shop: Shop) -> None:
    """OP-93: a no leaves the order created, to be cancelled; a request ends with its order and with its price."""
    shop = quiet_shop
    await shop.product("gift-10", price="10.00 EUR", stock=20)
    company, stranger = await shop.company(balance="45.00 EUR"), await shop.company()
    asker, other = await people(shop, company, 2, approve_from=1)
    (foreign,) = await people(shop, stranger, 1, approve_from=1)

    async def ask(count: int) -> tuple[str, Approval]:
        trx = (await shop.create(company, ("gift-10", count)))["trx"]
        asked = await consent.confirm(shop.order_service, shop.pool, asker, shop.ids.order_id(trx))
        assert isinstance(asked, Approval)
        return trx, asked

    trx, asked = await ask(2)
    with pytest.raises(ApprovalNotFound):
        await consent.agree(shop.order_service, shop.pool, foreign, asked.id)
    async with transaction(shop.pool) as tx:
        await approvals.reject(tx, asked.id, company.id, other.user_id)
    with pytest.raises(ApprovalClosed):
        await consent.agree(shop.order_service, shop.pool, other, asked.id)
    assert (await shop.find(company, trx))["orderStatus"] == "created"
    again = await consent.confirm(shop.order_service, shop.pool, asker, shop.ids.order_id(trx))
    assert isinstance(again, Approval)
    assert again.id != asked.id
    assert (await shop.cancel(company, trx)).status_code == 204
    with pytest.raises(ApprovalClosed):
        await consent.agree(shop.order_service, shop.pool, other, again.id)
    assert (await approvals.find(shop.pool, again.id, company.id)).word == "ended"

    # What can't be paid now may be granted later.
    _, first = await ask(3)
    second_trx, second = await ask(3)
    await consent.agree(shop.order_service, shop.pool, other, first.id)
    with pytest.raises(InsufficientBalance):
        await consent.agree(shop.order_service, shop.pool, other, second.id)
    assert (await approvals.find(shop.pool, second.id, company.id)).open
    await shop.age(second_trx, "2 days")
    await shop.pool.execute(
        "UPDATE approval SET ends_at = ends_at - interval '2 days' WHERE id = $1", second.id
    )
    with pytest.raises(ApprovalClosed):
        await consent.agree(shop.order_service, shop.pool, other, second.id)
    await shop.assert_books_balance()
