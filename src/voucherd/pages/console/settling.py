"""What settling a purchase by hand means, in words and in money."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from voucherd.catalogue.cache import VersionCache
from voucherd.db import Connection
from voucherd.money import Money
from voucherd.orders import reading
from voucherd.purchasing import records
from voucherd.purchasing.attempts import AttemptPhase
from voucherd.purchasing.records import Record

_WORDS: Final = {
    AttemptPhase.CALLING: "This purchase is being made at this moment: wait until the call has ended.",
    AttemptPhase.ASKING: "This purchase is being asked about already.",
    AttemptPhase.FAILED: "This purchase has failed already.",
    AttemptPhase.UNKNOWN: "Nobody knows what became of it: settle it, or ask again.",
}


class Stake(Struct, frozen=True):
    """The lines of one currency that wait for a purchase, and what their buyers paid or hold for them."""

    lines: int
    amount: Money


def can_be_settled(record: Record) -> bool:
    """Whether a person may say what became of it."""
    return record.phase in (AttemptPhase.ASKING, AttemptPhase.UNKNOWN) or (
        record.phase in (AttemptPhase.BOUGHT, AttemptPhase.FAILED) and record.codes < record.count
    )


def standing_words(record: Record, phase: AttemptPhase) -> str:
    """Why nothing can be done about a purchase as it stands."""
    if phase is AttemptPhase.BOUGHT:
        return f"This purchase is bought already: {record.codes} of {record.count} codes came."
    return _WORDS[phase]


async def at_stake(conn: Connection, record: Record) -> list[Stake]:
    """What the lines that wait for a purchase cost their buyers, by currency."""
    lines = [line for line in await records.bought_for(conn, record.id) if line.waiting]
    orders = await reading.read(conn, list({line.order_id for line in lines}), VersionCache())
    found: dict[str, tuple[int, int]] = {}
    for line in lines:
        order = orders.get(line.order_id)
        if order is None:
            continue
        item = next(one for one in order.items if one.first_line <= line.line_from < one.end_line)
        count, minor = found.get(order.payment_currency, (0, 0))
        added = line.waiting * item.unit_charge_minor
        found[order.payment_currency] = (count + line.waiting, minor + added)
    return [Stake(count, Money(minor, currency)) for currency, (count, minor) in sorted(found.items())]
