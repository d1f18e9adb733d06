"""The portal's first page, and the company's orders: the list, each one, its progress, and cancelling."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from voucherd.approvals import lists
from voucherd.http import EVENT_STREAM, HttpError, Response
from voucherd.ids import State
from voucherd.money import Money
from voucherd.orders import carts
from voucherd.orders.deeds import cancel_entry
from voucherd.orders.find import SCAN_MAX, OrderFilters
from voucherd.orders.model import TYPES, Order
from voucherd.orders.rules.decide import Cancel
from voucherd.orders.rules.refusals import OrderNotFound, Refusal
from voucherd.orders.rules.states import Status
from voucherd.pages.buyer import words
from voucherd.pages.buyer.balances import purses_of
from voucherd.pages.buyer.catalogue import logos_for, look, page_number, payment_currency, priced
from voucherd.pages.buyer.checkout import OUTCOMES, answer_of
from voucherd.pages.buyer.codes import seen_by
from voucherd.pages.forms import midnight, read_day
from voucherd.pages.render import render
from voucherd.pages.visit import Visit, see_other
from voucherd.people.roles import Right
from voucherd.recipients import pins
from voucherd.services import Services
from voucherd.storefront.listing import ProductFilters, ProductOrder
from voucherd.storefront.sorting import Sort

PAGE_SIZE: Final = 25
SHOWN_FIRST: Final = 6
"""Orders and products on the first page."""
BEAT_S: Final = 15.0
"""After so long without news a comment is sent: proxies cut off what is silent."""
LIVE_S_MAX: Final = 900.0
"""A browser comes back by itself when its stream ends."""
LIVE_OF_PERSON_MAX: Final = 20

_open: Final[Counter[int]] = Counter()
STATUSES: Final = {
    "": ("All orders", ()),
    "created": ("Not confirmed", (Status.CREATED,)),
    "pending": ("In progress", (Status.PENDING,)),
    "finished": ("Delivered", (Status.FINISHED,)),
    "cancelled": ("Cancelled", (Status.CANCELLED,)),
}
KINDS: Final = (("", "API and portal"), ("api", "API"), ("portal", "Portal"))


async def overview(visit: Visit) -> Response:
    """Balances, what is under way, and what to do next."""
    found = await visit.services.orders.browse(
        visit.company_id, visit.state, OrderFilters(), size=SHOWN_FIRST
    )
    pending = await visit.services.orders.count_pending(visit.company_id, visit.state)
    cart = await carts.read(visit.pool, visit.someone.id, visit.state)
    currency = await payment_currency(visit, cart)
    window = await look(visit, currency, ProductFilters(stocked=True), ProductOrder(Sort.BRAND))
    # One product of each brand, the first of each: a dictionary keeps the last.
    brands = {shown.version.brand_slug: shown for shown in reversed(window.products)}
    products = list(reversed(brands.values()))[:SHOWN_FIRST]
    purses = await purses_of(visit)
    return render(
        "buyer/overview.html",
        visit,
        purses=purses,
        low=[purse for purse in purses if purse.low],
        rows=[row(visit.services, one) for one in found.orders],
        pending=pending,
        cart=cart,
        products=products,
        logos=await logos_for(visit.services, products),
        priced=priced,
        currency=currency,
        may_buy=visit.may(Right.ORDERS_PLACE),
    )


async def orders(visit: Visit) -> Response:
    """The company's orders, newest first."""
    filters, asked = _filters(visit)
    number = page_number(visit)
    found = await visit.services.orders.browse(
        visit.company_id, visit.state, filters, size=PAGE_SIZE, skip=(number - 1) * PAGE_SIZE
    )
    total = 0 if found.total is None else found.total.count
    return render(
        "buyer/orders.html",
        visit,
        rows=[row(visit.services, one) for one in found.orders],
        asked=asked,
        statuses=[(key, label) for key, (label, _) in STATUSES.items()],
        kinds=KINDS,
        total=total,
        many=found.total is not None and found.total.more,
        most=SCAN_MAX,
        looked_at=None if found.whole else SCAN_MAX,
        archived_before=found.archived_before,
        number=number,
        pages=max(-(-total // PAGE_SIZE), number + (found.whole and found.after is not None)),
    )


async def order(visit: Visit) -> Response:
    """One order: what it is, how it stands, and what can be done with it."""
    found = (await answer_of(visit)).order
    expired = words.is_expired(found)
    purses = await purses_of(visit)
    approval = await lists.of_order(visit.pool, visit.company_id, found.id)
    can_see = found.lines_finished > 0 and visit.may(Right.CODES_VIEW)
    seen, seen_until = await seen_by(visit, found) if can_see else ([], None)
    return render(
        "buyer/order.html",
        visit,
        **row(visit.services, found),
        items=items_of(found),
        net=Money(found.price_minor, found.payment_currency),
        vat=Money(found.vat_minor, found.payment_currency),
        refunded=Money(found.refunded_minor, found.payment_currency),
        purse=next((one for one in purses if one.currency == found.payment_currency), None),
        can_confirm=found.status is Status.CREATED and not expired and visit.may(Right.ORDERS_PLACE),
        can_cancel=found.status is Status.PENDING and visit.may(Right.ORDERS_PLACE),
        can_place=visit.may(Right.ORDERS_PLACE),
        can_see=can_see,
        seen=seen,
        seen_until=seen_until,
        approval=approval if approval is not None and approval.open else None,
        guessed=await visit.look(pins.guesses, found.id),
        pending=found.status is Status.PENDING,
        expired=expired,
        outcomes=visit.state is State.SANDBOX,
        outcome_options=[(sandbox_outcome.value, text) for sandbox_outcome, text in OUTCOMES],
    )


async def live(visit: Visit) -> Response:
    """What happens to the order, as long as it is in progress."""
    found = (await answer_of(visit)).order
    if _open[visit.someone.id] >= LIVE_OF_PERSON_MAX:
        raise HttpError(503, "too_many_streams", "", headers=[(b"retry-after", b"5")])
    return Response(200, _stream(visit, found), EVENT_STREAM, endless=True)


async def _stream(visit: Visit, order: Order) -> AsyncIterator[bytes]:
    me, ends_at = visit.someone.id, asyncio.get_running_loop().time() + LIVE_S_MAX
    _open[me] += 1
    try:
        while order.status is Status.PENDING and asyncio.get_running_loop().time() < ends_at:
            if visit.services.orders.watch.letting_go:
                return  # The browser asks another process.
            yield b"data: " + msgspec.json.encode(progress(order)) + b"\n\n"
            moved = await visit.services.orders.watch.until_moved(order.id, order.version, BEAT_S)
            if not moved:
                yield b": still here\n\n"
            order = (await visit.services.orders.find(order.id, visit.company_id, visit.state)).order
        yield b"event: reload\ndata: {}\n\n"
    except OrderNotFound:
        yield b"event: reload\ndata: {}\n\n"
    finally:
        _open[me] -= 1
        if not _open[me]:
            del _open[me]


def progress(order: Order) -> dict[str, int | str]:
    """How far the order is, under the names that the page has places for."""
    return {"finished": order.lines_finished, "lines": order.lines, "bar": order.lines_finished}


async def cancel_page(visit: Visit) -> Response:
    """What cancelling would bring, before it is done."""
    found = (await answer_of(visit)).order
    if found.status is not Status.PENDING:
        return visit.go(
            f"/portal/orders/{visit.parameters['trx']}", "This order is no longer in progress.", "note"
        )
    return render("buyer/cancel.html", visit, **row(visit.services, found), refund=_refund(found))


async def cancel(visit: Visit) -> Response:
    """Cancel what is not delivered yet."""
    trx = visit.parameters["trx"]
    entry = cancel_entry(visit.actor, trx, visit.company_id, visit.state)
    try:
        answer = await visit.services.orders.cancel(
            Cancel(visit.services.ids.order_id(trx), visit.company_id, visit.state, entry=entry)
        )
    except OrderNotFound:
        raise
    except Refusal as refusal:
        return visit.go(f"/portal/orders/{trx}", words.said(refusal), "bad")
    if answer.order.status is Status.DELETED:
        return visit.go("/portal/orders", "The order is withdrawn. Nothing was charged.")
    refunded = Money(answer.order.refunded_minor, answer.order.payment_currency)
    visit.tell(f"Cancelled. {refunded} is back in your balance.")
    return see_other(f"/portal/orders/{trx}")


def row(services: Services, found: Order) -> dict[str, Any]:
    """An order as lists and pages show it."""
    first = found.items[0]
    more = len(found.items) - 1
    return {
        "trx": services.ids.trx_unkept(found.id),
        "order": found,
        "standing": words.standing(found),
        "title": f"{first.amount} × {first.version.name}" + (f" and {more} more" if more else ""),
        "total": Money(found.total_minor, found.payment_currency),
        "kind": TYPES[found.type],
    }


def items_of(found: Order) -> list[dict[str, Any]]:
    """The items of an order: the face value, and what one code and all of them cost."""
    currency = found.payment_currency
    return [
        {
            "item": item,
            "face": Money(item.unit.face_minor, item.version.face_currency),
            "single": Money(item.unit_charge_minor, currency),
            "sum": Money(item.unit_charge_minor * item.amount, currency),
        }
        for item in found.items
    ]


def _refund(found: Order) -> Money:
    """What comes back when everything that is open is cancelled."""
    minor = sum((end - start) * item.unit_charge_minor for item, start, end in found.open_ranges())
    return Money(minor, found.payment_currency)


def _filters(visit: Visit) -> tuple[OrderFilters, dict[str, str]]:
    """Which orders are asked for; a text is a transaction number or a reference."""
    asked = {name: visit.query.get(name) for name in ("status", "q", "type", "from", "to")}
    if asked["status"] not in STATUSES or asked["type"] not in ("", *TYPES):
        raise HttpError(400, "bad_filter", "There is no such status or type.")
    order_id = visit.services.ids.order_id(asked["q"]) if asked["q"] else None
    begins, ends = _day(asked["from"]), _day(asked["to"])
    filters = OrderFilters(
        order_id=order_id,
        statuses=STATUSES[asked["status"]][1],
        type=TYPES.index(asked["type"]) if asked["type"] else None,
        reference=asked["q"] if asked["q"] and order_id is None else None,
        date_from=begins,
        date_to=None if ends is None else ends + timedelta(days=1) - timedelta(microseconds=1),
    )
    return filters, asked


def _day(text: str) -> datetime | None:
    try:
        day = read_day(text)
        return None if day is None else midnight(day)
    except ValueError:
        raise HttpError(400, "bad_date", "A date looks like 2026-01-31.") from None
