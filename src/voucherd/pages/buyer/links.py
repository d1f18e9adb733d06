"""An order's redemption links: to copy or to keep as a file, what became of each, and the PIN before their codes."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from voucherd.actors import ActorKind
from voucherd.http import Response
from voucherd.ids import line_number
from voucherd.money import digits, plain
from voucherd.orders import reading
from voucherd.orders.model import Item, Order, Viewed
from voucherd.orders.rules.refusals import BadInput
from voucherd.pages.buyer import grants
from voucherd.pages.buyer.checkout import answer_of
from voucherd.pages.buyer.orders import row
from voucherd.pages.forms import whole
from voucherd.pages.render import attachment, qualified, render
from voucherd.pages.visit import Visit, missing, see_other
from voucherd.people.roles import Right
from voucherd.recipients import pins
from voucherd.sheets import csv_text
from voucherd.vault.model import Reveal, Via, Viewer

PAGE: Final = 25
COLUMNS: Final = ("lineId", "productSlug", "faceValueAmount", "faceValueCurrency", "redemptionLink")
_DIGITS: Final = {
    "least": pins.PIN_DIGITS_MIN,
    "most": pins.PIN_DIGITS_MAX,
    "better": pins.PIN_DIGITS_PROPOSED,
}


class LinkLine(Struct, frozen=True):
    """One line that has a link, and what was seen of it."""

    line: int
    item: Item
    link: str
    """Empty for whoever has not asked for the links."""
    viewed: Viewed | None = None


async def links(visit: Visit) -> Response:
    """Which links were opened, whose codes were seen, and the links themselves for whoever has just asked for them."""
    found = (await answer_of(visit)).order
    start = min(whole(visit.query.get("from"), high=99_999) or 0, found.lines)
    granted = visit.query.get("grant")
    may_see = found.lines_finished > 0 and visit.may(Right.CODES_VIEW)
    shown = may_see and grants.holds(visit, granted)
    lines = await _linked(visit, found, range(start, start + PAGE), Via.PORTAL if shown else None)
    async with visit.pool.acquire() as conn:
        seen = {one.line: one for one in await reading.views(conn, found.id, start, start + PAGE)}
        has_pin = await pins.has_pin(conn, found.id)
        guessed = await pins.guesses(conn, found.id)
    path = f"/portal/orders/{visit.parameters['trx']}/links"
    kept = {"grant": granted if shown else ""}
    return render(
        "buyer/links.html",
        visit,
        **row(visit, found),
        lines=[LinkLine(one.line, one.item, one.link, seen.get(one.line)) for one in lines],
        may_see=may_see,
        shown=shown,
        has_pin=has_pin,
        guessed=guessed,
        proposed=pins.proposed(),
        hint=visit.words.text(
            "{least} to {most} digits, better {better} or more. This one is made up: write it down, nobody can read it"
            " again.",
            **_DIGITS,
        ),
        can_set=visit.may(Right.ORDERS_PLACE),
        before=qualified(path, kept | {"from": max(start - PAGE, 0)}) if start else "",
        after=qualified(path, kept | {"from": start + PAGE}) if start + PAGE < found.lines else "",
    )


async def ask(visit: Visit) -> Response:
    """Let this browser see the order's links for some minutes."""
    if not (await answer_of(visit)).order.lines_finished:
        raise missing()
    path = f"/portal/orders/{visit.parameters['trx']}/links"
    return see_other(qualified(path, {"grant": grants.grant(visit)}))


async def download(visit: Visit) -> Response:
    """The links as a file, without the codes."""
    found = (await answer_of(visit)).order
    lines = await _linked(visit, found, range(found.lines), Via.FILE)
    if not lines:
        raise missing()
    number = visit.services.ids.order_number(found.id)
    rows = [",".join(COLUMNS)]
    for one in lines:
        version = one.item.version
        face = plain(one.item.unit.face_minor, digits(version.face_currency))
        rows.append(
            f"{line_number(number, one.line)},{version.slug},{face},{version.face_currency.lower()},"
            f"{csv_text.quoted(one.link)}"
        )
    name = f"links-{visit.services.ids.trx_unkept(found.id)}.csv"
    return attachment(name, ("\r\n".join(rows) + "\r\n").encode(), csv_text.CSV)


async def set_pin(visit: Visit) -> Response:
    """Ask for a PIN from now on, for another one, or for none."""
    trx = visit.parameters["trx"]
    pin = None if visit.form.get("remove") else visit.form.get("pin")
    try:
        await visit.do(visit.services.recipients.pins.set, trx, visit.services.ids.order_id(trx), pin)
    except BadInput:
        visit.problems["pin"] = visit.words.text("A PIN has {least} to {most} digits.", **_DIGITS)
        return await links(visit)
    speak = visit.words
    said = speak.text("The PIN is set.") if pin else speak.text("The PIN is removed.")
    return visit.go(f"/portal/orders/{trx}/links", said)


async def _linked(visit: Visit, order: Order, wanted: range, via: Via | None) -> list[LinkLine]:
    """The delivered lines among these; with their links once it is written down who sees them.

    A link opens its code for anybody who has it, so to show one is to show the code (OP-94).
    """
    parts = [(item, lines) for item, _, lines in order.delivered(wanted)]
    if via is not None and parts:
        viewer = Viewer(ActorKind.PERSON, visit.someone.id, visit.request.client_ip)
        count = sum(len(lines) for _, lines in parts)
        seen = Reveal(order.id, order.company_id, count, via, viewer, parts[0][1].start)
        await visit.services.orders.reveals.record([seen])
    begin = f"{visit.services.settings.public_url}/r/"
    found = []
    for item, lines in parts:
        tokens = visit.services.ids.tokens(order.id, lines) if via is not None else [""] * len(lines)
        found += [
            LinkLine(line, item, begin + token if token else "")
            for line, token in zip(lines, tokens, strict=True)
        ]
    return found
