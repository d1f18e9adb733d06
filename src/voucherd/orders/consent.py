"""Orders that a second person has to allow: a Confirm that asks, and one that carries it out (OP-93)."""

from __future__ import annotations

import math

from msgspec import Struct

from voucherd.access import approvals, people
from voucherd.access.approvals import Approval, Consent, NotOpen
from voucherd.access.people import Policy
from voucherd.access.roles import Right
from voucherd.access.spending import SpendLimit
from voucherd.access.trail import Entry
from voucherd.db import Pool, transaction
from voucherd.events import letters
from voucherd.ids import State
from voucherd.money import Money
from voucherd.orders.answers import Answer
from voucherd.orders.decide import Chance, Finalise
from voucherd.orders.desk import Desk
from voucherd.orders.model import Order
from voucherd.orders.refusals import ApprovalNeeded, ApprovalRefused, OrderExpired, OrderNotFound, WrongStatus


class Buyer(Struct, frozen=True):
    """A person who buys for a company, and what the company asks of its people."""

    user_id: int
    company_id: int
    state: State
    policy: Policy
    limits: tuple[SpendLimit, ...] = ()


async def confirm(
    desk: Desk,
    pool: Pool,
    buyer: Buyer,
    order_id: int | None,
    chance: Chance = Chance.FINISHED,
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
        chance=chance,
        slow_s=slow_s,
        limits=buyer.limits,
        approve_from_eur_minor=buyer.policy.approve_from_eur_minor,
    )
    try:
        return await desk.confirm(command, wait_s_max=wait_s_max)
    except ApprovalNeeded:
        order = (await desk.find(order_id, buyer.company_id, buyer.state)).order
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
            others = await people.with_right(tx, order.company_id, Right.ORDERS_APPROVE)
            await letters.ask(tx, [one.email for one in others if one.id != requested_by], approval)
    return approval


async def agree(
    desk: Desk,
    pool: Pool,
    buyer: Buyer,
    number: int,
    entry: Entry | None = None,
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
        return await desk.confirm(command, wait_s_max=wait_s_max)
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
