"""What takes two people: a company's large orders, new approvers and looser rules (OP-93, OP-102, OP-103)."""

from __future__ import annotations

from typing import Final

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
    OutOfStock,
    SpendLimitExceeded,
)
from voucherd.pages.buyer.checkout import WAIT_S_MAX, buyer_of
from voucherd.pages.forms import whole
from voucherd.pages.render import render
from voucherd.pages.visit import Visit, missing, see_other
from voucherd.people import approvers, members, policy
from voucherd.people.approvers import NoSecondPerson
from voucherd.people.members import Member
from voucherd.people.policy import NoSuchChange
from voucherd.people.roles import Right, approval_right

ORDERS: Final = "/portal/approvals"
PAYMENTS: Final = "/console/money"
NO_SECOND_PERSON: Final = (
    "You are no second person here yet: whoever is new, and whoever let somebody new in, waits for a day or for"
    " another approver."
)

_REFUSED: Final[dict[type[Exception], str]] = {
    InsufficientBalance: "The balance does not cover this order. It can be approved once it does.",
    SpendLimitExceeded: "The order is above what the company may spend.",
    OutOfStock: "Some of it is out of stock just now.",
    OffersNotAvailable: "Some of it is not for sale any more.",
    CompanyNotActive: "The company may not order just now.",
    CompanyNotVerified: "The company is not verified yet.",
}
_OVER: Final = "It was decided before, or its time is over."


async def orders(visit: Visit) -> Response:
    """The orders that wait for a second person, and those that waited before."""
    found = await lists.of_company(visit.pool, visit.company_id, visit.state)
    amount = (await company_store.policy(visit.pool, visit.company_id)).approve_from_eur_minor
    trxs = {one.id: visit.services.ids.trx(one.order_id) for one in found if one.order_id is not None}
    return render(
        "people/approvals.html",
        visit,
        found=found,
        trxs=trxs,
        path=ORDERS,
        may_decide=visit.may(Right.ORDERS_APPROVE),
        approve_from=None if amount is None else Money(amount, "EUR"),
        rule_change=await company_store.find_rule_change(visit.pool, visit.company_id),
        resting=await resting(visit),
    )


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
        return visit.go(back, NO_SECOND_PERSON, "bad")
    return visit.go(back, f"{person.email} is confirmed.")


async def confirm_rule(visit: Visit) -> Response:
    """Let a looser rule hold at once, as a second person to the one who asked for it."""
    text = visit.form.get("approve_from_eur_minor")
    # The form says which rule was shown: another one may wait by now.
    amount = None if text == "" else whole(text) or 0
    try:
        await visit.do(policy.confirm_rule, visit.company, amount)
    except NoSecondPerson:
        return visit.go(ORDERS, NO_SECOND_PERSON, "bad")
    except NoSuchChange:
        return visit.go(ORDERS, "The rule was changed or withdrawn meanwhile. Look at it again.", "bad")
    return visit.go(ORDERS, "The rule is changed.")


def changes_later(change: RuleChange) -> str:
    """What to say of a looser rule that has to wait."""
    when = f"{change.holds_from:%Y-%m-%d %H:%M} UTC"
    return f"The rule about second persons changes at {when}, or once another approver confirms it."


async def approve_order(visit: Visit) -> Response:
    """Allow a colleague's order: it is confirmed at once."""
    approval = await _find(visit)
    buyer = await buyer_of(visit)
    try:
        await consent.agree(visit.services.orders, visit.pool, buyer, approval.id, wait_s_max=WAIT_S_MAX)
    except NoSecondPerson:
        visit.tell(NO_SECOND_PERSON, "bad")
    except (ApprovalClosed, SamePerson) as refused:
        visit.tell(
            _OVER if isinstance(refused, ApprovalClosed) else "Somebody else has to approve it.", "bad"
        )
    except tuple(_REFUSED) as refusal:
        visit.tell(_REFUSED[type(refusal)], "bad")
    else:
        visit.tell("The order is approved and confirmed.")
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
        visit.tell("What you asked for yourself you can withdraw.", "bad")
    except ApprovalClosed:
        visit.tell(_OVER, "bad")
    else:
        visit.tell("Rejected. The order is not confirmed, and can be cancelled.")
    return see_other(ORDERS)


async def withdraw_order(visit: Visit) -> Response:
    """Take one's own request back."""
    approval = await _find(visit)
    try:
        await visit.do(deeds.withdraw, approval.id)
    except ApprovalNotFound:
        raise HttpError(403, "not_yours", "Only whoever asked can withdraw it.") from None
    except ApprovalClosed:
        visit.tell(_OVER, "bad")
    else:
        visit.tell("Withdrawn.")
    return see_other(ORDERS)
