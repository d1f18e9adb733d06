"""Money that people move: one proposes, another one agrees, and only then it moves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

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
from voucherd.companies.store import CompanySearch
from voucherd.db import Connection, Tx
from voucherd.http import Response
from voucherd.money import Money
from voucherd.pages.console.inputs import amount_of, currency_of, number_in, number_of
from voucherd.pages.console.pickers import currency_options
from voucherd.pages.forms import sentence
from voucherd.pages.people.approvals import DECIDED_MAX, NO_SECOND_PERSON, PAYMENTS, resting
from voucherd.pages.render import amount, in_pages, render, sheet
from voucherd.pages.visit import Visit, missing
from voucherd.people import approvers
from voucherd.people.approvers import NoSecondPerson
from voucherd.people.roles import Right
from voucherd.sheets.writing import Value
from voucherd.sorting import chosen, in_order
from voucherd.wallet import deeds
from voucherd.wallet import store as wallets
from voucherd.wallet.deeds import BadPayment, NothingBooked, TooLittleMoney
from voucherd.wallet.ledger import Overdrawn
from voucherd.wallet.store import ReferenceReused

_NUMBER_MAX: Final = 2**63 - 1
KINDS: Final = {
    "top-up": (ApprovalKind.TOP_UP, 1, "Top-up"),
    "up": (ApprovalKind.CORRECTION, 1, "Correction, upwards"),
    "down": (ApprovalKind.CORRECTION, -1, "Correction, downwards"),
}
COMPANIES_MAX: Final = 500
_FILTERS: Final = ("q", "status", "kind")
_SORTS: Final[dict[str, Callable[[Approval], Any]]] = {
    "company": lambda one: one.company.casefold(),
    "amount": lambda one: (one.currency, one.amount_minor),
    "kind": lambda one: one.kind.word,
    "reference": lambda one: one.reference and one.reference.casefold(),
    "proposed": lambda one: one.requested_at,
    "status": lambda one: one.word,
}
_REFUSALS: Final[dict[type[Exception], str]] = {
    ApprovalClosed: "It was decided before, or nobody decided in time.",
    SamePerson: "You proposed this yourself: a second person has to approve it.",
    NothingBooked: "A payment with this reference was booked before. Nothing was moved.",
    ReferenceReused: "A payment with this reference was booked before, with another amount. Nothing was moved.",
    NoSecondPerson: NO_SECOND_PERSON,
    Overdrawn: "The balance is lower than that. Nothing was moved.",
}


async def payments(visit: Visit) -> Response:
    """What was proposed, and what became of it."""
    given = _given(visit)
    plain = not any(given[name] for name in _FILTERS)
    found = await _found(visit, given, lists.PAGE_MAX if plain else lists.LOOKED_AT_MAX)
    return render(
        "console/money.html",
        visit,
        waiting=[one for one in found if one.open],
        decided=[one for one in found if not one.open][:DECIDED_MAX],
        given=given,
        filtered=not plain,
        sort=given["sort"],
        resting=await resting(visit),
        path=PAYMENTS,
    )


async def payments_file(visit: Visit) -> Response:
    """The same as a file."""
    found = await _found(visit, _given(visit), lists.LOOKED_AT_MAX)
    columns = ("company", "state", "kind", "amount", "currency", "reference", "status", "proposed by", "proposed",
               "decided by", "decided")  # fmt: skip
    rows: list[list[Value]] = [
        [
            *(one.company, one.state.word, one.kind.word, one.money.decimal(), one.currency, one.reference),
            *(one.word, one.requester, one.requested_at, one.decider, one.decided_at),
        ]
        for one in found
    ]
    return await sheet(visit, "payments", columns, in_pages(rows), title="payments")


def _given(visit: Visit) -> dict[str, str]:
    """The filters and the sort of the address."""
    given = {name: visit.query.get(name)[:200] for name in _FILTERS}
    return given | {"sort": chosen(visit.query.get("sort"), _SORTS, "-proposed")}


async def _found(visit: Visit, given: dict[str, str], most: int) -> list[Approval]:
    """What the filters let through of the newest payments, in their order."""
    wanted = given["q"].casefold()
    found = [
        one
        for one in await visit.look(lists.of_operator, most)
        if wanted in f"{one.company} {one.reference}".casefold()
        and given["status"] in ("", one.word)
        and given["kind"] in ("", one.kind.word)
    ]
    return in_order(found, _SORTS, given["sort"])


async def new_payment(visit: Visit) -> Response:
    """The form of a proposal; without a company in the path it is picked."""
    async with visit.pool.acquire() as conn:
        company = await _named(conn, visit)
        if company is None and "company" in visit.parameters:
            raise missing()
        balances = [] if company is None else await wallets.balances(conn, company.id, visit.state)
        usual = await wallets.usual_currency(conn, visit.state)
        others = [] if company else await company_store.search_companies(conn, CompanySearch(), COMPANIES_MAX)
    held = sorted(balances, key=lambda one: -one.balance_minor)
    currencies = currency_options([*(one.currency for one in held), usual])
    return render(
        "console/payment_new.html",
        visit,
        company=company,
        companies=[("", "Choose …"), *((str(one.id), one.name) for one in others)],
        kinds=[(word, label) for word, (_, _, label) in KINDS.items()],
        currencies=currencies,
        currency=visit.form.get("currency") or currencies[0][0],
        balances=[Money(one.balance_minor - one.held_minor, one.currency) for one in balances],
        alone=await approvers.is_alone(visit.pool, visit.someone.id),
    )


async def propose(visit: Visit) -> Response:
    """Propose to move money; whoever is the operator's only person tops up at once (OP-151)."""
    form, problems = visit.form, visit.problems
    kind = KINDS.get(form.get("kind"))
    if kind is None:
        problems["kind"] = "Choose one."
    currency = visit.read("currency", currency_of)
    money = visit.read("amount", lambda text: amount_of(text, currency or "EUR"))
    company = await visit.look(_named, visit)
    if company is None:
        problems["company"] = "Choose a company."
    if problems or company is None or kind is None or money is None:
        return await new_payment(visit)
    money, reference = Money(kind[1] * money.minor, money.currency), form.get("reference")
    alone = kind[0] is ApprovalKind.TOP_UP and await approvers.is_alone(visit.pool, visit.someone.id)
    path, said = f"/console/companies/{company.id}", f"Topped up: {amount(money)} for {company.name}."
    try:
        if alone:
            await visit.do(deeds.top_up_alone, company, visit.state, money, reference)
        else:
            proposed = await visit.do(
                deeds.propose, kind[0], company, visit.state, money, reference, form.get("note")
            )
            path = f"/console/money/{proposed.id}"
            said = "Proposed. The money moves when a second person approves."
    except TooLittleMoney as little:
        problems["amount"] = f"The balance is only {amount(little.has)}."
    except BadPayment as bad:
        problems[bad.field] = sentence(bad.rule)
    except (NothingBooked, ReferenceReused):
        problems["reference"] = "A payment with this reference was booked before."
    except AlreadyProposed:
        problems["reference"] = "A payment with this reference waits for approval already."
    return await new_payment(visit) if problems else visit.go(path, said)


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
    return await _decide(
        visit, deeds.approve, lambda one: f"Approved: {amount(one.money)} for {one.company}."
    )


async def reject(visit: Visit) -> Response:
    """Say no to a proposal of somebody else."""
    return await _decide(visit, deeds.reject, lambda _: "Rejected. Nothing was moved.", "note")


async def withdraw(visit: Visit) -> Response:
    """Take back what one has proposed oneself."""
    return await _decide(visit, deeds.withdraw, lambda _: "Withdrawn. Nothing was moved.", "note")


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
    """The company that a path or a form names: by its number, or as it is called."""
    if "company" in visit.parameters:
        number = number_of(visit.parameters["company"], 2**31 - 1)
        return None if number is None else (await company_store.companies(conn, [number])).get(number)
    return await company_store.company_named(conn, visit.form.get("company")[:200])
