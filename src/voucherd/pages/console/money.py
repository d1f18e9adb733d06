"""Money that people move: one proposes, another one agrees, and only then it moves."""

from __future__ import annotations

from typing import Final

from voucherd.approvals import lists
from voucherd.approvals import store as approvals
from voucherd.approvals.model import AlreadyProposed, Approval, ApprovalNotFound, Kind, NotOpen, SamePerson
from voucherd.companies import store as company_store
from voucherd.companies.model import Company
from voucherd.db import Connection, Tx, transaction
from voucherd.http import Response
from voucherd.ids import State
from voucherd.money import DIGITS, Money
from voucherd.pages import deeds
from voucherd.pages.console.inputs import Problems, amount_of, currency_of, missing, number_in, number_of
from voucherd.pages.render import render
from voucherd.pages.visit import Visit, see_other
from voucherd.people.roles import Right
from voucherd.services import Services
from voucherd.wallet import store as wallets
from voucherd.wallet import top_ups
from voucherd.wallet.ledger import Overdrawn
from voucherd.wallet.store import ReferenceReused
from voucherd.wallet.top_ups import NothingBooked

REFERENCE_CHARACTERS_MAX: Final = 200
_NUMBER_MAX: Final = 2**63 - 1
KINDS: Final = {
    "top-up": (Kind.TOP_UP, 1, "Top-up"),
    "up": (Kind.CORRECTION, 1, "Correction, upwards"),
    "down": (Kind.CORRECTION, -1, "Correction, downwards"),
}
_REFUSALS: Final = {
    NotOpen: "It was decided before, or nobody decided in time.",
    SamePerson: "Nobody agrees to what he proposed himself: a second person has to.",
    NothingBooked: "A payment with this reference was booked before. Nothing was moved.",
    ReferenceReused: "A payment with this reference was booked before, with another amount. Nothing was moved.",
    Overdrawn: "The wallet has less than that. Nothing was moved.",
}


async def payments(services: Services, visit: Visit) -> Response:
    """What was proposed, and what became of it."""
    async with services.pool.acquire() as conn:
        found = await lists.of_operator(conn)
    return render(
        "console/money.html",
        visit,
        waiting=[one for one in found if one.open],
        decided=[one for one in found if not one.open],
    )


async def new_payment(services: Services, visit: Visit) -> Response:
    """The form of a proposal."""
    return await _form(services, visit, Problems())


async def propose(services: Services, visit: Visit) -> Response:
    """Propose to move money."""
    form, problems = visit.form, Problems()
    kind = KINDS.get(form.get("kind"))
    if kind is None:
        problems["kind"] = "must be one of these"
    currency = problems.read("currency", lambda: currency_of(form.get("currency")))
    money = problems.read("amount", lambda: amount_of(form.get("amount"), currency or "EUR"))
    reference = form.get("reference")
    if not (1 <= len(reference) <= REFERENCE_CHARACTERS_MAX and reference.isprintable()):
        problems["reference"] = f"must be 1 to {REFERENCE_CHARACTERS_MAX} printable characters"
    async with transaction(services.pool) as tx:
        company = await _named(tx, visit)
        if company is None:
            problems["company"] = "there is no such company"
        elif kind is not None and money is not None and not problems:
            money = Money(kind[1] * money.minor, money.currency)
            number = await _propose(tx, visit, company, kind[0], money, problems)
    if problems:
        return await _form(services, visit, problems)
    visit.tell("It is proposed. It moves when a second person agrees.")
    return see_other(f"/console/money/{number}")


async def payment(services: Services, visit: Visit) -> Response:
    """One proposal, with the balance before and after."""
    return await _page(services, visit, await _found(services, visit))


async def approve(services: Services, visit: Visit) -> Response:
    """Agree to a proposal of somebody else: the money moves."""
    number = number_in(visit, "number", _NUMBER_MAX)
    try:
        async with transaction(services.pool) as tx:
            done = await top_ups.carry_out(tx, number, visit.someone.id)
            await _note(tx, visit, "money.approve", done)
    except ApprovalNotFound:
        raise missing() from None
    except (NotOpen, SamePerson, NothingBooked, ReferenceReused, Overdrawn) as refused:
        return await _page(services, visit, await _found(services, visit), _REFUSALS[type(refused)])
    visit.tell(f"Done: {done.money} for {done.company}.")
    return see_other(f"/console/money/{number}")


