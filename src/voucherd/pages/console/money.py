"""Money that people move: one proposes, another one agrees, and only then it moves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from voucherd.actors import Actor
from voucherd.approvals import lists
from voucherd.approvals import store as approvals
from voucherd.approvals.model import (
    AlreadyProposed,
    Approval,
    ApprovalClosed,
    ApprovalKind,
    SamePerson,
)
from voucherd.companies import store as company_store
from voucherd.companies.model import Company
from voucherd.db import Connection, Tx
from voucherd.http import Response
from voucherd.money import DIGITS, Money
from voucherd.pages.console.inputs import amount_of, currency_of, number_in, number_of
from voucherd.pages.people.approvals import NO_SECOND_PERSON, PAYMENTS, resting
from voucherd.pages.render import render
from voucherd.pages.visit import Visit, missing
from voucherd.people.approvers import NoSecondPerson
from voucherd.people.roles import Right
from voucherd.wallet import deeds
from voucherd.wallet import store as wallets
from voucherd.wallet.deeds import BadPayment, NothingBooked
from voucherd.wallet.ledger import Overdrawn
from voucherd.wallet.store import ReferenceReused

_NUMBER_MAX: Final = 2**63 - 1
KINDS: Final = {
    "top-up": (ApprovalKind.TOP_UP, 1, "Top-up"),
    "up": (ApprovalKind.CORRECTION, 1, "Correction, upwards"),
    "down": (ApprovalKind.CORRECTION, -1, "Correction, downwards"),
}
_REFUSALS: Final[dict[type[Exception], str]] = {
    ApprovalClosed: "It was decided before, or nobody decided in time.",
    SamePerson: "Nobody agrees to what he proposed himself: a second person has to.",
    NothingBooked: "A payment with this reference was booked before. Nothing was moved.",
    ReferenceReused: "A payment with this reference was booked before, with another amount. Nothing was moved.",
    NoSecondPerson: NO_SECOND_PERSON,
    Overdrawn: "The wallet has less than that. Nothing was moved.",
}


async def payments(visit: Visit) -> Response:
    """What was proposed, and what became of it."""
    found = await visit.look(lists.of_operator)
    return render(
        "console/money.html",
        visit,
        waiting=[one for one in found if one.open],
        decided=[one for one in found if not one.open],
        resting=await resting(visit),
        path=PAYMENTS,
    )


async def new_payment(visit: Visit) -> Response:
    """The form of a proposal."""
    async with visit.pool.acquire() as conn:
        company = await _named(conn, visit)
        if company is None and not visit.problems:
            raise missing()
        balances = [] if company is None else await wallets.balances(conn, company.id, visit.state)
    held = [one.currency for one in balances]
    others = [code for code in sorted(DIGITS) if code not in held]
    return render(
        "console/payment_new.html",
        visit,
        company=company,
        kinds=[(word, label) for word, (_, _, label) in KINDS.items()],
        currencies=[(code, code) for code in [*held, *others]],
        balances=[Money(one.balance_minor - one.held_minor, one.currency) for one in balances],
    )


async def propose(visit: Visit) -> Response:
    """Propose to move money."""
    form, problems = visit.form, visit.problems
    kind = KINDS.get(form.get("kind"))
    if kind is None:
        problems["kind"] = "must be one of these"
    currency = visit.read("currency", currency_of)
    money = visit.read("amount", lambda text: amount_of(text, currency or "EUR"))
    company = await visit.look(_named, visit)
    if company is None:
        problems["company"] = "there is no such company"
    if problems or company is None or kind is None or money is None:
        return await new_payment(visit)
    money, reference = Money(kind[1] * money.minor, money.currency), form.get("reference")
    try:
        proposed = await visit.do(
            deeds.propose, kind[0], company, visit.state, money, reference, form.get("note")
        )
    except BadPayment as bad:
        problems[bad.field] = bad.rule
        return await new_payment(visit)
    except AlreadyProposed:
        problems["reference"] = "a payment with this reference waits for approval already"
        return await new_payment(visit)
    return visit.go(f"/console/money/{proposed.id}", "It is proposed. It moves when a second person agrees.")


async def payment(visit: Visit, problem: str = "") -> Response:
    """One proposal, with the balance before and after."""
    one = await approvals.find(visit.pool, number_in(visit, "number", _NUMBER_MAX), None)
    before = await visit.look(deeds.available, one.company_id, one.currency, one.state)
    own = one.requested_by == visit.someone.id
    return render(
        "console/payment.html",
        visit,
        status=409 if problem else None,
        one=one,
        before=before,
        after=Money(before.minor + one.amount_minor, one.currency),
        problem=problem,
        may_decide=one.open and not own and visit.may(Right.MONEY_APPROVE),
        may_withdraw=one.open and own,
        own=own,
    )


async def approve(visit: Visit) -> Response:
    """Agree to a proposal of somebody else: the money moves."""
    return await _decide(visit, deeds.approve, lambda one: f"Done: {one.money} for {one.company}.")


async def reject(visit: Visit) -> Response:
    """Say no to a proposal of somebody else."""
    return await _decide(visit, deeds.reject, lambda _: "It is rejected. Nothing was moved.", "note")


async def withdraw(visit: Visit) -> Response:
    """Take back what one has proposed oneself."""
    return await _decide(visit, deeds.withdraw, lambda _: "It is withdrawn. Nothing was moved.", "note")


async def _decide(
    visit: Visit,
    decide: Callable[[Tx, Actor, int], Awaitable[Approval]],
    said: Callable[[Approval], str],
    kind: str = "good",
) -> Response:
    number = number_in(visit, "number", _NUMBER_MAX)
    try:
        done = await visit.do(decide, number)
    except tuple(_REFUSALS) as refused:
        return await payment(visit, _REFUSALS[type(refused)])
    return visit.go(f"/console/money/{number}", said(done), kind)


async def _named(conn: Connection, visit: Visit) -> Company | None:
    """The company that a path or a form names by its number."""
    number = number_of(visit.parameters.get("company") or visit.form.get("company"), 2**31 - 1)
    return None if number is None else (await company_store.companies(conn, [number])).get(number)
