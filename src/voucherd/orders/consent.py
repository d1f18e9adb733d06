"""Orders that a second person has to allow: a Confirm that asks, and one that carries it out (OP-93)."""

from __future__ import annotations

import math

from msgspec import Struct

from voucherd.actors import Actor, TrailEntry
from voucherd.approvals import deeds
from voucherd.approvals import store as approvals
from voucherd.approvals.model import Approval, ApprovalClosed, ApprovalNotFound, Consent, refuse
from voucherd.companies.model import Policy
from voucherd.db import Pool, transaction
from voucherd.ids import State
from voucherd.limits.spending import SpendLimit
from voucherd.money import Money
from voucherd.orders.answers import Answer
from voucherd.orders.model import Order
from voucherd.orders.rules.decide import Finalise
from voucherd.orders.rules.refusals import (
    ApprovalNeeded,
    ApprovalRefused,
    OrderExpired,
    OrderNotFound,
    WrongStatus,
)
from voucherd.orders.rules.sandbox import SandboxOutcome
from voucherd.orders.service import OrderService
from voucherd.people import approvers, members
from voucherd.people.roles import Right


class BuyingPerson(Struct, frozen=True):
    """A person who buys for a company, and what the company asks of its people."""

    actor: Actor
    policy: Policy
    limits: tuple[SpendLimit, ...] = ()

    @property
    def user_id(self) -> int:
        """The person."""
        return deeds.person_of(self.actor)

    @property
    def company_id(self) -> int:
        """The company that pays."""
        assert self.actor.company_id is not None, "a buyer is of a company"
        return self.actor.company_id

    @property
    def state(self) -> State:
        """Live or sandbox."""
        assert self.actor.state is not None, "a buyer is at work in one of them"
        return self.actor.state


async def confirm(
    order_service: OrderService,
    pool: Pool,
    buyer: BuyingPerson,
    order_id: int | None,
    sandbox_outcome: SandboxOutcome = SandboxOutcome.FINISHED,
    *,
    slow_s: int = 0,
    entry: TrailEntry | None = None,
    note: str = "",
    wait_s_max: float = math.inf,
) -> Answer | Approval:
    """Pay and deliver; an order from the company's amount on becomes a request to its other people instead."""
    command = Finalise(
        order_id,
        buyer.company_id,
        buyer.state,
        resolve=False,
        sandbox_outcome=sandbox_outcome,
        slow_s=slow_s,
        limits=buyer.limits,
        approve_from_eur_minor=buyer.policy.approve_from_eur_minor,
        entry=entry,
    )
    try:
        return await order_service.confirm(command, wait_s_max=wait_s_max)
    except ApprovalNeeded:
        order = (await order_service.find(order_id, buyer.company_id, buyer.state)).order
        return await ask(pool, buyer.actor, order, note)


async def ask(pool: Pool, actor: Actor, order: Order, note: str = "") -> Approval:
    """The request for this order; there is one at a time, and it ends with the order's price."""
    total = Money(order.total_minor, order.payment_currency)
    async with transaction(pool) as tx:
        approvers = await members.with_right(tx, order.company_id, Right.ORDERS_APPROVE)
        emails = [one.email for one in approvers]
        return await deeds.ask(tx, actor, order.id, total, order.expires_at, emails, note)


async def agree(
    order_service: OrderService,
    pool: Pool,
    buyer: BuyingPerson,
    number: int,
    *,
    wait_s_max: float = math.inf,
) -> Answer:
    """Allow a colleague's order: it is confirmed in the transaction that says so, or nothing happens.

    A request whose order is gone, confirmed or expired is closed; whatever else refuses (money, stock) leaves it open.
    """
    approval = await approvals.find(pool, number, buyer.company_id)
    if approval.state is not buyer.state:
        raise ApprovalNotFound
    refuse(approval, buyer.user_id)
    # Asked before the sale, for its own words; what counts is asked again in the transaction of the sale.
    await approvers.refuse_unless_second(pool, buyer.user_id, approval.requested_by, Right.ORDERS_APPROVE)
    command = Finalise(
        approval.order_id,
        buyer.company_id,
        buyer.state,
        resolve=False,
        limits=buyer.limits,
        consent=Consent(number, buyer.user_id),
        entry=deeds.entry(buyer.actor, "order.approve", approval),
    )
    try:
        return await order_service.confirm(command, wait_s_max=wait_s_max)
    except ApprovalRefused:
        raise ApprovalClosed from None
    except (OrderNotFound, OrderExpired, WrongStatus):
        async with transaction(pool) as tx:
            await deeds.close(tx, buyer.actor, number)
        raise ApprovalClosed from None
