"""What a person does about purchases that no call could tell the outcome of.

Each deed is one transaction, in which an event and a row of the trail say who did what and why.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import BinaryIO, Final

from voucherd.actors import Actor
from voucherd.catalogue import store as catalogue
from voucherd.db import Pool, transaction
from voucherd.events import kinds
from voucherd.orders.caches import OrderCaches
from voucherd.orders.model import Order
from voucherd.purchasing import attempts, outcomes
from voucherd.purchasing.attempts import Attempt, AttemptPhase
from voucherd.purchasing.outcomes import AttemptClosed, Hand, SupplierCall
from voucherd.purchasing.records import Record
from voucherd.suppliers.protocol import SURPLUS_MAX, Bought, Code
from voucherd.suppliers.stocking import NoRateFor
from voucherd.vault import purchased as purchases
from voucherd.vault.lines import BadLine, CodeFile
from voucherd.vault.purchased import Quarantined
from voucherd.vault.seal import Sealer
from voucherd.vault.sources import FileRefused

BY_CHARS_MAX: Final = 200
NOTE_CHARS_MAX: Final = 250
SHOWN_AT_END: Final = 4
SHOWN_IF_LONGER: Final = 12
"""A masked code shows its last few characters only if most of it stays hidden."""

_EVER: Final = datetime(1, 1, 1, tzinfo=UTC)


class BadHand(ValueError):
    """The name or the note can't be written down; says which, and why."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(f"--{field}: {rule}")
        self.field = field
        self.rule = rule


class TooEarly(Exception):
    """A request may still be on its way to the supplier, so nobody can say yet that nothing was bought."""


class TooManyCodes(Exception):
    """More codes than the purchase asked for, by far: it is the wrong file."""


class BadCodes(Exception):
    """The file can't be the codes of a purchase; `bad` are the lines at fault."""

    def __init__(self, text: str, bad: list[BadLine] | None = None) -> None:
        super().__init__(text)
        self.bad = bad or []


def hand_of(actor: Actor, by: str, note: str) -> Hand:
    """Who does it and why, as it is written down."""
    by, note = by.strip(), note.strip()
    if not 1 <= len(by) <= BY_CHARS_MAX or not by.isprintable():
        raise BadHand("by", f"must be 1 to {BY_CHARS_MAX} printable characters")
    if len(note) > NOTE_CHARS_MAX or not note.isprintable():
        raise BadHand("note", f"must be at most {NOTE_CHARS_MAX} printable characters")
    return Hand(actor, by, note)


def read_codes(stream: BinaryIO) -> tuple[Code, ...]:
    """The codes of a file: all of them or none. Expired ones too, for they were paid for."""
    reader = CodeFile(stream, bytes, _EVER)
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
    return tuple(Code(code.decode(), serial.decode(), expires) for code, serial, expires in entries.entries())


async def fail(pool: Pool, caches: OrderCaches, attempt: Attempt, hand: Hand) -> list[Order]:
    """The supplier says that nothing was bought (more): the lines go on to the next one; the orders that moved."""
    if not attempt.settled:
        raise TooEarly
    reason = f"settled by hand: {hand.note}" if hand.note else "settled by hand"
    return await outcomes.fail(pool, caches, attempt, reason, SupplierCall(hand=hand), fence=False)


async def receive(
    pool: Pool, caches: OrderCaches, sealer: Sealer, attempt: Attempt, bought: Bought, hand: Hand
) -> list[Order]:
    """The supplier says that these are the codes: they are stored and delivered like any others."""
    if len(bought.codes) > attempt.count + SURPLUS_MAX:
        raise TooManyCodes
    if bought.price is not None:
        async with pool.acquire() as conn:
            rates = await catalogue.rates(conn, [bought.price.currency])
        if bought.price.currency not in rates:
            raise NoRateFor(bought.price.currency)
    return await outcomes.receive(pool, caches, sealer, attempt, bought, SupplierCall(hand=hand))


async def retry(pool: Pool, attempt: Attempt, hand: Hand) -> None:
    """Look an unknown purchase up again, now and a few times. It is never bought again under its reference."""
    async with transaction(pool) as tx:
        standing = await attempts.lock(tx, attempt.id)
        if standing.phase is not AttemptPhase.UNKNOWN:
            raise AttemptClosed(standing.phase)
        await attempts.ask_anew(tx, attempt.id)
        await outcomes.record(tx, kinds.ATTEMPT_RETRIED, "attempt.retry", attempt, hand, hand.told)


async def quarantined(
    pool: Pool, sealer: Sealer, attempt: Attempt, hand: Hand, *, reveal: bool
) -> list[Quarantined]:
    """The codes of a purchase that are kept apart; their reader is written down first."""
    async with transaction(pool) as tx:
        found = await purchases.quarantined(tx, sealer, attempt.id)
        if reveal and found:
            data = {**hand.told, "codes": len(found)}
            await outcomes.record(tx, kinds.ATTEMPT_REVEALED, "attempt.quarantine", attempt, hand, data)
    return found


def masked(text: str) -> str:
    """The text with nothing readable but perhaps its end."""
    if not text:
        return ""
    return "••••" + (text[-SHOWN_AT_END:] if len(text) >= SHOWN_IF_LONGER else "")


def settled_words(before: Record, after: Record) -> str:
    """What settling changed, for people."""
    came = after.codes - before.codes
    parts = [f"{came} code{' was' if came == 1 else 's were'} taken"] if came else []
    spare, aside = after.spare - before.spare, after.quarantined - before.quarantined
    parts += [f"{spare} of them lie on the shelf, for no line wanted them"] if spare else []
    parts += [f"{aside} went to quarantine"] if aside else []
    freed = released(before, after)
    parts += [f"{freed} lines go on to the next supplier or are refunded"] if freed else []
    return f"The purchase is {after.phase.name.lower()}" + "".join(f"; {part}" for part in parts) + "."


def released(before: Record, after: Record) -> int:
    """How many lines that waited for the purchase wait for it no more, and got no code."""
    delivered = (after.codes - before.codes) - (after.spare - before.spare)
    return max(before.waiting - after.waiting - delivered, 0)
