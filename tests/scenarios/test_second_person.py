"""One person is never two: whoever is new, and a rule that was loosened, wait for a day or for somebody else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from tests.patience import a_day_later, until_blocked
from tests.shop import Company, Shop
from voucherd.actors import Actor, ActorKind
from voucherd.approvals.model import Approval, ApprovalKind
from voucherd.companies import store as company_store
from voucherd.companies.model import Policy
from voucherd.db import Tx, transaction
from voucherd.ids import State
from voucherd.money import Money
from voucherd.orders import consent
from voucherd.orders.answers import Answer
from voucherd.orders.consent import BuyingPerson
from voucherd.people import approvers, deeds, members, policy
from voucherd.people.approvers import NoSecondPerson
from voucherd.people.deeds import Invitation
from voucherd.people.policy import NoSuchChange
from voucherd.people.users import UserDraft
from voucherd.wallet import deeds as wallet_deeds

COMMAND = Actor(ActorKind.COMMAND, "operator")
LETTER = Invitation("https://shop.example", "Acme", "Ann")


class Side:
    """The people of a company, or of the operator: one asks for something that another one has to approve."""

    def __init__(self, shop: Shop, company: Company, *, of_company: bool) -> None:
        self.shop = shop
        self.company = company
        self.company_id = company.id if of_company else None
        self.approving = "owner" if of_company else "admin"
        self.idle = "viewer" if of_company else "support"
        self._asked = 0

    async def somebody(self, name: str, role: str | None = None, by: Actor = COMMAND) -> Actor:
        """A person who was added a moment ago."""
        draft = UserDraft(
            f"{name}@side{self.company_id or 0}.example", self.company_id, role or self.approving
        )
        async with transaction(self.shop.pool) as tx:
            user = await deeds.add(tx, by, draft, "x")
        return self.actor(user.id, user.email)

    def actor(self, number: int, email: str) -> Actor:
        """The person as somebody who acts."""
        kind = ActorKind.OPERATOR if self.company_id is None else ActorKind.PERSON
        return Actor(kind, email, number, self.company_id, None if self.company_id is None else State.LIVE)

    async def ask(self, asker: Actor) -> int:
        """A request of this person."""
        self._asked += 1
        if self.company_id is None:
            async with transaction(self.shop.pool) as tx:
                company = (await company_store.companies(tx, [self.company.id]))[self.company.id]
                money, reference = Money.read("1.00 EUR"), f"bank {self._asked}"
                kind = ApprovalKind.TOP_UP
                return (await wallet_deeds.propose(tx, asker, kind, company, State.LIVE, money, reference)).id
        order_id = self.shop.ids.order_id((await self.shop.create(self.company, ("gift", 1)))["trx"])
        buyer = BuyingPerson(asker, Policy(approve_from_eur_minor=1))
        asked = await consent.confirm(self.shop.order_service, self.shop.pool, buyer, order_id)
        assert isinstance(asked, Approval)
        return asked.id

    async def approve(self, number: int, by: Actor) -> None:
        """Say yes to a request."""
        if self.company_id is None:
            async with transaction(self.shop.pool) as tx:
                await wallet_deeds.approve(tx, by, number)
        else:
            buyer = BuyingPerson(by, Policy(approve_from_eur_minor=1))
            assert isinstance(
                await consent.agree(self.shop.order_service, self.shop.pool, buyer, number), Answer
            )

    async def told(self, subject: str) -> set[str]:
        """Who was written to about this."""
        rows = await self.shop.pool.fetch("SELECT recipients FROM mail WHERE subject = $1", subject)
        return {one for row in rows for one in row["recipients"]}


@pytest.fixture(params=[True, False], ids=["company", "operator"])
async def side(request: pytest.FixtureRequest, quiet_shop: Shop) -> Side:
    """A company with a balance and stock, seen from its people or from the operator's."""
    await quiet_shop.product("gift", price="1.00 EUR", stock=50)
    return Side(quiet_shop, await quiet_shop.company(balance="50.00 EUR"), of_company=request.param)


Way = Callable[[Tx, Actor, members.Member], Awaitable[object]]


async def _invited(tx: Tx, by: Actor, person: members.Member) -> None:
    draft = UserDraft(f"new-{person.email}", person.company_id, person.role)
    await deeds.invite(tx, by, draft, LETTER)


