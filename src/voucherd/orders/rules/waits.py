"""Lines that wait for codes: what a wait is, and where it goes next. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace

from voucherd.suppliers.offers import Offer

PAUSE_S_MIN: Final = 1.0
PAUSE_S_MAX: Final = 900.0
URGENT_PAUSE_S_MAX: Final = 2.0
"""Resolve has half a minute in all: it asks again sooner."""
ROUNDS_COUNTED_MAX: Final = 1_000
"""Rounds are only counted to make pauses grow, so the count may stop."""


class Wait(Struct, frozen=True):
    """A range of lines that waits for codes, and the place where it waits.

    With `supplier_id` a supplier is to be asked for it, with `attempt_id` it is being bought, with `ask_at` it
    pauses before a supplier is looked for, and with none of them it waits for the shelf alone.
    """

    state: int
    product_id: int
    face_minor: int
    company_id: int
    order_id: int
    line_from: int
    line_to: int
    not_before: datetime
    deadline_at: datetime
    urgent: bool = False
    supplier_id: int | None = None
    attempt_id: UUID | None = None
    ask_at: datetime | None = None
    tried: tuple[int, ...] = ()
    """Suppliers that failed in this round."""
    rounds: int = 0

    @property
    def lines(self) -> range:
        """The numbers of the lines."""
        return range(self.line_from, self.line_to)

    @property
    def count(self) -> int:
        """How many lines."""
        return self.line_to - self.line_from

    @property
    def shelf(self) -> tuple[int, int, int]:
        """The product, face value and state that it waits for."""
        return self.product_id, self.face_minor, self.state

    @property
    def needs(self) -> tuple[tuple[int, int, int], int]:
        """The shelf, and how many codes of it are of any use: all of them for a Resolve, else one."""
        return self.shelf, self.count if self.urgent else 1


def go_on(wait: Wait, offers: Sequence[Offer], now: datetime, jitter: float) -> Wait:
    """The wait with the next supplier that has not failed in this round, or in a pause before a new round.

    `offers` are those that can serve now, cheapest first; `jitter` is a number from 0 to 1.
    """
    free = replace(wait, attempt_id=None, supplier_id=None, ask_at=None)
    untried = [offer for offer in offers if offer.supplier_id not in wait.tried]
    # One that has enough is better than a cheaper one that would leave some lines for another round, and the only
    # one for a Resolve, which gets all of its lines or none.
    enough = [offer for offer in untried if offer.stock >= wait.count]
    for offer in enough or ([] if wait.urgent else untried):
        return replace(free, supplier_id=offer.supplier_id)
    rounds = min(wait.rounds + 1, ROUNDS_COUNTED_MAX)
    pause = timedelta(seconds=pause_s(rounds, jitter, urgent=wait.urgent))
    return replace(free, tried=(), rounds=rounds, ask_at=now + pause)


def failed_at(wait: Wait, supplier_id: int) -> Wait:
    """The wait after this supplier failed it."""
    return replace(wait, tried=(*(one for one in wait.tried if one != supplier_id), supplier_id))


def pause_s(rounds: int, jitter: float, *, urgent: bool) -> float:
    """How long to pause before round number `rounds`: doubling up to a cap, half of it left to chance."""
    longest = URGENT_PAUSE_S_MAX if urgent else PAUSE_S_MAX
    whole = min(PAUSE_S_MIN * 2.0 ** min(rounds - 1, 20), longest)
    return whole * (0.5 + jitter / 2)
