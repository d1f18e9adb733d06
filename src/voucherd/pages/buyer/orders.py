"""The portal's first page, and one order: what it is, its progress, and cancelling."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import msgspec

from voucherd import clock
from voucherd.approvals import lists
from voucherd.approvals.model import needed
from voucherd.approvals.store import NOTE_CHARACTERS_MAX
from voucherd.catalogue.pricing import BP_ONE
from voucherd.companies import store as company_store
from voucherd.http import EVENT_STREAM, HttpError, Response
from voucherd.ids import State
from voucherd.money import Money, divide_half_up
from voucherd.orders import carts
from voucherd.orders.deeds import cancel_entry
from voucherd.orders.find import OrderFilters
from voucherd.orders.model import TYPES, Order
from voucherd.orders.rules.decide import Cancel
from voucherd.orders.rules.refusals import OrderNotFound, Refusal
from voucherd.orders.rules.states import Status
from voucherd.pages.buyer import words
from voucherd.pages.buyer.balances import purses_of
from voucherd.pages.buyer.catalogue import logos_for, look, payment_currency
from voucherd.pages.buyer.checkout import OUTCOMES, SLOW_S, answer_of
from voucherd.pages.buyer.codes import CARDS_MAX
from voucherd.pages.buyer.prices import Vat, priced, rates_of, vat_note, vat_of
from voucherd.pages.buyer.timeline import timeline
from voucherd.pages.render import render
from voucherd.pages.visit import Visit, see_other
from voucherd.people.roles import Right
from voucherd.recipients import pins
from voucherd.storefront.listing import ProductFilters, ProductOrder
from voucherd.storefront.sorting import Sort
from voucherd.words import Words

SHOWN_FIRST: Final = 6
"""Orders and products on the first page."""
BEAT_S: Final = 15.0
"""After so long without news a comment is sent: proxies cut off what is silent."""
LIVE_S_MAX: Final = 900.0
"""A browser comes back by itself when its stream ends."""
LIVE_OF_PERSON_MAX: Final = 20

_open: Final[Counter[int]] = Counter()


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
        rows=await rows_of(visit, found.orders),
        pending=pending,
        cart=cart,
        products=products,
        logos=await logos_for(visit.services, products),
        priced=priced,
        currency=currency,
        rates=rates_of([shown.paid for shown in products if shown.paid is not None], currency),
        vat=await vat_of(visit, clock.now().date()),
        may_buy=visit.may(Right.ORDERS_PLACE),
    )


async def order(visit: Visit) -> Response:
    """One order: what it is, how it stands, what happened to it, and what can be done with it."""
    found = (await answer_of(visit)).order
    expired = words.is_expired(found)
    purses = await purses_of(visit)
    approval = await lists.of_order(visit.pool, visit.company_id, found.id)
    rule = (await company_store.policy(visit.pool, visit.company_id)).approve_from_eur_minor
    vat = await vat_of(visit, found.created_at.date())
    told = await timeline(visit, found, approval)
    can_confirm = found.status is Status.CREATED and not expired and visit.may(Right.ORDERS_PLACE)
    return render(
        "buyer/order.html",
        visit,
        **row(visit, found, asked_for=approval is not None and approval.open),
        items=items_of(found),
        **_costs(visit.words, found, vat),
        purse=next((one for one in purses if one.currency == found.payment_currency), None),
        can_confirm=can_confirm,
        approve_from=Money(rule, "EUR") if rule is not None and needed(rule, found.eur_minor) else None,
        can_cancel=found.status is Status.PENDING and visit.may(Right.ORDERS_PLACE),
        can_place=visit.may(Right.ORDERS_PLACE),
        can_see=found.lines_finished > 0 and visit.may(Right.CODES_VIEW),
        cards_max=CARDS_MAX,
        steps=told.steps,
        seen_until=told.seen_until,
        approval=approval if approval is not None and approval.open else None,
        note_max=NOTE_CHARACTERS_MAX,
        guessed=await visit.look(pins.guesses, found.id),
        pending=found.status is Status.PENDING,
        expired=expired,
        outcomes=visit.state is State.SANDBOX,
        outcome_options=[
            (sandbox_outcome.value, visit.words.text(text, seconds=SLOW_S))
            for sandbox_outcome, text in OUTCOMES
        ],
    )


def _costs(speak: Words, found: Order, vat: Vat) -> dict[str, Any]:
    """The price in its parts, as they were fixed."""
    currency = found.payment_currency
    notes = [
        vat_note(speak, vat, item.version.vat_category, item.unit.turnover_minor) for item in found.items
    ]
    # What the country charges today is not said of an order that was priced otherwise.
    fits = all(
        item.unit.vat_minor == divide_half_up(item.unit.turnover_minor * (vat.bp or 0), BP_ONE)
        for item in found.items
    )
    return {
        "net": Money(found.price_minor, currency),
        "vat": Money(found.vat_minor, currency),
        "vat_percent": vat.percent if fits and found.vat_minor else "",
        "vat_notes": [note for note in dict.fromkeys(notes) if note] if fits else [],
        "rates": rates_of([item.unit for item in found.items], currency),
        "refunded": Money(found.refunded_minor, currency),
    }


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
            f"/portal/orders/{visit.parameters['trx']}",
            visit.words.text("This order is no longer in progress."),
            "note",
        )
    return render("buyer/cancel.html", visit, **row(visit, found), refund=_refund(found))


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
        return visit.go(f"/portal/orders/{trx}", words.said(visit.words, refusal), "bad")
    if answer.order.status is Status.DELETED:
        return visit.go("/portal/orders", visit.words.text("The order is withdrawn. Nothing was charged."))
    refunded = Money(answer.order.refunded_minor, answer.order.payment_currency)
    visit.tell(
        visit.words.text("Cancelled. {money} is back in your balance.", money=visit.words.amount(refunded))
    )
    return see_other(f"/portal/orders/{trx}")


async def asked_for(visit: Visit, found: Sequence[Order]) -> set[int]:
    """Which of these orders wait for a second person."""
    created = [one.id for one in found if one.status is Status.CREATED]
    return await lists.asked_for(visit.pool, created) if created else set()


async def rows_of(visit: Visit, found: Sequence[Order]) -> list[dict[str, Any]]:
    """Orders as lists show them."""
    asked = await asked_for(visit, found)
    return [row(visit, one, asked_for=one.id in asked) for one in found]


def row(visit: Visit, found: Order, *, asked_for: bool = False) -> dict[str, Any]:
    """An order as lists and pages show it."""
    first = found.items[0]
    more = len(found.items) - 1
    return {
        "trx": visit.services.ids.trx_unkept(found.id),
        "order": found,
        "standing": words.standing(found, asked_for=asked_for),
        "title": _title(visit.words, f"{visit.words.number(first.amount)} × {first.version.name}", more),
        "reference": found.reference or "",
        "total": Money(found.total_minor, found.payment_currency),
        "kind": TYPES[found.type],
    }


def _title(speak: Words, first: str, more: int) -> str:
    """What an order is called: its first product, and how many others there are."""
    if not more:
        return first
    return speak.plural("{first} and {count} more", "{first} and {count} more", more, first=first)


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
