"""What takes two people: a company's large orders, new approvers and looser rules (OP-93, OP-102, OP-103)."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from voucherd.approvals import deeds, lists
from voucherd.approvals import store as approvals
from voucherd.approvals.model import Approval, ApprovalClosed, ApprovalNotFound, SamePerson
from voucherd.companies import store as company_store
from voucherd.companies.model import RuleChange
from voucherd.db import transaction
from voucherd.http import HttpError, Response
from voucherd.money import Money
from voucherd.orders import consent
from voucherd.orders.rules.refusals import (
    CompanyNotActive,
    CompanyNotVerified,
    InsufficientBalance,
    OffersNotAvailable,
    OrderNotFound,
    OutOfStock,
    SpendLimitExceeded,
)
from voucherd.pages.buyer.checkout import WAIT_S_MAX, buyer_of
from voucherd.pages.buyer.orders import items_of
from voucherd.pages.forms import whole
from voucherd.pages.render import render
from voucherd.pages.visit import Visit, missing, see_other
from voucherd.people import approvers, members, policy
from voucherd.people.approvers import NoSecondPerson
from voucherd.people.members import Member
from voucherd.people.policy import NoSuchChange
from voucherd.people.roles import Right, approval_right
from voucherd.words import Words, phrase

ORDERS: Final = "/portal/approvals"
PAYMENTS: Final = "/console/money"
DECIDED_MAX: Final = 25
"""Requests that are over, on the page of those that are open."""
NO_SECOND_PERSON: Final = phrase(
    "You can’t approve yet: whoever is new, and whoever let somebody new in, waits for a day, or until another"
    " approver confirms it."
)

_REFUSED: Final[dict[type[Exception], str]] = {
    InsufficientBalance: phrase("The balance does not cover this order. It can be approved once it does."),
    SpendLimitExceeded: phrase("The order is above your company’s spending limit."),
    OutOfStock: phrase("Some of it is sold out."),
    OffersNotAvailable: phrase("Some of it is not for sale any more."),
    CompanyNotActive: phrase("Your company can’t order at the moment."),
    CompanyNotVerified: phrase("Your company is not verified yet."),
}
_OVER: Final = phrase("It was decided before, or it has expired.")


async def orders(visit: Visit) -> Response:
    """The orders that wait for a second person, with what is in them and why; and those that waited before."""
    found = await lists.of_company(visit.pool, visit.company_id, visit.state)
    amount = (await company_store.policy(visit.pool, visit.company_id)).approve_from_eur_minor
    asked = await asyncio.gather(*(_asked(visit, one) for one in found if one.open))
    decided = [one for one in found if not one.open][:DECIDED_MAX]
    trxs = {one.id: visit.services.ids.trx(one.order_id) for one in decided if one.order_id is not None}
    return render(
        "people/approvals.html",
        visit,
        asked=asked,
        decided=decided,
        trxs=trxs,
        path=ORDERS,
        may_decide=visit.may(Right.ORDERS_APPROVE),
        approve_from=None if amount is None else Money(amount, "EUR"),
        rule_change=await company_store.find_rule_change(visit.pool, visit.company_id),
        resting=await resting(visit),
    )


async def _asked(visit: Visit, approval: Approval) -> dict[str, Any]:
    """A request that is open, with its order; one whose order is gone has none."""
    assert approval.order_id is not None, "these requests are about orders"
    try:
        order = (await visit.services.orders.find(approval.order_id, visit.company_id, visit.state)).order
    except OrderNotFound:
        return {"approval": approval, "order": None, "trx": "", "items": []}
    return {
        "approval": approval,
        "order": order,
        "trx": visit.services.ids.trx_unkept(order.id),
        "items": items_of(order),
    }


async def resting(visit: Visit) -> list[Member]:
    """The colleagues who are no second persons yet, for who may approve."""
    side = None if visit.someone.company is None else visit.company_id
    if not visit.may(approval_right(side)):
        return []
    return [one for one in await members.members(visit.pool, side) if one.rests_until and one.active]


async def confirm_person(visit: Visit) -> Response:
    """Let a colleague approve at once, as a second person to the one who let it in."""
    side = None if visit.someone.company is None else visit.company_id
    back = ORDERS if side is not None else PAYMENTS
    number = whole(visit.parameters["person"])
    if number is None:
        raise missing()
    try:
        async with transaction(visit.pool) as tx:
            person = await members.member(tx, number, side)
            await approvers.confirm(tx, visit.actor, person)
    except NoSecondPerson:
        return visit.go(back, visit.words.text(NO_SECOND_PERSON), "bad")
    return visit.go(back, visit.words.text("{email} is confirmed.", email=person.email))


async def confirm_rule(visit: Visit) -> Response:
    """Let a looser rule hold at once, as a second person to the one who asked for it."""
    text = visit.form.get("approve_from_eur_minor")
    # The form says which rule was shown: another one may wait by now.
    amount = None if text == "" else whole(text) or 0
    try:
        await visit.do(policy.confirm_rule, visit.company, amount)
    except NoSecondPerson:
        return visit.go(ORDERS, visit.words.text(NO_SECOND_PERSON), "bad")
    except NoSuchChange:
        return visit.go(ORDERS, visit.words.text("The rule was changed or withdrawn meanwhile."), "bad")
    return visit.go(ORDERS, visit.words.text("The rule is changed."))


def changes_later(change: RuleChange, words: Words) -> str:
    """What to say of a looser rule that has to wait."""
    return words.text(
        "The approval rule changes on {when}, or once another approver confirms it.",
        when=words.moment(change.holds_from),
    )


async def approve_order(visit: Visit) -> Response:
    """Allow a colleague's order: it is confirmed at once."""
    approval = await _find(visit)
    buyer = await buyer_of(visit)
    try:
        await consent.agree(visit.services.orders, visit.pool, buyer, approval.id, wait_s_max=WAIT_S_MAX)
    except NoSecondPerson:
        visit.tell(visit.words.text(NO_SECOND_PERSON), "bad")
    except (ApprovalClosed, SamePerson) as refused:
        said = _OVER if isinstance(refused, ApprovalClosed) else phrase("Somebody else has to approve it.")
        visit.tell(visit.words.text(said), "bad")
    except tuple(_REFUSED) as refusal:
        visit.tell(visit.words.text(_REFUSED[type(refusal)]), "bad")
    else:
        visit.tell(visit.words.text("The order is approved and confirmed."))
    return see_other(ORDERS)