async def reject(services: Services, visit: Visit) -> Response:
    """Say no to a proposal of somebody else."""
    return await _close(services, visit, "money.reject", "It is rejected. Nothing was moved.")


async def withdraw(services: Services, visit: Visit) -> Response:
    """Take back what one has proposed oneself."""
    return await _close(services, visit, "money.withdraw", "It is withdrawn. Nothing was moved.")


async def _close(services: Services, visit: Visit, action: str, said: str) -> Response:
    number = number_in(visit, "number", _NUMBER_MAX)
    close = approvals.reject if action == "money.reject" else approvals.withdraw
    try:
        async with transaction(services.pool) as tx:
            closed = await close(tx, number, None, visit.someone.id)
            await _note(tx, visit, action, closed)
    except ApprovalNotFound:
        raise missing() from None
    except (NotOpen, SamePerson) as refused:
        return await _page(services, visit, await _found(services, visit), _REFUSALS[type(refused)])
    visit.tell(said, "note")
    return see_other(f"/console/money/{number}")


async def _propose(
    tx: Tx, visit: Visit, company: Company, kind: Kind, money: Money, problems: Problems
) -> int | None:
    """The number of the new proposal; None where it is refused."""
    before = await _balance(tx, company.id, money.currency, visit.state)
    if before.minor + money.minor < 0:
        problems["amount"] = f"the wallet has only {before}"
        return None
    try:
        number = await approvals.propose(
            tx,
            kind,
            company_id=company.id,
            state=visit.state,
            money=money,
            reference=visit.form.get("reference"),
            requested_by=visit.someone.id,
            note=visit.form.get("note"),
        )
    except AlreadyProposed:
        problems["reference"] = "a payment with this reference waits for approval already"
        return None
    await _note(tx, visit, "money.propose", await approvals.find(tx, number, None))
    return number


async def _note(tx: Tx, visit: Visit, action: str, one: Approval) -> None:
    detail = {"kind": one.kind.word, "amount": str(one.money), "reference": one.reference}
    await deeds.record(
        tx, visit, action, f"payment {one.id}", detail, company_id=one.company_id, state=one.state
    )


async def _named(conn: Connection, visit: Visit) -> Company | None:
    """The company that a path or a form names by its number."""
    number = number_of(visit.parameters.get("company") or visit.form.get("company"), 2**31 - 1)
    return None if number is None else (await company_store.companies(conn, [number])).get(number)


async def _balance(conn: Connection, company_id: int, currency: str, state: State) -> Money:
    """What can be spent now; nothing where there is no wallet yet."""
    balances = await wallets.balances(conn, company_id, state)
    minor = next((b.balance_minor - b.held_minor for b in balances if b.currency == currency), 0)
    return Money(minor, currency)


async def _found(services: Services, visit: Visit) -> Approval:
    try:
        return await approvals.find(services.pool, number_in(visit, "number", _NUMBER_MAX), None)
    except ApprovalNotFound:
        raise missing() from None


async def _page(services: Services, visit: Visit, one: Approval, problem: str = "") -> Response:
    async with services.pool.acquire() as conn:
        before = await _balance(conn, one.company_id, one.currency, one.state)
    own = one.requested_by == visit.someone.id
    return render(
        "console/payment.html",
        visit,
        status=409 if problem else 200,
        one=one,
        before=before,
        after=Money(before.minor + one.amount_minor, one.currency),
        problem=problem,
        may_decide=one.open and not own and visit.may(Right.MONEY_APPROVE),
        may_withdraw=one.open and own,
        own=own,
    )


async def _form(services: Services, visit: Visit, problems: Problems) -> Response:
    async with services.pool.acquire() as conn:
        company = await _named(conn, visit)
        if company is None and not problems:
            raise missing()
        balances = [] if company is None else await wallets.balances(conn, company.id, visit.state)
    held = [one.currency for one in balances]
    others = [code for code in sorted(DIGITS) if code not in held]
    return render(
        "console/payment_new.html",
        visit,
        status=422 if problems else 200,
        company=company,
        problems=problems,
        form=visit.form,
        kinds=[(word, label) for word, (_, _, label) in KINDS.items()],
        currencies=[(code, code) for code in [*held, *others]],
        balances=[Money(one.balance_minor - one.held_minor, one.currency) for one in balances],
    )
