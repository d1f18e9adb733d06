"""What a supplier's answer does to orders: codes are delivered, failures go on to the next supplier.

Each function is one transaction: it locks the orders of the purchase, then the purchase itself, so a second answer
to the same purchase, a Cancel and the end of a window each see what the other did.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, Final

import asyncpg
from msgspec import Struct

from voucherd import trail
from voucherd.actors import Actor
from voucherd.catalogue import store as catalogue
from voucherd.db import Pool, Tx, transaction
from voucherd.events import kinds, log
from voucherd.ids import State
from voucherd.money import Money
from voucherd.orders import store
from voucherd.orders.caches import OrderCaches
from voucherd.orders.model import Order
from voucherd.orders.rules import waiting
from voucherd.orders.rules.ruling import Facts, Ruling
from voucherd.purchasing import attempts, intake
from voucherd.purchasing.attempts import LIVE, Attempt, AttemptChange, AttemptPhase, AttemptStanding
from voucherd.suppliers.protocol import Bought
from voucherd.suppliers.store import note_call
from voucherd.vault.seal import Sealer

RECEIVE_TRIES_MAX: Final = 5

_chance: Final = random.SystemRandom().random


class Hand(Struct, frozen=True):
    """Who does something about a purchase by hand, under which name, and why."""

    actor: Actor
    by: str
    note: str = ""

    @property
    def told(self) -> dict[str, str]:
        """What is written down of it with every deed."""
        return {"by": self.by, "note": self.note}


class SupplierCall(Struct, frozen=True):
    """The call, or the person, that brought an answer."""

    failed: bool = False
    """Whether it counts against the supplier."""
    ms: int | None = None
    hand: Hand | None = None
    """The person who settles by hand what no call could tell."""

    @property
    def by(self) -> str | None:
        """The name of that person."""
        return None if self.hand is None else self.hand.by


class NothingNew(Exception):
    """Every code that a person brought is in the vault already: it is the wrong file, or an old one."""


class AttemptClosed(Exception):
    """The purchase does not stand so that a person could settle it."""

    def __init__(self, phase: AttemptPhase) -> None:
        super().__init__(f"the purchase is {phase.name.lower()}")
        self.phase = phase


async def receive(
    pool: Pool, caches: OrderCaches, sealer: Sealer, attempt: Attempt, bought: Bought, call: SupplierCall
) -> list[Order]:
    """Store what was bought and deliver it; the orders that moved.

    Codes are never thrown away: they are taken from an owner that was replaced, for lines that are gone (then they
    lie on the shelf), and for a purchase that was thought to have failed.
    """
    for _ in range(RECEIVE_TRIES_MAX - 1):
        try:
            return await _receive(pool, caches, sealer, attempt, bought, call)
        except asyncpg.UniqueViolationError:
            continue  # One of the codes came in from elsewhere in the same moment: now it can be seen.
    return await _receive(pool, caches, sealer, attempt, bought, call)


async def _receive(
    pool: Pool, caches: OrderCaches, sealer: Sealer, attempt: Attempt, bought: Bought, call: SupplierCall
) -> list[Order]:
    async with transaction(pool) as conn:
        facts = await store.load(
            conn,
            await attempts.orders_of(conn, attempt.id),
            caches,
            with_shelves=attempt.urgent,
            bought_by=attempt.id,
        )
        standing = await attempts.lock(conn, attempt.id)
        _refuse_hand(standing, call, over=standing.codes >= attempt.count)
        cost = await _cost(conn, attempt, bought)
        delivery = await intake.sort_out(conn, sealer, attempt, bought, facts.now, cost)
        if call.hand is not None and delivery.count == 0:
            raise NothingNew
        ruling = waiting.receive(facts, attempt.id, [taken.lot for taken in delivery.lots])
        spare = await intake.put_away(conn, sealer, attempt, delivery, ruling.cursors, bought.external_id)
        await store.save(conn, ruling)
        codes = standing.codes + delivery.count
        came = codes + standing.quarantined + delivery.quarantined
        over = call.hand is not None or bought.final
        phase = _phase(attempt, standing.phase, codes, came, over=over)
        change = AttemptChange(
            phase,
            reason=_shortfall(attempt, codes),
            external_id=bought.external_id,
            call_ms=call.ms,
            ask_in_s=_pause_s(attempt) if phase is AttemptPhase.ASKING else None,
            codes=delivery.count,
            spare=spare,
            quarantined=delivery.quarantined,
            settled_by=call.by,
        )
        await attempts.note(conn, attempt.id, change)
        released = await _release(conn, attempt, facts, parked=codes >= attempt.count, phase=phase)
        await _note_call(conn, attempt, call, standing.phase, change)
    return _moved(ruling, released)


def _phase(attempt: Attempt, before: AttemptPhase, codes: int, came: int, *, over: bool) -> AttemptPhase:
    """Bought for good, or worth another look: a supplier that sent too few codes may send the others yet.

    Codes that can't be sold have come too: their lines need not wait for any others.
    """
    if codes == 0 and before in {AttemptPhase.BOUGHT, AttemptPhase.FAILED}:
        return before  # It was over, and still nothing of it can be sold.
    if came >= attempt.count or over or before not in LIVE or attempt.settled:
        return AttemptPhase.BOUGHT if came else AttemptPhase.UNKNOWN
    return AttemptPhase.ASKING


def _shortfall(attempt: Attempt, codes: int) -> str | None:
    if codes == attempt.count:
        return None
    return f"{codes} codes came, {attempt.count} were asked for"


async def _cost(tx: Tx, attempt: Attempt, bought: Bought) -> tuple[Money, int]:
    """What one code cost, and what that currency is worth in EUR: as the supplier says, if we know the rate."""
    quoted = Money(attempt.price_minor, attempt.currency), attempt.fx_e8
    if bought.price is None:
        return quoted
    if bought.price.currency == attempt.currency:
        return bought.price, attempt.fx_e8
    rate = (await catalogue.rates(tx, [bought.price.currency])).get(bought.price.currency)
    # A price that can't be compared with any other is worth less than the one that was agreed on.
    return quoted if rate is None else (bought.price, rate)


async def fail(
    pool: Pool, caches: OrderCaches, attempt: Attempt, reason: str, call: SupplierCall, *, fence: bool = True
) -> list[Order]:
    """The purchase surely brought nothing (more): its lines go on to the next supplier (OP-44).

    An owner that was replaced has no say in this: its successor may know better.
    """
    async with transaction(pool) as conn:
        facts = await store.load(
            conn,
            await attempts.orders_of(conn, attempt.id),
            caches,
            bought_by=attempt.id,
        )
        standing = await attempts.lock(conn, attempt.id)
        over = standing.phase in {AttemptPhase.BOUGHT, AttemptPhase.FAILED}
        _refuse_hand(standing, call, over=over)
        phase = AttemptPhase.BOUGHT if standing.codes or standing.quarantined else AttemptPhase.FAILED
        change = AttemptChange(phase, reason=reason, call_ms=call.ms, settled_by=call.by)
        await _note_call(conn, attempt, call, standing.phase, change)
        if over or (fence and (standing.fence != attempt.fence or standing.phase not in LIVE)):
            return []
        await attempts.note(conn, attempt.id, change)
        released = await _release(conn, attempt, facts, parked=False, phase=phase)
    return _moved(released)


def _refuse_hand(standing: AttemptStanding, call: SupplierCall, *, over: bool) -> None:
    """Refuse a person whom a call was faster than, or who speaks while one is being made."""
    if call.hand is not None and (over or standing.phase is AttemptPhase.CALLING):
        raise AttemptClosed(standing.phase)


async def _note_call(
    tx: Tx, attempt: Attempt, call: SupplierCall, before: AttemptPhase, change: AttemptChange
) -> None:
    """Count the call for the breaker; what a person did is no call, and is written down instead."""
    if call.hand is None:
        await note_call(tx, attempt.supplier_id, failed=call.failed)
        return
    data = {
        **call.hand.told,
        "from": before.name.lower(),
        "to": change.phase.name.lower(),
        "codes": change.codes,
        "spare": change.spare,
        "quarantined": change.quarantined,
    }
    await record(tx, kinds.ATTEMPT_SETTLED, "attempt.settle", attempt, call.hand, data)


async def record(
    tx: Tx, event: str, action: str, attempt: Attempt, hand: Hand, data: Mapping[str, Any]
) -> None:
    """Write down what a person did about a purchase: the event, and the row of the trail."""
    await log.append(tx, event, state=attempt.state, data={"attempt": attempt.reference, **data})
    await trail.record(tx, hand.actor, action, f"attempt {attempt.id}", data, state=State(attempt.state))


async def ask_again(
    pool: Pool, attempt: Attempt, reason: str | None, call: SupplierCall, external_id: str | None
) -> None:
    """Nobody knows yet what became of the purchase: look it up, a little later each time."""
    async with transaction(pool) as conn:
        standing = await attempts.lock(conn, attempt.id)
        await note_call(conn, attempt.supplier_id, failed=call.failed)
        if standing.phase not in LIVE or standing.fence != attempt.fence:
            return
        change = AttemptChange(
            AttemptPhase.ASKING,
            reason=reason,
            external_id=external_id,
            call_ms=call.ms,
            ask_in_s=_pause_s(attempt),
        )
        await attempts.note(conn, attempt.id, change)


async def give_up(
    pool: Pool, caches: OrderCaches, attempt: Attempt, reason: str, call: SupplierCall, *, rebuy: bool
) -> list[Order]:
    """Nobody will find out by itself what became of the purchase: it goes to the operator's list.

    Its lines wait for the operator, or (the supplier's declared risk) are bought elsewhere.
    """
    async with transaction(pool) as conn:
        facts = await store.load(
            conn,
            await attempts.orders_of(conn, attempt.id),
            caches,
            bought_by=attempt.id,
        )
        standing = await attempts.lock(conn, attempt.id)
        await note_call(conn, attempt.supplier_id, failed=call.failed)
        if standing.phase not in LIVE or standing.fence != attempt.fence:
            return []
        await attempts.note(
            conn, attempt.id, AttemptChange(AttemptPhase.UNKNOWN, reason=reason, call_ms=call.ms)
        )
        if not rebuy:
            return []
        released = await _release(conn, attempt, facts, parked=False, phase=AttemptPhase.UNKNOWN)
    return _moved(released)


async def _release(tx: Tx, attempt: Attempt, facts: Facts, *, parked: bool, phase: AttemptPhase) -> Ruling:
    """Let go of the lines that still wait for a purchase that is over."""
    if phase in LIVE:
        return Ruling()
    ruling = (
        # All codes came, and lie on the shelf until the order's other purchases are there too.
        waiting.park(facts, attempt.id) if parked else waiting.release(facts, attempt.id, attempt.supplier_id)
    )
    await store.save(tx, ruling)
    return ruling


def _pause_s(attempt: Attempt) -> float:
    """A little longer each time, but not past the moment from which the answer is believed."""
    pause_s = attempts.look_up_pause_s(attempt.look_ups, _chance())
    return pause_s if attempt.settled else min(pause_s, attempt.settles_in_s)


def _moved(*rulings: Ruling) -> list[Order]:
    return [answer for ruling in rulings for answer in ruling.answers if isinstance(answer, Order)]
