"""Deeds on wallets: top-ups, corrections that two people agree on, alerts.

Each writes its event and its row of the trail, in the caller's transaction.
"""

from __future__ import annotations

from typing import Final

from msgspec import Raw

from voucherd import trail
from voucherd.actors import Actor
from voucherd.approvals import store as approvals
from voucherd.approvals.model import Approval, ApprovalKind, ApprovalStatus, refuse
from voucherd.companies.model import Company
from voucherd.db import Connection, Tx
from voucherd.events import kinds, log
from voucherd.ids import State
from voucherd.money import Money
from voucherd.people import approvers, user_store
from voucherd.people.approvers import NoSecondPerson
from voucherd.people.roles import Right, rights_of
from voucherd.wallet import low_balance, store
from voucherd.wallet.store import Balance

REFERENCE_CHARS_MAX: Final = 200
FIRST_PLAY_MONEY: Final = Money(1_000_000, "EUR")
"""What every company finds in its sandbox."""
PLAY_MONEY_MAX: Final = 100_000_000
"""Whole units of a currency that a company may have in its sandbox: enough for any test, and never an overflow."""


class NothingBooked(ValueError):
    """A payment with this reference was booked before."""


class BadPayment(ValueError):
    """The payment can't be made; says which field, and why."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(f"{field}: {rule}")
        self.field = field
        self.rule = rule


class TooLittleMoney(BadPayment):
    """The wallet has less than the payment takes."""

    def __init__(self, has: Money) -> None:
        super().__init__("amount", f"the wallet has only {has}")
        self.has = has


class NoAlert(LookupError):
    """The wallet has no alert."""


def check_top_up(money: Money, reference: str) -> None:
    """Refuse a top-up of nothing, and one without a reference."""
    if money.minor <= 0:
        raise BadPayment("amount", "must be more than 0")
    _check_reference(reference)


async def top_up(
    tx: Tx, actor: Actor, company: Company, state: State, money: Money, reference: str
) -> tuple[bool, Balance]:
    """Add money to a company's balance, once for each reference; whether it was new, and the balance."""
    check_top_up(money, reference)
    booked, balance = await _book(tx, company.id, state, money, reference)
    if booked:
        detail = {"amount": str(money), "reference": reference}
        subject = f"company {company.name}"
        await trail.record(tx, actor, "wallet.top-up", subject, detail, company_id=company.id, state=state)
    return booked, balance


async def top_up_play_money(tx: Tx, actor: Actor, company: Company, money: Money) -> Balance:
    """Add play money to a company's sandbox, which nobody has to allow; refused beyond what it may have (OP-144)."""
    if money.minor <= 0:
        raise BadPayment("amount", "must be more than 0")
    wallet_id = await store.ensure(tx, company.id, money.currency, State.SANDBOX)
    wallet = (await store.lock(tx, [wallet_id]))[wallet_id]
    most = Money.parse(str(PLAY_MONEY_MAX), money.currency)
    if wallet.balance_minor + money.minor > most.minor:
        raise BadPayment("amount", f"must leave the balance at {most} or less")
    # A reference is booked once, so each has its own.
    reference = f"play money {wallet.seq + 1}"
    _, balance = await _book(tx, company.id, State.SANDBOX, money, reference)
    subject, detail = f"company {company.name}", {"amount": str(money), "reference": reference}
    await trail.record(
        tx, actor, "wallet.top-up", subject, detail, company_id=company.id, state=State.SANDBOX
    )
    return balance


async def top_up_alone(
    tx: Tx, actor: Actor, company: Company, state: State, money: Money, reference: str
) -> Balance:
    """Add money without a second person: while the operator has never invited one (OP-151)."""
    role = await user_store.role_now(tx, _person(actor))
    may_both = {Right.MONEY_PROPOSE, Right.MONEY_APPROVE} <= rights_of(role, of_company=False)
    if not (may_both and await approvers.is_alone(tx, _person(actor))):
        raise NoSecondPerson
    booked, balance = await top_up(tx, actor, company, state, money, reference)
    if not booked:
        raise NothingBooked(reference)
    return balance


async def propose(
    tx: Tx,
    actor: Actor,
    kind: ApprovalKind,
    company: Company,
    state: State,
    money: Money,
    reference: str,
    note: str = "",
) -> Approval:
    """A request to move money, which a second person has to allow; refused if the wallet has less than it takes."""
    _check_reference(reference)
    before = await available(tx, company.id, money.currency, state)
    if before.minor + money.minor < 0:
        raise TooLittleMoney(before)
    number = await approvals.propose(
        tx,
        kind,
        company_id=company.id,
        state=state,
        money=money,
        reference=reference,
        requested_by=_person(actor),
        note=note,
    )
    proposed = await approvals.find(tx, number, None)
    await _record(tx, actor, "money.propose", proposed)
    return proposed


