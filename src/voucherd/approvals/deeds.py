"""What a company's people do about orders that take two of them: ask, reject and withdraw (OP-93).

To grant one is to confirm it: `voucherd.orders.consent` does both in one transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from voucherd import trail
from voucherd.actors import Actor, TrailEntry
from voucherd.approvals import letters, store
from voucherd.approvals.model import Approval
from voucherd.db import Tx
from voucherd.money import Money


async def ask(
    tx: Tx,
    actor: Actor,
    order_id: int,
    total: Money,
    ends_at: datetime,
    approvers: Sequence[str],
    note: str = "",
) -> Approval:
    """The order's request; there is one at a time, and a new one is mailed to those who may approve it."""
    assert actor.company_id is not None, "a person of a company asks"
    assert actor.state is not None, "an order is live, or of the sandbox"
    number, new = await store.ask_for_order(
        tx,
        company_id=actor.company_id,
        order_id=order_id,
        state=actor.state,
        total=total,
        requested_by=person_of(actor),
        ends_at=ends_at,
        note=note,
    )
    approval = await store.find(tx, number, actor.company_id)
    if new:
        await letters.ask(tx, [one for one in approvers if one != approval.requester], approval)
        await trail.record_all(tx, [entry(actor, "approval.ask", approval)])
    return approval


async def reject(tx: Tx, actor: Actor, number: int) -> None:
    """Say no to somebody else's request: nothing else happens."""
    approval = await store.reject(tx, number, actor.company_id, person_of(actor))
    await trail.record_all(tx, [entry(actor, "approval.reject", approval)])


async def withdraw(tx: Tx, actor: Actor, number: int) -> None:
    """Take one's own request back; refused for anybody else."""
    approval = await store.withdraw(tx, number, actor.company_id, person_of(actor))
    await trail.record_all(tx, [entry(actor, "approval.withdraw", approval)])


async def close(tx: Tx, actor: Actor, number: int) -> None:
    """Close a request that is open although its order can't be confirmed any more."""
    approval = (await store.lock(tx, [number])).get(number)
    if approval is not None and approval.open:
        await store.end(tx, number)
        await trail.record_all(tx, [entry(actor, "approval.close", approval)])


def entry(actor: Actor, action: str, approval: Approval) -> TrailEntry:
    """What the trail says of a request."""
    detail = {"amount": str(approval.money), "asked by": approval.requester}
    return trail.entry(
        actor,
        action,
        f"approval {approval.id}",
        detail,
        company_id=approval.company_id,
        state=approval.state,
    )


def person_of(actor: Actor) -> int:
    """The number of the person who acts."""
    assert actor.id is not None, "a person has a number"
    return actor.id
