"""What each line of a cart or of a file would cost now, one by one: a line that can't be had spoils no other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from voucherd.orders.model import Item
from voucherd.orders.rules.cart import CartLine, Create
from voucherd.orders.rules.refusals import BadInput, OffersNotAvailable, Refusal
from voucherd.pages.visit import Visit

PORTAL: Final = 1
"""The type of an order that was made here (orders.model.TYPES)."""
AT_ONCE_MAX: Final = 100
"""Lines that are asked for together."""


class QuotedLine(Struct, frozen=True):
    """One line with its price, or with what stands in its way."""

    line: CartLine
    item: Item | None = None
    at_hand: bool = True
    """Whether all of its codes can be had at once."""
    refusal: Refusal | None = None

    @property
    def sum_minor(self) -> int:
        """What all of it costs, VAT included."""
        return 0 if self.item is None else self.item.unit_charge_minor * self.line.amount

    @property
    def short(self) -> bool:
        """Whether it is for sale, but there are too few codes."""
        return isinstance(self.refusal, OffersNotAvailable) and self.line.slug in self.refusal.left

    @property
    def left(self) -> int:
        """How many codes can be had instead of too many."""
        return self.refusal.left.get(self.line.slug, 0) if isinstance(self.refusal, OffersNotAvailable) else 0

    @property
    def of_all(self) -> bool:
        """Whether what stands in the way is no matter of this line: every other one would hear the same."""
        if isinstance(self.refusal, BadInput):
            return not self.refusal.field.startswith("items")
        return self.refusal is not None and not isinstance(self.refusal, OffersNotAvailable)


async def quote_lines(visit: Visit, lines: Sequence[CartLine], currency: str) -> list[QuotedLine]:
    """The lines with their prices as they would be fixed now."""
    found: list[QuotedLine] = []
    for start in range(0, len(lines), AT_ONCE_MAX):
        part = lines[start : start + AT_ONCE_MAX]
        found += await asyncio.gather(*(_quoted(visit, line, currency) for line in part))
    return found


async def _quoted(visit: Visit, line: CartLine, currency: str) -> QuotedLine:
    wanted = Create(visit.company_id, visit.state, PORTAL, (line,), currency)
    try:
        quote = await visit.services.orders.quote(wanted)
    except Refusal as refusal:
        return QuotedLine(line, refusal=refusal)
    return QuotedLine(line, quote.order.items[0], quote.at_hand[0])