async def approve(tx: Tx, actor: Actor, number: int) -> Approval:
    """Move the money that one person proposed and this one agrees to: once, even if several agree at the same time."""
    found = (await approvals.lock(tx, [number])).get(number)
    if found is not None and found.kind is ApprovalKind.ORDER:
        found = None
    approval = refuse(found, _person(actor))
    await approvers.refuse_unless_second(tx, _person(actor), approval.requested_by, Right.MONEY_APPROVE)
    assert approval.reference is not None, "a request about money names a payment"
    if approval.kind is ApprovalKind.TOP_UP:
        booked, _ = await _book(tx, approval.company_id, approval.state, approval.money, approval.reference)
        if not booked:
            raise NothingBooked(approval.reference)
    else:
        await store.correct(tx, approval.company_id, approval.state, approval.money, approval.reference)
    await approvals.decide(tx, [(number, _person(actor))], ApprovalStatus.APPROVED)
    await _record(tx, actor, "money.approve", approval)
    return approval


async def reject(tx: Tx, actor: Actor, number: int) -> Approval:
    """Say no to a proposal of somebody else: nothing moves."""
    closed = await approvals.reject(tx, number, None, _person(actor))
    await _record(tx, actor, "money.reject", closed)
    return closed


async def withdraw(tx: Tx, actor: Actor, number: int) -> Approval:
    """Take one's own proposal back: nothing moves."""
    closed = await approvals.withdraw(tx, number, None, _person(actor))
    await _record(tx, actor, "money.withdraw", closed)
    return closed


async def set_alert(tx: Tx, actor: Actor, company_id: int, state: State, below: Money) -> None:
    """Say so when what is available falls below this."""
    if below.minor <= 0:
        raise BadPayment("below", "must be more than 0")
    await low_balance.set_alert(tx, company_id, state, below)
    subject, detail = f"balance in {below.currency}", {"below": str(below)}
    await trail.record(tx, actor, "alert.set", subject, detail, company_id=company_id, state=state)


async def remove_alert(tx: Tx, actor: Actor, company_id: int, state: State, currency: str) -> None:
    """Say nothing of a low balance any more; refused if there is no alert."""
    if not await low_balance.remove_alert(tx, company_id, state, currency):
        raise NoAlert
    subject = f"balance in {currency}"
    await trail.record(tx, actor, "alert.remove", subject, company_id=company_id, state=state)


async def available(conn: Connection, company_id: int, currency: str, state: State) -> Money:
    """What can be spent now; nothing where there is no wallet yet."""
    balances = await store.balances(conn, company_id, state)
    minor = next((b.balance_minor - b.held_minor for b in balances if b.currency == currency), 0)
    return Money(minor, currency)


async def _book(tx: Tx, company_id: int, state: State, money: Money, reference: str) -> tuple[bool, Balance]:
    """Book a top-up and its event, once for each reference; whether it was new, and the balance."""
    booked = await store.top_up(tx, company_id, state, money, reference)
    balances = await store.balances(tx, company_id, state)
    balance = next(one for one in balances if one.currency == money.currency)
    if booked:
        data = {
            "currency": money.currency,
            "amount": Raw(str(money.decimal()).encode()),
            "balance": Raw(str(Money(balance.balance_minor, money.currency).decimal()).encode()),
            "reference": reference,
        }
        await log.append(tx, kinds.WALLET_TOPPED_UP, company_id=company_id, state=state, data=data)
    return booked, balance


async def _record(tx: Tx, actor: Actor, action: str, one: Approval) -> None:
    detail = {"kind": one.kind.word, "amount": str(one.money), "reference": one.reference}
    await trail.record(
        tx, actor, action, f"payment {one.id}", detail, company_id=one.company_id, state=one.state
    )


def _check_reference(reference: str) -> None:
    if not (1 <= len(reference) <= REFERENCE_CHARS_MAX and reference.isprintable()):
        raise BadPayment("reference", f"must be 1 to {REFERENCE_CHARS_MAX} printable characters")


def _person(actor: Actor) -> int:
    """Who proposes or decides: the second person has to be another one."""
    assert actor.id is not None, "only people propose and decide"
    return actor.id