async def _find(visit: Visit) -> Approval:
    number = whole(visit.parameters["approval"])
    found = None if number is None else await approvals.find(visit.pool, number, visit.company_id)
    if found is None or found.state is not visit.state:
        raise missing()
    return found


async def reject_order(visit: Visit) -> Response:
    """Say no: the order stays as it was, and can be cancelled."""
    approval = await _find(visit)
    try:
        await visit.do(deeds.reject, approval.id)
    except SamePerson:
        visit.tell(visit.words.text("You asked for this yourself: you can withdraw it."), "bad")
    except ApprovalClosed:
        visit.tell(visit.words.text(_OVER), "bad")
    else:
        visit.tell(visit.words.text("Rejected. The order is not confirmed, and can be cancelled."))
    return see_other(ORDERS)


async def withdraw_order(visit: Visit) -> Response:
    """Take one's own request back."""
    approval = await _find(visit)
    try:
        await visit.do(deeds.withdraw, approval.id)
    except ApprovalNotFound:
        raise HttpError(403, "not_yours", phrase("Only the person who asked can withdraw it.")) from None
    except ApprovalClosed:
        visit.tell(visit.words.text(_OVER), "bad")
    else:
        visit.tell(visit.words.text("The request is withdrawn."))
    return see_other(ORDERS)
