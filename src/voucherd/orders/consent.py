"""Orders that a second person has to allow: a Confirm that asks, and one that carries it out (OP-93)."""

from __future__ import annotations

import math

from msgspec import Struct

from voucherd.approvals import letters
from voucherd.approvals import store as approvals
from voucherd.approvals.store import Approval, Consent, NotOpen
from voucherd.companies.model import Policy
from voucherd.db import Pool, transaction
from voucherd.ids import State
from voucherd.limits.spending import SpendLimit
from voucherd.money import Money
from voucherd.orders.answers import Answer
from voucherd.orders.model import Order
from voucherd.orders.rules.decide import Finalise, SandboxOutcome
from voucherd.orders.rules.refusals import (
    ApprovalNeeded,
    ApprovalRefused,
    OrderExpired,
    OrderNotFound,
    WrongStatus,
)
from voucherd.orders.service import OrderService
from voucherd.people import members
from voucherd.people.roles import Right
from voucherd.trail import TrailEntry


class Buyer(Struct, frozen=True):
    """A person who buys for a company, and what the company asks of its people."""

    user_id: int
    company_id: int
    state: State
    policy: Policy
    limits: tuple[SpendLimit, ...] = ()


async def confirm(
    order_service: OrderService,
    pool: Pool,
    buyer: Buyer,
    order_id: int | None,
    sandbox_outcome: SandboxOutcome = SandboxOutcome.FINISHED,
    *,
    slow_s: int = 0,
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
    )
    try:
        return await order_service.confirm(command, wait_s_max=wait_s_max)
    except ApprovalNeeded:
        order = (await order_service.find(order_id, buyer.company_id, buyer.state)).order
        return await ask(pool, order, buyer.user_id)


async def ask(pool: Pool, order: Order, requested_by: int) -> Approval:
    """The request for this order; there is one at a time, and it ends with the order's price."""
    async with transaction(pool) as tx:
        number, new = await approvals.ask_for_order(
            tx,
            company_id=order.company_id,
            order_id=order.id,
            state=order.state,
            total=Money(order.total_minor, order.payment_currency),
            requested_by=requested_by,
            ends_at=order.expires_at,
        )
        approval = await approvals.find(tx, number, order.company_id)
        if new:
            others = await members.with_right(tx, order.company_id, Right.ORDERS_APPROVE)
            await letters.ask(tx, [one.email for one in others if one.id != requested_by], approval)
    return approval


async def agree(
    order_service: OrderService,
    pool: Pool,
    buyer: Buyer,
    number: int,
    entry: TrailEntry | None = None,
    *,
    wait_s_max: float = math.inf,
) -> Answer:
    """Allow a colleague's order: it is confirmed in the transaction that says so, or nothing happens.

    A request whose order is gone, confirmed or expired is closed; whatever else refuses (money, stock) leaves it open.
    """
    approval = await approvals.find(pool, number, buyer.company_id)
    if approval.state is not buyer.state:
        raise approvals.ApprovalNotFound
    approvals.refuse(approval, buyer.user_id)
    command = Finalise(
        approval.order_id,
        buyer.company_id,
        buyer.state,
        resolve=False,
        limits=buyer.limits,
        consent=Consent(number, buyer.user_id, entry),
    )
    try:
        return await order_service.confirm(command, wait_s_max=wait_s_max)
    except ApprovalRefused:
        raise NotOpen from None
    except (OrderNotFound, OrderExpired, WrongStatus):
        await _close(pool, number)
        raise NotOpen from None


async def _close(pool: Pool, number: int) -> None:
    async with transaction(pool) as tx:
        found = (await approvals.lock(tx, [number])).get(number)
        if found is not None and found.open:
            await approvals.end(tx, number)
