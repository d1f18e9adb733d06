"""What became of an order's redemption links, and the PIN before their codes (OP-57, OP-96)."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from voucherd.http import Response
from voucherd.orders import reading
from voucherd.orders.model import INLINE_LINES_MAX, Order, Viewed
from voucherd.orders.rules.refusals import BadInput
from voucherd.pages.buyer.checkout import answer_of
from voucherd.pages.buyer.orders import row
from voucherd.pages.forms import whole
from voucherd.pages.render import render
from voucherd.pages.visit import Visit
from voucherd.people.roles import Right
from voucherd.recipients import pins

PAGE: Final = INLINE_LINES_MAX
_HINT: Final = (
    f"{pins.PIN_DIGITS_PROPOSED} digits or more; {pins.PIN_DIGITS_MIN} to {pins.PIN_DIGITS_MAX} are taken. This one is "
    "made up: write it down, because nobody can read it again."
)
_WRONG: Final = f"A PIN has {pins.PIN_DIGITS_MIN} to {pins.PIN_DIGITS_MAX} digits."


class LinkLine(Struct, frozen=True):
    """One line that has a link, and what was seen of it."""

    number: int
    product: str
    viewed: Viewed | None


async def links(visit: Visit) -> Response:
    """Which links were opened, whose codes were seen, and whether a PIN is asked for."""
    found = (await answer_of(visit)).order
    start = min(whole(visit.query.get("from"), high=99_999) or 0, found.lines)
    async with visit.pool.acquire() as conn:
        seen = await reading.views(conn, found.id, start, start + PAGE)
        has_pin = await pins.has_pin(conn, found.id)
        guessed = await pins.guesses(conn, found.id)
    path = f"/portal/orders/{visit.parameters['trx']}/links?from="
    return render(
        "buyer/links.html",
        visit,
        **row(visit.services, found),
        lines=_lines(found, start, {viewed.line: viewed for viewed in seen}),
        has_pin=has_pin,
        guessed=guessed,
        proposed=pins.proposed(),
        hint=_HINT,
        can_set=visit.may(Right.ORDERS_PLACE),
        before=path + str(max(start - PAGE, 0)) if start else "",
        after=path + str(start + PAGE) if start + PAGE < found.lines else "",
    )


async def set_pin(visit: Visit) -> Response:
    """Ask for a PIN from now on, for another one, or for none."""
    trx = visit.parameters["trx"]
    pin = None if visit.form.get("remove") else visit.form.get("pin")
    try:
        await visit.do(visit.services.recipients.pins.set, trx, visit.services.ids.order_id(trx), pin)
    except BadInput:
        visit.problems["pin"] = _WRONG
        return await links(visit)
    said = "The links ask for the PIN from now on." if pin else "The links ask for no PIN any more."
    return visit.go(f"/portal/orders/{trx}/links", said)


def _lines(order: Order, start: int, seen: dict[int, Viewed]) -> list[LinkLine]:
    """The lines of the page that have a code."""
    delivered = [(one.line_from, one.line_to) for one in order.outcomes if one.lot_id is not None]
    return [
        LinkLine(number + 1, item.version.name, seen.get(number))
        for item in order.items
        for number in range(max(item.first_line, start), min(item.end_line, start + PAGE))
        if any(line_from <= number < line_to for line_from, line_to in delivered)
    ]
