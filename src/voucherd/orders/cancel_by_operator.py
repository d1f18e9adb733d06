"""The operator cancels an order: first a preview, decided by the same rules and not stored, then the deed."""

from __future__ import annotations

from msgspec import Struct

from voucherd.actors import Actor
from voucherd.db import Pool, transaction
from voucherd.money import Money
from voucherd.orders import confirm, store
from voucherd.orders.caches import OrderCaches
from voucherd.orders.deeds import cancel_entry
from voucherd.orders.model import Order
from voucherd.orders.rules import decide
from voucherd.orders.rules.decide import Cancel
from voucherd.orders.rules.refusals import Refusal
from voucherd.settings import Settings


class CancelPreview(Struct, frozen=True):
    """An order now, and as it would be."""

    before: Order
    after: Order

    @property
    def refund(self) -> Money:
        """What would go back to the buyer's balance."""
        return Money(self.after.refunded_minor - self.before.refunded_minor, self.after.payment_currency)

    @property
    def released(self) -> Money:
        """What would not be held any more."""
        return Money(self.before.held_minor - self.after.held_minor, self.after.payment_currency)

    @property
    def lines(self) -> int:
        """How many lines would be cancelled."""
        return self.after.lines_cancelled - self.before.lines_cancelled


async def preview(pool: Pool, settings: Settings, order: Order) -> CancelPreview | Refusal:
    """What would come of cancelling the order now. Everything is undone: nothing is stored."""
    command = Cancel(order.id, order.company_id, order.state)
    async with pool.acquire() as conn:
        held = conn.transaction()
        await held.start()
        try:
            facts = await store.load(conn, [order.id], OrderCaches.empty(settings))
            before = facts.orders.get(order.id)
            answer = decide.cancel(facts, [command]).answers[0]
        finally:
            await held.rollback()
    if isinstance(answer, Refusal):
        return answer
    assert before is not None, "an order that can be cancelled is there"
    return CancelPreview(before, answer)


async def cancel(pool: Pool, settings: Settings, actor: Actor, trx: str, order: Order) -> Order:
    """Delete an order that is not confirmed, or cancel and refund its undelivered lines; the order after it."""
    entry = cancel_entry(actor, trx, order.company_id, order.state)
    command = Cancel(order.id, order.company_id, order.state, entry=entry)
    async with transaction(pool) as tx:
        (answer,) = await confirm.cancel(tx, OrderCaches.empty(settings), [command])
    if isinstance(answer, Refusal):
        raise answer
    return answer
