"""From a cart to an order that is paid: the price is fixed first, then confirmed."""

from __future__ import annotations

from typing import Final

from voucherd.approvals.model import Approval
from voucherd.approvals.store import NOTE_CHARACTERS_MAX
from voucherd.companies import store as company_store
from voucherd.db import transaction
from voucherd.http import Response
from voucherd.ids import State
from voucherd.limits.spending import limits_of
from voucherd.orders import carts, consent
from voucherd.orders.answers import Answer
from voucherd.orders.bulk import RowProblem
from voucherd.orders.deeds import cancel_entry, confirm_entry
from voucherd.orders.model import REFERENCE_CHARS_MAX, Order
from voucherd.orders.rules.decide import Cancel
from voucherd.orders.rules.refusals import InsufficientBalance, OrderNotFound, Refusal
from voucherd.orders.rules.sandbox import SandboxOutcome
from voucherd.orders.rules.states import Status
from voucherd.pages.buyer import words
from voucherd.pages.buyer.cart import asked, cart
from voucherd.pages.buyer.catalogue import payment_currency
from voucherd.pages.visit import Visit, see_other
from voucherd.words import Words, phrase

WAIT_S_MAX: Final = 1.0
"""A person looks at progress rather than at a page that does not come."""
SLOW_S: Final = 5

OUTCOMES: Final = (
    (SandboxOutcome.FINISHED, phrase("Deliver at once")),
    (SandboxOutcome.SLOW, phrase("Deliver after {seconds} seconds")),
    (SandboxOutcome.PENDING, phrase("Stay in progress for a while")),
    (SandboxOutcome.PARTIAL, phrase("Deliver half, then refund the rest")),
    (SandboxOutcome.CANCELLED, phrase("Cancel")),
    (SandboxOutcome.OUT_OF_STOCK, phrase("Be out of stock")),
    (SandboxOutcome.INSUFFICIENT_BALANCE, phrase("Lack the balance")),
    (SandboxOutcome.WITHDRAWN, phrase("Be withdrawn from sale")),
    (SandboxOutcome.EXPIRED, phrase("Be expired")),
    (SandboxOutcome.UNVERIFIED, phrase("Be of a company that is not verified")),
)
"""What a sandbox order can be told to do."""
_CHANCES: Final = {sandbox_outcome.value: sandbox_outcome for sandbox_outcome, _ in OUTCOMES}


async def order(visit: Visit) -> Response:
    """Fix the price of what is in the cart: an order, still to be confirmed."""
    me = visit.someone.id
    found = await carts.read(visit.pool, me, visit.state)
    if not found.items:
        return visit.go("/portal/cart", visit.words.text("Your cart is empty."), "note")
    currency = await payment_currency(visit, found)
    reference = visit.form.get("reference")
    if len(reference) > REFERENCE_CHARS_MAX or not reference.isprintable():
        visit.problems["reference"] = words.row_problem(visit.words, RowProblem.REFERENCE)
    if visit.problems:
        return await cart(visit)
    try:
        answer = await visit.services.orders.create(asked(visit, found, currency, reference or None))
    except Refusal as refusal:
        return await cart(visit, refusal)
    await carts.clear(visit.pool, me, visit.state)
    return see_other(f"/portal/orders/{visit.services.ids.trx(answer.order.id)}")


async def confirm(visit: Visit) -> Response:
    """Pay, and let the codes come."""
    trx = visit.parameters["trx"]
    sandbox_outcome = _CHANCES.get(visit.form.get("outcome"), SandboxOutcome.FINISHED)
    if visit.state is State.LIVE:
        sandbox_outcome = SandboxOutcome.FINISHED
    try:
        answer = await consent.confirm(
            visit.services.orders,
            visit.pool,
            await buyer_of(visit),
            visit.services.ids.order_id(trx),
            sandbox_outcome,
            slow_s=SLOW_S if sandbox_outcome is SandboxOutcome.SLOW else 0,
            entry=confirm_entry(visit.actor, trx),
            note=" ".join(visit.form.get("note").split())[:NOTE_CHARACTERS_MAX],
            wait_s_max=WAIT_S_MAX,
        )
    except OrderNotFound:
        raise
    except Refusal as refusal:
        return visit.go(f"/portal/orders/{trx}", _refused(visit.words, refusal), "bad")
    if isinstance(answer, Approval):
        visit.tell(
            visit.words.text("Sent for approval. Your colleagues who may approve orders are told by mail."),
            "note",
        )
    else:
        _tell_confirmed(visit, answer.order)
    return see_other(f"/portal/orders/{trx}")


async def buyer_of(visit: Visit) -> consent.BuyingPerson:
    """The visitor as a buyer: what the company may spend, and what it asks of its people."""
    company = visit.company
    return consent.BuyingPerson(
        visit.actor,
        await company_store.policy(visit.pool, company.id),
        limits_of((0, company.spend_order_eur_minor, company.spend_day_eur_minor)),
    )


async def answer_of(visit: Visit) -> Answer:
    """The company's order that the path names."""
    order_id = visit.services.ids.order_id(visit.parameters["trx"])
    return await visit.services.orders.find(order_id, visit.company_id, visit.state)


async def reopen(visit: Visit) -> Response:
    """Withdraw an order that is not confirmed, and put what was in it back into the cart."""
    trx = visit.parameters["trx"]
    found = (await answer_of(visit)).order
    entry = cancel_entry(visit.actor, trx, visit.company_id, visit.state)
    try:
        if found.status is Status.CREATED:
            await visit.services.orders.cancel(Cancel(found.id, visit.company_id, visit.state, entry=entry))
    except Refusal as refusal:
        return visit.go(f"/portal/orders/{trx}", words.said(visit.words, refusal), "bad")
    await refill(visit, found)
    return see_other("/portal/cart")


async def again(visit: Visit) -> Response:
    """Put what was in an order into the cart once more."""
    await refill(visit, (await answer_of(visit)).order)
    return see_other("/portal/cart")


async def refill(visit: Visit, found: Order) -> None:
    """Put the order's products into the cart; those that are no longer for sale, or don't fit, stay out of it."""
    me, missing = visit.someone.id, []
    async with transaction(visit.pool) as tx:
        await carts.choose_currency(tx, me, visit.state, found.payment_currency)
        for item in found.items:
            face_minor = item.unit.face_minor if item.version.is_variable else 0
            try:
                async with tx.transaction():
                    await carts.add(tx, me, visit.state, item.version.slug, face_minor, item.amount)
            except (carts.NotForSale, carts.CartFull):
                missing.append(item.version.name)
    if missing:
        visit.tell(visit.words.text("No longer for sale: {products}.", products=", ".join(missing)), "note")


def _refused(speak: Words, refusal: Refusal) -> str:
    if isinstance(refusal, InsufficientBalance):
        return speak.text("Your balance does not cover this order. Nothing was charged.")
    return words.said(speak, refusal)


def _tell_confirmed(visit: Visit, found: Order) -> None:
    if found.status is Status.FINISHED:
        visit.tell(visit.words.text("Paid and delivered. Your codes are ready."))
    elif found.status is Status.PENDING:
        visit.tell(visit.words.text("Paid. Your codes are on their way."))
    else:
        visit.tell(visit.words.text("The order was cancelled, and nothing was charged."), "bad")