async def _promoted(tx: Tx, by: Actor, person: members.Member) -> None:
    role = "admin" if person.company_id is None else "owner"
    await deeds.set_role(tx, by, await members.member(tx, person.id, person.company_id), role)


async def _activated(tx: Tx, by: Actor, person: members.Member) -> None:
    await deeds.deactivate(tx, by, person)
    await deeds.activate(tx, by, await members.member(tx, person.id, person.company_id))


async def _given_a_link(tx: Tx, by: Actor, person: members.Member) -> None:
    await deeds.send_password_link(tx, by, person, replace(LETTER, by_hand=True))


WAYS: dict[str, tuple[Way, str]] = {
    "send_password_link": (_given_a_link, "was given a link for a new password"),
    "invite": (_invited, "was invited"),
    "set_role": (_promoted, "has another role"),
    "activate": (_activated, "was activated again"),
    "reset_second_factor": (deeds.reset_second_factor, "has no second factor any more"),
}


def test_every_deed_that_makes_somebody_an_approver_is_tried() -> None:
    """OP-102: a new deed that lets somebody rest needs a row in the table above."""
    resting = {
        name for name in vars(deeds) if "rest" in getattr(getattr(deeds, name), "__code__", _NONE).co_names
    }
    assert resting == {*WAYS, "add"}


_NONE = (lambda: None).__code__


@pytest.mark.parametrize("way", sorted(WAYS))
async def test_whoever_becomes_an_approver_approves_nothing_for_a_day(side: Side, way: str) -> None:
    """OP-102: invited, promoted, activated or without the second factor: a day's rest, and every approver is told."""
    ann, ben = await side.somebody("ann"), await side.somebody("ben")
    cleo = await side.somebody("cleo", side.idle if way == "set_role" else None)
    await a_day_later(side.shop.pool)
    deed, said = WAYS[way]
    async with transaction(side.shop.pool) as tx:
        assert cleo.id is not None
        await deed(tx, ann, await members.member(tx, cleo.id, side.company_id))
        if way == "invite":
            puppet = await members.by_email(tx, f"new-{cleo.name}")
            cleo = side.actor(puppet.id, puppet.email)
    assert {ann.name, ben.name} <= await side.told(f"{cleo.name} {said}")
    number = await side.ask(ann)

    with pytest.raises(NoSecondPerson):
        await side.approve(number, cleo)
    async with transaction(side.shop.pool) as tx:
        assert cleo.id is not None
        person = await members.member(tx, cleo.id, side.company_id)
        # Neither the person itself nor the one who let it in confirms it.
        for one in (ann, cleo):
            with pytest.raises(NoSecondPerson):
                await approvers.confirm(tx, one, person)

    await a_day_later(side.shop.pool)
    await side.approve(number, cleo)
    await side.shop.assert_books_balance()


async def test_another_approver_confirms_somebody_new(side: Side) -> None:
    """OP-102: a second person who could approve before ends the rest, on the pages; so does the command line."""
    ann, ben = await side.somebody("ann"), await side.somebody("ben")
    await a_day_later(side.shop.pool)
    for by in (ben, COMMAND):
        puppet = await side.somebody(f"new{by.kind.word}", by=ann)
        async with transaction(side.shop.pool) as tx:
            await approvers.confirm(tx, by, await members.by_email(tx, puppet.name))
        await side.approve(await side.ask(ann), puppet)
        assert {ann.name, ben.name} <= await side.told(f"{puppet.name} was confirmed")


async def test_nobody_approves_what_a_puppet_asks_for(side: Side) -> None:
    """OP-102: the other way round, and through a puppet's puppet: who let somebody in is no second person to it."""
    ann, ben = await side.somebody("ann"), await side.somebody("ben")
    await a_day_later(side.shop.pool)
    first = await side.somebody("first", by=ann)
    second = await side.somebody("second", by=first)
    for puppet in (first, second):
        number = await side.ask(puppet)
        for one in (ann, first, second):
            if one != puppet:
                with pytest.raises(NoSecondPerson):
                    await side.approve(number, one)
        async with transaction(side.shop.pool) as tx:
            with pytest.raises(NoSecondPerson):
                await approvers.confirm(tx, ann, await members.by_email(tx, puppet.name))
        await side.approve(number, ben)


