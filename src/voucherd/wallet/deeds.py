"""Money that a person moves: top-ups and corrections, each with its event; and those that two people agreed on."""

from __future__ import annotations

from msgspec import Raw

from voucherd.approvals import store as approvals
from voucherd.approvals.store import Approval, Kind, Status
from voucherd.db import Tx
from voucherd.events import log
from voucherd.ids import State
from voucherd.money import Money
from voucherd.wallet import store
from voucherd.wallet.store import Balance


class NothingBooked(ValueError):
    """A payment with this reference was booked before."""


async def book(tx: Tx, company_id: int, state: State, money: Money, reference: str) -> tuple[bool, Balance]:
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
        await log.append(tx, log.WALLET_TOPPED_UP, company_id=company_id, state=state, data=data)
    return booked, balance


async def carry_out(tx: Tx, number: int, decided_by: int) -> Approval:
    """Move the money that one person proposed and this one agrees to: once, whoever else agrees at the same time."""
    found = (await approvals.lock(tx, [number])).get(number)
    if found is not None and found.kind is Kind.ORDER:
        found = None
    approval = approvals.refuse(found, decided_by)
    assert approval.reference is not None, "a request about money names a payment"
    if approval.kind is Kind.TOP_UP:
        booked, _ = await book(tx, approval.company_id, approval.state, approval.money, approval.reference)
        if not booked:
            raise NothingBooked(approval.reference)
    else:
        await store.correct(tx, approval.company_id, approval.state, approval.money, approval.reference)
    await approvals.decide(tx, [(number, decided_by)], Status.APPROVED)
    return approval
