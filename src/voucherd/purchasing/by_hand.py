"""What a person does about purchases that no call could tell the outcome of.

Each deed is one transaction, and an event in it says who did what and why.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import BinaryIO, Final

from msgspec import Struct

from voucherd.db import Pool, transaction
from voucherd.events import kinds, log
from voucherd.orders.model import Order
from voucherd.orders.store import OrderCaches
from voucherd.purchasing import attempts, outcomes
from voucherd.purchasing.attempts import Attempt, Phase
from voucherd.purchasing.outcomes import Call, NotOpen
from voucherd.suppliers.protocol import SURPLUS_MAX, Bought, Code
from voucherd.vault import purchased as purchases
from voucherd.vault.lines import BadLine, CodeFile
from voucherd.vault.purchased import Quarantined
from voucherd.vault.seal import Sealer
from voucherd.vault.sources import FileRefused

_EVER: Final = datetime(1, 1, 1, tzinfo=UTC)


class Hand(Struct, frozen=True):
    """Who does it, and why."""

    by: str
    note: str = ""


class TooEarly(Exception):
    """A request may still be on its way to the supplier, so nobody can say yet that nothing was bought."""


class TooMany(Exception):
    """More codes than the purchase asked for, by far: it is the wrong file."""


class BadCodes(Exception):
    """The file can't be the codes of a purchase; `bad` are the lines at fault."""

    def __init__(self, text: str, bad: list[BadLine] | None = None) -> None:
        super().__init__(text)
        self.bad = bad or []


def read_codes(stream: BinaryIO) -> tuple[Code, ...]:
    """The codes of a file: all of them or none. Expired ones too, for they were paid for."""
    reader = CodeFile(stream, str.encode, _EVER)
    try:
        entries = reader.chunk()
        more = reader.chunk() if entries else None
    except FileRefused as refused:
        raise BadCodes(str(refused)) from None
    if reader.bad_count:
        raise BadCodes(f"{reader.bad_count} lines are bad; nothing was taken", reader.bad)
    if not entries:
        raise BadCodes("the file has no codes")
    if more:
        raise BadCodes("the file has far more codes than a purchase")
    return tuple(Code(*entry) for entry in entries.values())


async def fail(pool: Pool, caches: OrderCaches, attempt: Attempt, hand: Hand) -> list[Order]:
    """The supplier says that nothing was bought (more): the lines go on to the next one; the orders that moved."""
    if not attempt.settled:
        raise TooEarly
    reason = f"settled by hand: {hand.note}" if hand.note else "settled by hand"
    call = Call(by=hand.by, note=hand.note)
    return await outcomes.fail(pool, caches, attempt, reason, call, fence=False)


async def receive(
    pool: Pool, caches: OrderCaches, sealer: Sealer, attempt: Attempt, bought: Bought, hand: Hand
) -> list[Order]:
    """The supplier says that these are the codes: they are stored and delivered like any others."""
    if len(bought.codes) > attempt.count + SURPLUS_MAX:
        raise TooMany
    return await outcomes.receive(pool, caches, sealer, attempt, bought, Call(by=hand.by, note=hand.note))


async def retry(pool: Pool, attempt: Attempt, hand: Hand) -> None:
    """Look an unknown purchase up again, now and a few times. It is never bought again under its reference."""
    async with transaction(pool) as tx:
        standing = await attempts.lock(tx, attempt.id)
        if standing.phase is not Phase.UNKNOWN:
            raise NotOpen(standing.phase)
        await attempts.ask_anew(tx, attempt.id)
        await log.append(
            tx,
            kinds.ATTEMPT_RETRIED,
            state=attempt.state,
            data={"attempt": attempt.reference, "by": hand.by, "note": hand.note},
        )


async def quarantined(
    pool: Pool, sealer: Sealer, attempt: Attempt, hand: Hand, *, reveal: bool
) -> list[Quarantined]:
    """The codes of a purchase that are kept apart; whoever wants to read them is written down first."""
    async with transaction(pool) as tx:
        found = await purchases.quarantined(tx, sealer, attempt.id)
        if reveal and found:
            await log.append(
                tx,
                kinds.ATTEMPT_REVEALED,
                state=attempt.state,
                data={"attempt": attempt.reference, "by": hand.by, "note": hand.note, "codes": len(found)},
            )
    return found
