"""What the audit trail says of orders, and what people do to them beside the service's calls."""

from __future__ import annotations

from voucherd import trail
from voucherd.actors import Actor, TrailEntry
from voucherd.db import Tx
from voucherd.ids import State
from voucherd.orders.model import Order
from voucherd.vault import reveals
from voucherd.vault.model import Reveal, Via, Viewer


def confirm_entry(actor: Actor, trx: str) -> TrailEntry:
    """A person confirms an order; stored with the call that does it."""
    return trail.entry(actor, "order.confirm", f"order {trx}")


def cancel_entry(actor: Actor, trx: str, company_id: int, state: State) -> TrailEntry:
    """A person cancels an order; stored with the call that does it."""
    return trail.entry(actor, "order.cancel", f"order {trx}", company_id=company_id, state=state)


async def show_codes(tx: Tx, actor: Actor, trx: str, order: Order) -> None:
    """Write down who is about to see the codes of an order, among the reveals and in the trail."""
    address = None if actor.address is None else str(actor.address)
    viewer = Viewer(actor.kind, actor.id, address)
    await reveals.write(tx, [Reveal(order.id, order.company_id, order.lines_finished, Via.FIND, viewer)])
    detail = {"codes": order.lines_finished}
    await trail.record(
        tx, actor, "order.show", f"order {trx}", detail, company_id=order.company_id, state=order.state
    )