async def test_a_looser_rule_waits_for_a_day_and_a_stricter_one_holds_at_once(quiet_shop: Shop) -> None:
    """OP-103: lifting the amount, and no rule at all, wait; the way back and every stricter amount do not."""
    shop = quiet_shop
    company = await shop.company()
    side = Side(shop, company, of_company=True)
    ann = await side.somebody("ann")
    await a_day_later(shop.pool)

    async def choose(amount: int | None, by: Actor = ann) -> int | None:
        async with transaction(shop.pool) as tx:
            found = (await company_store.companies(tx, [company.id]))[company.id]
            await policy.set_policy(tx, by, found, Policy(approve_from_eur_minor=amount))
        return (await company_store.policy(shop.pool, company.id)).approve_from_eur_minor

    assert await choose(1000) == 1000
    assert await choose(500) == 500
    assert await choose(501) == 500
    assert await choose(None) == 500
    assert await side.told("The approval rule is about to change") == {ann.name}
    assert await policy.put_in_force(shop.pool) == 0
    # The rule that was asked for last waits, and the same one asked for again does not begin anew.
    waiting = await company_store.find_rule_change(shop.pool, company.id)
    assert await choose(None) == 500
    assert waiting == await company_store.find_rule_change(shop.pool, company.id)
    assert await choose(500) == 500
    assert await company_store.find_rule_change(shop.pool, company.id) is None

    # A company with a single owner lifts its rule, too: after a day.
    assert await choose(None) == 500
    await a_day_later(shop.pool)
    assert await shop.worker.run_once("change_rules") == 1
    assert (await company_store.policy(shop.pool, company.id)).approve_from_eur_minor is None
    assert await company_store.find_rule_change(shop.pool, company.id) is None
    assert await choose(700) == 700
    assert await choose(None, COMMAND) is None


async def test_a_rule_that_is_withdrawn_while_its_day_ends_does_not_come_into_force(quiet_shop: Shop) -> None:
    """OP-103: the worker and a person take the same turns, so neither is refused for the other's sake."""
    shop = quiet_shop
    company = await shop.company()
    side = Side(shop, company, of_company=True)
    ann = await side.somebody("ann")
    await a_day_later(shop.pool)
    async with transaction(shop.pool) as tx:
        found = (await company_store.companies(tx, [company.id]))[company.id]
        await policy.set_policy(tx, ann, found, Policy(approve_from_eur_minor=500))
        await policy.set_policy(tx, ann, found, Policy())
    await a_day_later(shop.pool)

    async with transaction(shop.pool) as tx:
        await company_store.lock_policy(tx, company.id)
        working = asyncio.create_task(policy.put_in_force(shop.pool))
        await until_blocked(shop.pool)
        await policy.set_policy(tx, ann, found, Policy(approve_from_eur_minor=400))

    assert await working == 0
    assert (await company_store.policy(shop.pool, company.id)).approve_from_eur_minor == 400


async def test_a_second_approver_lets_a_looser_rule_hold_at_once(quiet_shop: Shop) -> None:
    """OP-103: not the one who asked, nobody new, nobody of another company, and only the rule that was shown."""
    shop = quiet_shop
    company, other = await shop.company(), await shop.company()
    side, elsewhere = Side(shop, company, of_company=True), Side(shop, other, of_company=True)
    ann, ben = await side.somebody("ann"), await side.somebody("ben", "finance")
    buyer, stranger = await side.somebody("buyer", "buyer"), await elsewhere.somebody("eve")
    await a_day_later(shop.pool)
    puppet = await side.somebody("puppet", by=ann)
    async with transaction(shop.pool) as tx:
        found = (await company_store.companies(tx, [company.id]))[company.id]
        await policy.set_policy(tx, ann, found, Policy(approve_from_eur_minor=100))
        await policy.set_policy(tx, ann, found, Policy(approve_from_eur_minor=900))
        for one in (ann, puppet, buyer):
            with pytest.raises(NoSecondPerson):
                await policy.confirm_rule(tx, one, found, 900)
        with pytest.raises(NoSuchChange):
            await policy.confirm_rule(tx, stranger, found, 900)
        for shown in (None, 0, 901):
            with pytest.raises(NoSuchChange):
                await policy.confirm_rule(tx, ben, found, shown)
        await policy.confirm_rule(tx, ben, found, 900)
        with pytest.raises(NoSuchChange):
            await policy.confirm_rule(tx, ben, found, 900)
    assert (await company_store.policy(shop.pool, company.id)).approve_from_eur_minor == 900
    assert await side.told("The approval rule has changed") == {ann.name, ben.name, puppet.name}
