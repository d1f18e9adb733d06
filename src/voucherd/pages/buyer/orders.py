"""The company's orders: the list, each one, and cancelling."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

from voucherd.approvals import lists
from voucherd.http import HttpError, Response
from voucherd.ids import State
from voucherd.money import Money
from voucherd.orders.deeds import cancel_entry
from voucherd.orders.find import OrderFilters
from voucherd.orders.model import TYPES, Order
from voucherd.orders.rules.decide import Cancel
from voucherd.orders.rules.refusals import OrderNotFound, Refusal
from voucherd.orders.rules.states import Status
from voucherd.pages.buyer import words
from voucherd.pages.buyer.catalogue import page_number
from voucherd.pages.buyer.checkout import OUTCOMES
from voucherd.pages.buyer.funds import purses_of
from voucherd.pages.buyer.reveal import seen_by
from voucherd.pages.render import render
from voucherd.pages.visit import Visit, see_other
from voucherd.people.roles import Right
from voucherd.services import Services

PAGE_SIZE: Final = 25
STATUSES: Final = {
    "": ("All orders", ()),
    "created": ("Not confirmed", (Status.CREATED,)),
    "pending": ("In progress", (Status.PENDING,)),
    "finished": ("Delivered", (Status.FINISHED,)),
    "cancelled": ("Cancelled", (Status.CANCELLED,)),
}
KINDS: Final = (("", "API and portal"), ("api", "API"), ("portal", "Portal"))


async def orders(visit: Visit) -> Response:
    """The company's orders, newest first."""
    filters, asked = _filters(visit)
    number = page_number(visit)
    found = await visit.services.orders.browse(
        visit.company_id, visit.state, filters, size=PAGE_SIZE, page=number
    )
    return render(
        "buyer/orders.html",
        visit,
        rows=[row(visit.services, one) for one in found.orders],
        asked=asked,
        statuses=[(key, label) for key, (label, _) in STATUSES.items()],
        kinds=KINDS,
        total=found.total or 0,
        number=number,
        pages=-(-(found.total or 0) // PAGE_SIZE),
    )


async def order(visit: Visit) -> Response:
    """One order: what it is, how it stands, and what can be done with it."""
    found = await _found(visit)
    expired = words.is_expired(found)
    purses = await purses_of(visit)
    approval = await lists.of_order(visit.pool, visit.company_id, found.id)
    return render(
        "buyer/order.html",
        visit,
        **row(visit.services, found),
        **_sums(found),
        purse=next((one for one in purses if one.currency == found.payment_currency), None),
        can_confirm=found.status is Status.CREATED and not expired and visit.may(Right.ORDERS_PLACE),
        can_cancel=found.status is Status.PENDING and not found.cancelling and visit.may(Right.ORDERS_PLACE),
        can_place=visit.may(Right.ORDERS_PLACE),
        can_see=found.lines_finished > 0 and visit.may(Right.CODES_VIEW),
        seen=await seen_by(visit, found) if visit.may(Right.CODES_VIEW) else [],
        approval=approval if approval is not None and approval.open else None,
        pending=found.status is Status.PENDING,
        expired=expired,
        outcomes=visit.state is State.SANDBOX,
        outcome_options=[(sandbox_outcome.value, text) for sandbox_outcome, text in OUTCOMES],
    )


async def cancel_page(visit: Visit) -> Response:
    """What cancelling would bring, before it is done."""
    found = await _found(visit)
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
    if answer.order.status is Status.PENDING:
        visit.tell(
            "Some codes are being bought just now. What does not come is refunded in a moment.", "note"
        )
    else:
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


def _sums(found: Order) -> dict[str, Any]:
    """What the order costs, item by item and in all."""
    currency = found.payment_currency
    items = [
        {
            "item": item,
            "face": Money(item.unit.face_minor, item.version.face_currency),
            "single": Money(item.unit_charge_minor, currency),
            "sum": Money(item.unit_charge_minor * item.amount, currency),
        }
        for item in found.items
    ]
    return {
        "items": items,
        "net": Money(found.price_minor, currency),
        "vat": Money(found.vat_minor, currency),
        "refunded": Money(found.refunded_minor, currency),
    }


def _refund(found: Order) -> Money:
    """What comes back when everything that is open is cancelled."""
    minor = sum((end - start) * item.unit_charge_minor for item, start, end in found.open_ranges())
    return Money(minor, found.payment_currency)


async def _found(visit: Visit) -> Order:
    answer = await visit.services.orders.find(
        visit.services.ids.order_id(visit.parameters["trx"]), visit.company_id, visit.state
    )
    return answer.order


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
    if not text:
        return None
    try:
        return datetime.combine(date.fromisoformat(text), time(), UTC)
    except ValueError:
        raise HttpError(400, "bad_date", "A date looks like 2026-01-31.") from None
