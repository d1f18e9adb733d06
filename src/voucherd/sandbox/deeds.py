"""What is done to the sandbox of a company: its first play money, its clock. Live is out of reach for all of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from msgspec import Raw, Struct

from voucherd import trail
from voucherd.actors import Actor
from voucherd.companies import deeds as company_deeds
from voucherd.companies.model import Company, CompanyDraft
from voucherd.db import Pool, Tx, transaction
from voucherd.events import kinds, log
from voucherd.ids import State
from voucherd.orders import ageing
from voucherd.sandbox import store
from voucherd.sandbox.store import TestClock
from voucherd.wallet import deeds as wallet_deeds
from voucherd.webhooks import history

STEP_MAX: Final = timedelta(days=90)
AHEAD_MAX: Final = timedelta(days=3_650)
"""How far a clock may be ahead; then it is to be reset."""


_LOW_BALANCE: Final = {
    "currency": wallet_deeds.FIRST_PLAY_MONEY.currency,
    "availableAmount": Raw(b"7.50"),
    "thresholdAmount": Raw(b"100.00"),
}


class BadStep(ValueError):
    """The clock can't be moved by so much."""


class Moved(Struct, frozen=True):
    """A clock that was moved, and what that brought closer."""

    clock: TestClock
    orders: int
    expired: int
    deliveries: int


async def add_company(tx: Tx, actor: Actor, draft: CompanyDraft) -> Company:
    """A new company, with play money in its sandbox; refused if the name is taken."""
    company = await company_deeds.add(tx, actor, draft)
    await wallet_deeds.top_up_play_money(tx, actor, company, wallet_deeds.FIRST_PLAY_MONEY)
    return company


async def advance(tx: Tx, actor: Actor, company_id: int, by: timedelta, window: timedelta) -> Moved:
    """Move the time of the company's sandbox ahead: orders expire, codes come, webhooks are tried again.

    `window` is how long an order may be confirmed.
    """
    if not timedelta(seconds=1) <= by <= STEP_MAX:
        raise BadStep(f"must be between 1 and {int(STEP_MAX.total_seconds())}")
    clock = await store.lock(tx, company_id)
    if clock.ahead + by > AHEAD_MAX:
        raise BadStep(f"must leave the clock at most {AHEAD_MAX.days} days ahead: reset it first")
    aged = await ageing.age(tx, company_id, by, window)
    deliveries = await history.hasten(tx, company_id, State.SANDBOX, by)
    await store.set_ahead(tx, company_id, clock.ahead + by)
    await store.look_at(tx, company_id, await ageing.next_expiry(tx, company_id, window))
    await _record(tx, actor, company_id, "clock.advance", {"seconds": int(by.total_seconds())})
    return Moved(await store.read(tx, company_id), aged.orders, aged.expired, deliveries)


async def reset(tx: Tx, actor: Actor, company_id: int) -> TestClock:
    """Let the clock show the real time again; what came to pass stays."""
    await store.lock(tx, company_id)
    await store.set_ahead(tx, company_id, timedelta())
    await _record(tx, actor, company_id, "clock.reset", {})
    return await store.read(tx, company_id)


async def expire(tx: Tx, actor: Actor, company_id: int, order_id: int, trx: str) -> bool:
    """Let one order of the sandbox expire now; whether it was still to be confirmed."""
    expired = await ageing.expire_one(tx, order_id)
    await trail.record(tx, actor, "order.expire", f"order {trx}", company_id=company_id, state=State.SANDBOX)
    return expired


async def tell_low_balance(tx: Tx, actor: Actor, company_id: int) -> None:
    """Tell of a low balance in the company's sandbox, with made-up amounts: to see what a program makes of it."""
    await log.append(
        tx, kinds.WALLET_LOW_BALANCE, company_id=company_id, state=State.SANDBOX, data=_LOW_BALANCE
    )
    await trail.record(
        tx, actor, "event.trigger", kinds.WALLET_LOW_BALANCE, company_id=company_id, state=State.SANDBOX
    )


async def announce_expired(pool: Pool, window: timedelta) -> int:
    """Announce orders whose window a clock shortened and the real time ended; of one company at a time, how many."""
    async with transaction(pool) as tx:
        company_id = await store.take_due(tx)
        if company_id is None:
            return 0
        told = await ageing.expire(tx, company_id, window)
        await store.look_at(tx, company_id, await ageing.next_expiry(tx, company_id, window))
    return told


async def _record(tx: Tx, actor: Actor, company_id: int, action: str, detail: dict[str, int]) -> None:
    assert actor.company_id in {None, company_id}, "nobody moves another company's clock"
    await trail.record(
        tx, actor, action, f"company {company_id}", detail, company_id=company_id, state=State.SANDBOX
    )
